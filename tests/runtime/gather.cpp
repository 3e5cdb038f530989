// SPDX-License-Identifier: Apache-2.0
// Elements chosen by indices: what is read and written, gradients, any mesh, bad indices.
#include "runtime/differences.hpp"
#include "runtime/gather_cases.hpp"
#include "runtime/mesh_independence.hpp"

#include <tessera/analysis/summary.hpp>

using namespace runtime_test;
using numbers = std::vector<double>;

namespace {

template <class Shape, dtype D = dtype::f32>
using traced = expr<plain_aval<D, Shape>(), mesh<>>;

/// f of parameters with these elements.
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

using matrix = traced<shape<3, 2>>;
using indices = traced<shape<2>, dtype::i32>;
const numbers six{0, 1, 2, 3, 4, 5};

template <class F>
std::string complaint(F f) {
  try {
    f();
  } catch (const index_error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("take reads what the indices name, from either end") {
  const auto take_rows = [](auto x, auto i) { return take<0>(x, i); };
  CHECK(computed<matrix, indices>(take_rows, {six, {2, -3}}) == numbers{4, 5, 0, 1});
  CHECK(computed<matrix, traced<shape<>, dtype::u32>>(take_rows, {six, {1}}) == numbers{2, 3});
  CHECK(computed<matrix, traced<shape<0>, dtype::i32>>(take_rows, {six, {}}).empty());
  CHECK(computed<traced<shape<3>, dtype::bool_>, indices>(take_rows, {{1, 0, 1}, {1, 2}}) == numbers{0, 1});
  CHECK(computed<matrix, indices>([](auto x, auto i) { return take<1>(x, i); }, {six, {1, 1}}) ==
        numbers{1, 1, 3, 3, 5, 5});
  CHECK(computed<matrix, indices>([](auto x, auto i) { return take<0>(x, i, mode_clip); }, {six, {9, -9}}) ==
        numbers{4, 5, 0, 1});
  CHECK(computed<matrix, indices>([](auto x, auto i) { return take<0>(x, i, mode_wrap); }, {six, {4, -4}}) ==
        numbers{2, 3, 4, 5});
  CHECK(computed<matrix, indices>([](auto x, auto i) { return take<0>(x, i, mode_drop); }, {six, {-1, 3}}) ==
        numbers{4, 5, 0, 0});
  CHECK(computed<matrix, traced<shape<3, 1>, dtype::i32>>([](auto x, auto i) { return take_along_axis<1>(x, i); },
                                                          {six, {1, 0, -1}}) == numbers{1, 2, 5});
  CHECK(computed<matrix, traced<shape<3>, dtype::i32>>([](auto x, auto i) { return take<1>(x, i, batch_dims<1>); },
                                                       {six, {1, 0, -1}}) == numbers{1, 2, 5});
  CHECK(computed<matrix, indices, indices>([](auto x, auto i, auto j) { return at(x, i, j).get(); },
                                           {six, {2, -3}, {1, -1}}) == numbers{5, 1});
}

TEST_CASE("at changes what the indices name, in their order") {
  CHECK(computed<matrix, indices>([](auto x, auto i) { return at(x, i).add(10); }, {six, {1, 1}}) ==
        numbers{0, 1, 22, 23, 4, 5});
  CHECK(computed<matrix, indices, traced<shape<2, 2>>>([](auto x, auto i, auto u) { return at(x, i).set(u); },
                                                       {six, {-1, 2}, {6, 7, 8, 9}}) == numbers{0, 1, 2, 3, 8, 9});
  CHECK(computed<matrix, indices, traced<shape<3, 2>>>([](auto x, auto i, auto u) { return at<1>(x, i).max(u); },
                                                       {six, {0, 0}, {1, 0, 0, 3, 9, 8}}) == numbers{1, 1, 3, 3, 9, 5});
  CHECK(computed<matrix, indices>([](auto x, auto i) { return at(x, i).min(2.5); }, {six, {1, 2}}) ==
        numbers{0, 1, 2, 2.5, 2.5, 2.5});
  CHECK(computed<matrix, indices, indices>([](auto x, auto i, auto j) { return at(x, i, j, mode_drop).set(-1); },
                                           {six, {0, 0}, {2, 1}}) == numbers{0, -1, 2, 3, 4, 5});
  CHECK(computed<matrix>([](auto x) { return at<range{1, 3}, 0>(x).set(7); }, {six}) == numbers{0, 1, 7, 3, 7, 5});
  CHECK(computed<matrix>([](auto x) { return at<-1>(x).add(at<0>(x).get()); }, {six}) == numbers{0, 1, 2, 3, 4, 6});
  CHECK(computed<traced<shape<3>, dtype::bool_>, indices>([](auto x, auto i) { return at(x, i).set(true); },
                                                          {{0, 0, 1}, {1, 1}}) == numbers{0, 1, 1});
}

TEST_CASE("an index outside its dimension is named with its position and range") {
  const auto take_rows = [](auto x, auto i) { return take<0>(x, i); };
  CHECK(complaint([&] {
          computed<matrix, indices>(take_rows, {six, {0, 3}});
        }) == "take or at: index 3 at position 1 is outside [-3, 3)");
  CHECK(complaint([&] {
          computed<matrix, traced<shape<1, 2>, dtype::i32>>(take_rows, {six, {0, -4}});
        }) == "take or at: index -4 at position (0, 1) is outside [-3, 3)");
  CHECK(complaint([&] {
          computed<matrix, traced<shape<1>, dtype::u32>>(take_rows, {six, {4294967295.0}});
        }) == "take or at: index 4294967295 at position 0 is outside [0, 3)");
  CHECK(complaint([&] {
          computed<matrix, indices, indices>([](auto x, auto i, auto j) { return at(x, i, j).add(1); },
                                             {six, {0, 1}, {1, 2}});
        }) == "take or at: index 2 at position 1 is outside [-2, 2)");
}

TEST_CASE("gradients of gathers and scatters agree with differences") { check_all(gather_cases(2)); }

TEST_CASE("gathers and scatters give the one-device answer on every mesh") { check_meshes(gather_cases(8), 60); }

namespace {

constexpr mesh_value two_by_four{2, {"data", "model"}, {2, 4}};
constexpr axis_list data = axis_append(0, 0);
constexpr axis_list model = axis_append(0, 1);

/// Collectives of an embedding of 1024 rows, its ids cut by data, and of its gradient.
analysis::collective_counts collectives(axis_list rows, std::int64_t ids, bool with_gradient) {
  graph::graph g;
  g.mesh = two_by_four;
  aval table_type = array_type(dtype::f32, {1024, 16});
  table_type.dims[0].axes = rows;
  aval ids_type = array_type(dtype::i32, {ids});
  ids_type.dims[0].axes = data;
  const value table{&g, g.add_parameter(table_type)};
  const value at{&g, g.add_parameter(ids_type)};
  aval type = array_type(dtype::f32, {ids, 16});
  type.dims[0].axes = data;
  const value y = ops::write_take<0, false>{}(std::array{table, at}, type);
  const value loss = graph::sum(y * y);
  const int wrt[] = {table.id};
  g.outputs.push_back({y.id, -1});
  if (with_gradient) g.outputs.push_back({transform::gradients(g, loss.id, wrt)[0], -1});
  return analysis::summarise(transform::lower(g), g.mesh).collectives;
}

}  // namespace

TEST_CASE("an embedding costs what its cut asks for: nothing, an all-reduce of what was found, or the table") {
  CHECK(collectives(0, 64, false).all_reduce + collectives(0, 64, false).all_gather == 0);
  CHECK(collectives(0, 64, true).all_reduce == 1);
  const auto by_vocabulary = collectives(model, 64, true);
  CHECK(by_vocabulary.all_gather == 0);
  CHECK(by_vocabulary.all_reduce == 2);
  const auto fully_sharded = collectives(data, 64, true);
  CHECK(fully_sharded.all_gather == 1);
  CHECK(fully_sharded.all_reduce == 0);
  CHECK(fully_sharded.reduce_scatter == 1);
  CHECK(collectives(model, 4096, false).all_gather == 1);
}
