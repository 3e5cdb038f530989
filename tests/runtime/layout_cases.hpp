// SPDX-License-Identifier: Apache-2.0
// Uses of operations that take parts of arrays and put arrays together, for tests of gradients and meshes.
#pragma once

#include "runtime/support.hpp"

#include <tessera/ops/create.hpp>
#include <tessera/ops/join.hpp>
#include <tessera/ops/slice.hpp>

namespace runtime_test {

/// A case on whole numbers, which are moved and never rounded.
inline op_case moving_case(std::string name, std::vector<std::vector<std::int64_t>> extents,
                           std::function<value(std::span<const value>, const spec_value*)> build,
                           bool takes_out_spec = true) {
  op_case c{std::move(name), {}, std::move(build), takes_out_spec};
  for (auto& e : extents) c.inputs.push_back({std::move(e), -9, 9, true});
  return c;
}

/// One entry a dimension.
template <slice_entry... Entries>
op_case slice_case(const std::string& name, std::vector<std::int64_t> extents) {
  return moving_case("slice " + name, {std::move(extents)}, [](std::span<const value> x, const spec_value* out) {
    const ops::slice_plan plan = ops::plan_slices<Entries...>(x[0].type());
    if (plan.failure != message::none) throw std::logic_error("slice");
    return ops::write_slices(x[0], plan,
                             graph::expect(sharding::slice(x[0].type(), plan.taken, plan.dropped, out, x[0].mesh())));
  });
}

template <int... Dims>
op_case flip_case(const std::string& name, std::vector<std::int64_t> extents) {
  return moving_case("flip " + name, {std::move(extents)}, [](std::span<const value> x, const spec_value* out) {
    const ops::slice_plan plan = ops::plan_flip<Dims...>(x[0].type());
    return ops::write_slices(x[0], plan, graph::expect(sharding::slice(x[0].type(), plan.taken, 0, out, x[0].mesh())));
  });
}

/// A slice that elementwise operations read in place, another one beside it, and the array itself.
inline std::vector<op_case> slice_cases(std::int64_t u) {
  std::vector<op_case> cases{
      slice_case<range{0, 4}>("rows", {2 * u}),
      slice_case<none, range{1, -1}>("inner columns", {u, 2 * u}),
      slice_case<range{none, none, 2}, range{none, none, -1}>("with strides", {u, 2 * u}),
      slice_case<range{-1, none, -2}, none, range{1, 2}>("backwards", {2 * u, u, u}),
      slice_case<1>("a row", {u, 2 * u}),
      slice_case<none, -1>("a column", {u, 2 * u}),
      slice_case<0, 0>("an element", {u, 2 * u}),
      slice_case<range{1, 2}, range{0, 1}, range{1, 2}, range{0, 1}, range{1, 2}>("of five dimensions",
                                                                                  {2, 2, 2, 2, 2}),
      slice_case<range{0, 0}>("of nothing", {u}),
      flip_case<0>("rows", {u, 2 * u}),
      flip_case<>("everything", {u, 2 * u, 2}),
  };
  cases.push_back(moving_case(
      "slices read by elementwise operations", {{2 * u, u}},
      [](std::span<const value> x, const spec_value*) {
        const std::int64_t n = x[0].type().dims[0].extent;
        sharding::slices low = sharding::everything(x[0].type());
        sharding::slices high = low;
        low.of[0] = {0, n / 2, 1};
        high.of[0] = {n - 1, n / 2, -1};
        aval whole = x[0].type();
        whole.dims[0].axes = 0;
        const value v = graph::reshard(x[0], whole);
        return graph::slice(v, low) * graph::slice(v, high) + graph::slice(v * v, low);
      },
      false));
  cases.push_back(moving_case(
      "a part of a part, transposed and broadcast", {{2 * u, u}},
      [](std::span<const value> x, const spec_value*) {
        aval whole = x[0].type();
        whole.dims[0].axes = whole.dims[1].axes = 0;
        const value v = graph::reshard(x[0], whole);
        sharding::slices odd = sharding::everything(whole);
        odd.of[0] = {1, whole.dims[0].extent / 2, 2};
        const value part = graph::slice(v, odd);
        sharding::slices last = sharding::everything(part.type());
        last.of[0] = {part.type().dims[0].extent - 1, 1, 1};
        const value row = graph::slice(part, last);
        aval wide = part.type();
        wide.dims[0].extent = 3;
        return graph::broadcast(row, wide, graph::dims_in_order(2)) * 2.0;
      },
      false));
  return cases;
}

template <padding... Entries>
op_case pad_case(const std::string& name, std::vector<std::int64_t> extents) {
  return moving_case("pad " + name, {std::move(extents), {}}, [](std::span<const value> x, const spec_value* out) {
    return ops::write_pad<Entries...>(
        std::array{x[0], x[1]},
        graph::expect(sharding::pad(x[0].type(), ops::paddings_of<Entries...>(), out, x[0].mesh())));
  });
}

template <int Axis, bool Stack>
op_case join_case(const std::string& name, std::vector<std::vector<std::int64_t>> extents) {
  return moving_case(name, std::move(extents), [](std::span<const value> x, const spec_value* out) {
    std::vector<aval> types;
    for (const value& v : x) types.push_back(v.type());
    const int place = sharding::place_of(Axis, types[0].rank + Stack);
    if (Stack)
      for (aval& type : types) type = ops::with_one(type, place);
    const aval type = graph::expect(sharding::concatenate(types, place, out, x[0].mesh()));
    if (x.size() == 2) return ops::write_concatenate<Axis, Stack>{}(std::array{x[0], x[1]}, type);
    return ops::write_concatenate<Axis, Stack>{}(std::array{x[0], x[1], x[2]}, type);
  });
}

inline std::vector<op_case> join_cases(std::int64_t u) {
  return {pad_case<padding{1, 2}>("rows", {u}),
          pad_case<padding{1, 0, 1}, padding{}, padding{0, 2}>("three dimensions", {u, u, 2}),
          pad_case<padding{-1, 2}, padding{-1, -1}>("and crop", {2 * u, 2 * u}),
          pad_case<padding{-1, -1, 2}>("between and crop", {u}),
          pad_case<padding{-3, 1, 1}, padding{0, -2, 2}>("with crops inside gaps", {2 * u, u}),
          join_case<0, false>("concatenate rows", {{u, u}, {2 * u, u}}),
          join_case<-1, false>("concatenate columns", {{u, u}, {u, 2 * u}, {u, 1}}),
          join_case<1, false>("concatenate in the middle", {{u, 1, u}, {u, 0, u}, {u, u, u}}),
          join_case<0, true>("stack rows", {{u, 2 * u}, {u, 2 * u}}),
          join_case<-1, true>("stack columns", {{u}, {u}, {u}})};
}

/// Arrays made of nothing, beside an input.
inline std::vector<op_case> creation_cases(std::int64_t u) {
  std::vector<op_case> cases;
  cases.push_back(moving_case("iota", {{u, 2 * u}}, [](std::span<const value> x, const spec_value* out) {
    aval type = x[0].type();
    if (out != nullptr) type = graph::expect(with_spec(type, *out, x[0].mesh()));
    return ops::positions(x[0].owner, type, 0) * graph::reshard(x[0], type) + ops::positions(x[0].owner, type, 1);
  }));
  cases.push_back(moving_case(
      "triangles", {{u, 2 * u}},
      [](std::span<const value> x, const spec_value*) {
        const aval type = x[0].type();
        return ops::write_triangle<op::le, 1>(std::array{x[0]}, type) +
               ops::write_triangle<op::ge, -1>(std::array{x[0]}, type);
      },
      false));
  cases.push_back(moving_case("parts of positions", {{u, u}}, [](std::span<const value> x, const spec_value* out) {
    aval type = x[0].type();
    type.dims[0].axes = type.dims[1].axes = 0;
    aval longer = type;
    longer.dims[1].extent *= 2;
    sharding::slices part = sharding::everything(longer);
    part.of[1] = {3, type.dims[1].extent, 1};
    sharding::slices backwards = sharding::everything(longer);
    backwards.of[1] = {longer.dims[1].extent - 1, type.dims[1].extent, -2};
    backwards.of[1].stride = -1;
    const value numbers = ops::positions(x[0].owner, longer, 1);
    value sum = graph::reshard(x[0], type) * graph::slice(numbers, part) + graph::slice(numbers, backwards);
    return out == nullptr ? sum : graph::reshard(sum, graph::expect(with_spec(type, *out, x[0].mesh())));
  }));
  return cases;
}

inline std::vector<op_case> layout_cases(std::int64_t u) {
  std::vector<op_case> cases;
  for (const auto& part : {slice_cases(u), join_cases(u), creation_cases(u)})
    cases.insert(cases.end(), part.begin(), part.end());
  return cases;
}

}  // namespace runtime_test
