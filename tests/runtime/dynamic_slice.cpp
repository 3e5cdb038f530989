// SPDX-License-Identifier: Apache-2.0
// Parts whose place is known at run time: values, gradients, any mesh, updates in place.
#include "runtime/differences.hpp"
#include "runtime/dynamic_cases.hpp"
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

TEST_CASE("a roll by a run-time shift is the roll by that number") {
  const numbers six{0, 1, 2, 3, 4, 5};
  using matrix = traced<shape<2, 3>>;
  const auto columns = [](auto x, auto i) { return roll<-1>(x, i); };
  const auto rows = [](auto x, auto i) { return roll<0>(x, i); };
  CHECK(computed<matrix, start_type>(columns, {six, {1}}) == numbers{2, 0, 1, 5, 3, 4});
  CHECK(computed<matrix, start_type>(columns, {six, {-2}}) == numbers{2, 0, 1, 5, 3, 4});
  CHECK(computed<matrix, start_type>(columns, {six, {3}}) == six);
  CHECK(computed<matrix, start_type>(columns, {six, {2147483647}}) == numbers{2, 0, 1, 5, 3, 4});
  CHECK(computed<matrix, start_type>(columns, {six, {-2147483648.0}}) == numbers{2, 0, 1, 5, 3, 4});
  CHECK(computed<matrix, start_type>(rows, {six, {-3}}) == numbers{3, 4, 5, 0, 1, 2});
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
