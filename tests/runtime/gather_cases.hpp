// SPDX-License-Identifier: Apache-2.0
// Uses of gathers and scatters, for tests of gradients and meshes.
#pragma once

#include "runtime/support.hpp"

#include <tessera/ops/at.hpp>
#include <tessera/ops/gather.hpp>

namespace runtime_test {

inline input indices_input(std::vector<std::int64_t> extents, std::int64_t low, std::int64_t high) {
  return {std::move(extents), static_cast<double>(low), static_cast<double>(high), true, dtype::i32};
}

/// Indices count from either end of a dimension of extent n, or go beyond it if an option says what they mean there.
template <int Axis, bool Pointwise, class... Options>
op_case take_case(const std::string& name, std::vector<std::int64_t> x, std::vector<std::int64_t> indices,
                  std::int64_t n) {
  constexpr ops::index_options options = ops::options_of<Options...>();
  const std::int64_t beyond = options.checked ? 0 : n;
  return {name,
          {{std::move(x), -9, 9, true}, indices_input(std::move(indices), -n - beyond, n + beyond)},
          [](std::span<const value> v, const spec_value* out) {
            const aval types[] = {v[1].type()};
            const ops::index_plan plan =
                ops::plan_indices<Axis, Pointwise, Options...>(v[0].type(), types, v[0].mesh());
            return ops::write_take<Axis, Pointwise, Options...>{}(
                std::array{v[0], v[1]},
                graph::expect(sharding::gather(plan.array, plan.indices, plan.how, out, v[0].mesh())));
          },
          true};
}

template <int Axis, sharding::scatter_kind Kind, class... Options>
op_case scatter_case(const std::string& name, std::vector<std::int64_t> x, std::vector<std::int64_t> indices,
                     std::vector<std::int64_t> updates, std::int64_t n) {
  constexpr ops::index_options options = ops::options_of<Options...>();
  const std::int64_t beyond = options.checked ? 0 : n;
  return {name,
          {{std::move(x), -9, 9, true},
           indices_input(std::move(indices), -n - beyond, n + beyond),
           {std::move(updates), -9, 9, true}},
          [](std::span<const value> v, const spec_value* out) {
            const aval types[] = {v[1].type()};
            ops::index_plan plan = ops::plan_indices<Axis, false, Options...>(v[0].type(), types, v[0].mesh());
            plan.how.kind = Kind;
            const ruling ruled = sharding::scatter(plan.array, plan.indices, v[2].type(), plan.how, out, v[0].mesh());
            return ops::write_scatter<Axis, Kind, Options...>{}(std::array{v[0], v[2], v[1]}, graph::expect(ruled));
          },
          true};
}

/// x[i, j] of two arrays of indices that broadcast together.
inline op_case two_indices_case(std::int64_t u) {
  return {"element by two indices",
          {{{u, 2 * u, u}, -9, 9, true}, indices_input({u, 1}, -u, u), indices_input({2 * u}, -2 * u, 2 * u)},
          [](std::span<const value> v, const spec_value* out) {
            const aval types[] = {v[1].type(), v[2].type()};
            const ops::index_plan plan = ops::plan_indices<0, false>(v[0].type(), types, v[0].mesh());
            if (plan.failure != message::none) throw std::logic_error("indices");
            return ops::write_take<0, false>{}(
                std::array{v[0], v[1], v[2]},
                graph::expect(sharding::gather(plan.array, plan.indices, plan.how, out, v[0].mesh())));
          },
          true};
}

inline op_case scatter_two_case(std::int64_t u) {
  return {"update by two indices",
          {{{u, 2 * u, u}, -9, 9, true},
           indices_input({3}, -2 * u, 2 * u),
           indices_input({3}, -3 * u, 3 * u),
           {{3, u}, -9, 9, true}},
          [](std::span<const value> v, const spec_value* out) {
            const aval types[] = {v[1].type(), v[2].type()};
            using drop = index_mode_t<sharding::index_mode::drop>;
            ops::index_plan plan = ops::plan_indices<0, false, drop>(v[0].type(), types, v[0].mesh());
            if (plan.failure != message::none) throw std::logic_error("indices");
            if (out == nullptr)
              graph::expect(sharding::scatter(plan.array, plan.indices, v[3].type(), plan.how, nullptr, v[0].mesh()));
            const aval type = out == nullptr ? v[0].type() : graph::expect(with_spec(v[0].type(), *out, v[0].mesh()));
            return ops::write_scatter<0, sharding::scatter_kind::add, drop>{}(std::array{v[0], v[3], v[1], v[2]}, type);
          },
          true};
}

inline std::vector<op_case> gather_cases(std::int64_t u) {
  using kind = sharding::scatter_kind;
  using clip = index_mode_t<sharding::index_mode::clip>;
  using wrap = index_mode_t<sharding::index_mode::wrap>;
  using drop = index_mode_t<sharding::index_mode::drop>;
  using one_batch = batch_dims_t<1>;
  return {take_case<0, false>("rows", {2 * u, u}, {u}, 2 * u),
          take_case<0, false>("one row", {2 * u, u}, {}, 2 * u),
          take_case<1, false>("columns by a matrix of indices", {u, 2 * u}, {2, u}, 2 * u),
          take_case<0, false>("few of many rows", {8 * u, u}, {u}, 8 * u),
          take_case<1, false, one_batch>("batched", {u, 2 * u, 2}, {u, u}, 2 * u),
          take_case<1, true>("along the last dimension", {u, 2 * u}, {u, u}, 2 * u),
          take_case<0, true>("along the first dimension", {2 * u, u}, {u, u}, 2 * u),
          take_case<0, false, clip>("clipped", {2 * u, u}, {2 * u}, 2 * u),
          take_case<1, false, wrap>("wrapped", {u, 2 * u}, {u}, 2 * u),
          take_case<0, false, drop>("dropped", {2 * u}, {2 * u}, 2 * u),
          two_indices_case(u),
          scatter_case<0, kind::add>("add rows", {2 * u, u}, {u}, {u, u}, 2 * u),
          scatter_case<1, kind::add>("add columns", {u, 2 * u}, {2, u}, {u, 2, u}, 2 * u),
          scatter_case<0, kind::set>("set rows", {u, u}, {2 * u}, {2 * u, u}, u),
          scatter_case<1, kind::set, one_batch>("set batched", {u, u, 2}, {u, 2 * u}, {u, 2 * u, 2}, u),
          scatter_case<0, kind::max>("max", {u, u}, {2 * u}, {2 * u, u}, u),
          scatter_case<0, kind::min, drop>("min, dropped", {2 * u}, {2 * u}, {2 * u}, 2 * u),
          scatter_case<0, kind::set, drop>("set, dropped", {2 * u}, {2 * u}, {2 * u}, 2 * u),
          scatter_case<0, kind::add, clip>("add, clipped", {2 * u}, {2 * u}, {2 * u}, 2 * u),
          scatter_two_case(u)};
}

}  // namespace runtime_test
