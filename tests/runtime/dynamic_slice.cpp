// SPDX-License-Identifier: Apache-2.0
// Parts whose place is known at run time: values, gradients, any mesh, updates in place.
#include "runtime/differences.hpp"
#include "runtime/mesh_independence.hpp"

#include <tessera/ops/dynamic_slice.hpp>
#include <tessera/ops/elementwise.hpp>

using namespace runtime_test;
using numbers = std::vector<double>;

namespace {

template <class Shape, dtype D = dtype::f32>
using traced = expr<plain_aval<D, Shape>(), mesh<>>;
using start_type = traced<shape<>, dtype::i32>;

template <class... Arrays, class F>
numbers computed(F f, const std::vector<numbers>& elements) {
  graph::graph g;
  std::vector<bytes> inputs;
  const auto parameter = [&]<class Array>(std::type_identity<Array>) {
    inputs.push_back(to_bytes(elements[inputs.size()], Array::type.type));
    return Array{{&g, g.add_parameter(Array::type)}};
  };
  std::tuple<Arrays...> arrays{parameter(std::type_identity<Arrays>{})...};
  const auto result = std::apply(f, arrays);
  g.outputs.push_back({result.handle.id, -1});
  return to_numbers(runtime::evaluate(g, inputs)[0], decltype(result)::type.type);
}

input start_input(std::int64_t low, std::int64_t high) {
  return {{}, static_cast<double>(low), static_cast<double>(high), true, dtype::i32};
}

/// A part of sizes (u, 1, u) of an array (2u, u, u).
std::vector<op_case> dynamic_cases(std::int64_t u) {
  std::vector<op_case> cases;
  const auto starts = [](std::span<const value> v, std::size_t from) {
    return std::array{v[0], v[from], v[from + 1], v[from + 2]};
  };
  const auto part_type = [u](aval whole) {
    whole.dims[0].extent = u;
    whole.dims[1].extent = 1;
    return whole;
  };
  cases.push_back({"dynamic slice",
                   {{{2 * u, u, u}, -9, 9, true}, start_input(-u, 2 * u), start_input(0, u), start_input(-9, 9)},
                   [=](std::span<const value> v, const spec_value* out) {
                     const ruling part = ops::dynamic_part(v[0].type(), part_type(v[0].type()), out, v[0].mesh());
                     const aval type = graph::expect(out == nullptr ? part : with_spec(part.result, *out, v[0].mesh()));
                     return ops::write_dynamic_slice(starts(v, 1), type);
                   },
                   true});
  cases.push_back({"dynamic update",
                   {{{2 * u, u, u}, -9, 9, true},
                    {{u, 1, u}, -9, 9, true},
                    start_input(-u, 2 * u),
                    start_input(0, u),
                    start_input(-9, 9)},
                   [](std::span<const value> v, const spec_value* out) {
                     if (out == nullptr) {
                       const aval operands[] = {v[0].type(), v[1].type(), v[2].type(), v[3].type(), v[4].type()};
                       graph::expect(ops::dynamic_update_rule<void>(operands, v[0].mesh()));
                     }
                     const aval type =
                         out == nullptr ? v[0].type() : graph::expect(with_spec(v[0].type(), *out, v[0].mesh()));
                     return ops::write_dynamic_update(std::array{v[0], v[1], v[2], v[3], v[4]}, type);
                   },
                   true});
  cases.push_back({"dynamic update of a row",
                   {{{2 * u, u}, -9, 9, true}, {{u}, -9, 9, true}, start_input(-u, u)},
                   [](std::span<const value> v, const spec_value*) {
                     const aval operands[] = {v[0].type(), v[1].type(), v[2].type()};
                     return ops::write_update_in_dim<0, true>(
                         std::array{v[0], v[1], v[2]},
                         graph::expect(ops::update_in_dim_rule<0, true, void>(operands, v[0].mesh())));
                   }});
  return cases;
}

}  // namespace

TEST_CASE("a dynamic part starts where the scalar says, from either end, and stays inside") {
  const numbers eight{0, 1, 2, 3, 4, 5, 6, 7};
  const auto three = [](auto x, auto i) { return dynamic_slice<3>(x, i); };
  for (const auto& [start, first] :
       {std::pair{0.0, 0.0}, {2, 2}, {5, 5}, {6, 5}, {100, 5}, {-3, 5}, {-5, 3}, {-100, 0}})
    CHECK(computed<traced<shape<8>>, start_type>(three, {eight, {start}}) == numbers{first, first + 1, first + 2});
  CHECK(computed<traced<shape<8>>, traced<shape<>, dtype::u32>>(three, {eight, {4294967295.0}}) == numbers{5, 6, 7});
  using matrix = traced<shape<2, 4>>;
  CHECK(computed<matrix, start_type>([](auto x, auto i) { return dynamic_slice<1, 2>(x, 1, i); }, {eight, {1}}) ==
        numbers{5, 6});
  CHECK(computed<matrix, start_type>([](auto x, auto i) { return dynamic_slice_in_dim<2, 1>(x, i); }, {eight, {-1}}) ==
        numbers{2, 3, 6, 7});
  CHECK(computed<matrix, start_type>([](auto x, auto i) { return dynamic_index_in_dim<1>(x, i); }, {eight, {3}}) ==
        numbers{3, 7});
  CHECK(computed<matrix, start_type>([](auto x, auto i) { return dynamic_index_in_dim(x * 2, i + 1); }, {eight, {0}}) ==
        numbers{8, 10, 12, 14});
}

TEST_CASE("a dynamic update replaces what a dynamic slice reads") {
  const numbers eight{0, 1, 2, 3, 4, 5, 6, 7};
  using matrix = traced<shape<2, 4>>;
  CHECK(computed<traced<shape<8>>, traced<shape<2>>, start_type>(
            [](auto x, auto u, auto i) { return dynamic_update_slice(x, u, i); }, {eight, {-1, -2}, {9}}) ==
        numbers{0, 1, 2, 3, 4, 5, -1, -2});
  CHECK(computed<matrix, traced<shape<1, 2>>, start_type>(
            [](auto x, auto u, auto i) { return dynamic_update_slice(x, u, i, i); }, {eight, {-1, -2}, {1}}) ==
        numbers{0, 1, 2, 3, 4, -1, -2, 7});
  CHECK(computed<matrix, traced<shape<2>>, start_type>(
            [](auto x, auto u, auto i) { return dynamic_update_index_in_dim<1>(x, u, i); }, {eight, {-1, -2}, {-1}}) ==
        numbers{0, 1, 2, -1, 4, 5, 6, -2});
  CHECK(
      computed<matrix, matrix, start_type>([](auto x, auto u, auto i) { return dynamic_update_slice_in_dim(x, u, i); },
                                           {eight, {9, 8, 7, 6, 5, 4, 3, 2}, {1}}) == numbers{9, 8, 7, 6, 5, 4, 3, 2});
}

TEST_CASE("gradients of dynamic slices and updates agree with differences") { check_all(dynamic_cases(2)); }

TEST_CASE("dynamic slices and updates give the one-device answer on every mesh") {
  check_meshes(dynamic_cases(8), 100);
}

TEST_CASE("an argument that a dynamic update takes over is written in place") {
  graph::graph g;
  const aval cache = array_type(dtype::f32, {64, 32});
  const value x{&g, g.add_parameter(cache)};
  const value row{&g, g.add_parameter(array_type(dtype::f32, {1, 32}))};
  const value at{&g, g.add_parameter(scalar_aval(dtype::i32))};
  g.outputs.push_back({graph::dynamic_update_slice(x, row, at, 0).id, 0});
  const graph::program p = transform::lower(g);
  REQUIRE(p.steps.size() == 1);
  CHECK(p.steps[0].bytes == 2 * 32 * 4);
  CHECK(p.temporary_bytes == 0);
}
