// SPDX-License-Identifier: Apache-2.0
// Operations from outside the library: several operands, other element types, blocks of a mesh, and what is refused.
#include "runtime/support.hpp"

#include <tessera/tessera.hpp>

#include <catch2/catch.hpp>

using namespace runtime_test;
namespace ts = tessera;
using ts::none, ts::P;

namespace {

using cluster = ts::mesh<ts::axis<"data", 2>>;

/// a b + c, with a gradient to a and b alone; counts its runs and the elements of the last block.
struct multiply_add {
  static constexpr auto name = ts::text("multiply_add");
  static inline int runs = 0;
  static inline std::int64_t last_size = 0;

  static constexpr ts::ruling rule(std::span<const ts::aval> x, const ts::mesh_value& mesh) {
    return ts::sharding::elementwise(x, mesh);
  }
  static void run(const ts::custom_call& call) {
    ++runs;
    last_size = call.output.size();
    const auto a = call.input<double>(0);
    const auto b = call.input<double>(1);
    const auto c = call.input<double>(2);
    const auto y = call.result<double>();
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = a[i] * b[i] + c[i];
  }
  static constexpr auto gradient = [](auto a, auto b, auto, auto, auto ct) { return std::tuple(ct * b, ct * a, none); };
};

/// Counts elements above a bound, int32 along the last dimension; asks for the wrong type of a float32 operand.
struct count_above {
  static constexpr auto name = ts::text("count_above");
  static constexpr ts::ruling rule(std::span<const ts::aval> x, const ts::mesh_value&) {
    if (x[0].rank < 1 || x[0].dims[x[0].rank - 1].axes != 0) return ts::refuse(ts::message::custom_op_refused);
    ts::ruling ruled{x[0]};
    ruled.result.type = ts::i32;
    ruled.result.dims[--ruled.result.rank] = {};
    return ruled;
  }
  static void run(const ts::custom_call& call) {
    const auto x = call.input<double>(0);
    const auto y = call.result<std::int32_t>();
    const auto columns = static_cast<std::size_t>(call.inputs[0].extent(-1));
    for (std::size_t i = 0; i < y.size(); ++i) {
      y[i] = 0;
      for (std::size_t j = 0; j < columns; ++j) y[i] += x[i * columns + j] > 0 ? 1 : 0;
    }
  }
};

template <ts::dtype D>
using matrix = ts::expr<ts::tensor<D, ts::shape<4, 3>, P<"data">, cluster>::type, cluster>;

template <ts::dtype D>
matrix<D> parameter(graph::graph& g) {
  return {{&g, g.add_parameter(matrix<D>::type)}};
}

using numbers = std::vector<double>;

}  // namespace

TEST_CASE("a custom operation runs once a shard, on its blocks, and differentiates as it says") {
  graph::graph g;
  g.mesh = cluster::value;
  const auto a = parameter<ts::f64>(g);
  const auto b = parameter<ts::f64>(g);
  const auto c = parameter<ts::f64>(g);
  const auto y = ts::custom_op<multiply_add>(a, b, c);
  const int wrt[] = {a.handle.id, b.handle.id, c.handle.id};
  const auto slopes = transform::gradients(g, graph::sum(value{&g, y.handle.id}).id, wrt);
  g.outputs = {{y.handle.id, -1}, {slopes[0], -1}, {slopes[1], -1}, {slopes[2], -1}};
  const numbers x{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<bytes> inputs{to_bytes(x, ts::f64), to_bytes(numbers(12, 2), ts::f64),
                                  to_bytes(numbers(12, 1), ts::f64)};
  multiply_add::runs = 0;
  const std::vector<bytes> out = runtime::evaluate(g, inputs);
  CHECK(multiply_add::runs == 2);
  CHECK(multiply_add::last_size == 6);
  for (std::size_t i = 0; i < 12; ++i) CHECK(to_numbers(out[0], ts::f64)[i] == 2 * x[i] + 1);
  CHECK(to_numbers(out[1], ts::f64) == numbers(12, 2));
  CHECK(to_numbers(out[2], ts::f64) == x);
  CHECK(to_numbers(out[3], ts::f64) == numbers(12, 0));
}

TEST_CASE("a custom operation without gradient computes, and stops whoever differentiates through it") {
  graph::graph g;
  g.mesh = cluster::value;
  const auto x = parameter<ts::f64>(g);
  const auto counts = ts::custom_op<count_above>(x);
  static_assert(ts::type_text<decltype(counts)>() == "int32[4@data]");
  g.outputs = {{counts.handle.id, -1}};
  const std::vector<bytes> inputs{to_bytes(numbers{1, -1, 2, 0, 0, 0, 3, 3, 3, -1, -1, 4}, ts::f64)};
  CHECK(to_numbers(runtime::evaluate(g, inputs)[0], ts::i32) == numbers{2, 0, 3, 1});
  const value plain = ops::write_custom<multiply_add>(
      std::array{value{&g, x.handle.id}, value{&g, x.handle.id}, value{&g, x.handle.id}}, matrix<ts::f64>::type);
  const int wrt[] = {x.handle.id};
  CHECK(g.fault.what == ts::message::none);
  transform::gradients(g, graph::sum(plain).id, wrt);
  CHECK(g.fault.what == ts::message::custom_op_gradient);
}

TEST_CASE("a kernel that asks for another element type than its operand has is told so") {
  graph::graph g;
  g.mesh = cluster::value;
  g.outputs = {{ts::custom_op<count_above>(parameter<ts::f32>(g)).handle.id, -1}};
  const std::vector<bytes> inputs{to_bytes(numbers(12, 1), ts::f32)};
  CHECK_THROWS_WITH(runtime::evaluate(g, inputs), "custom_block: elements are float32, not float64");
}

TEST_CASE("operations that nobody registered, or two under one name, are refused") {
  CHECK_THROWS_AS(kernels::find_custom_operation(12345), value_error);
  kernels::add_custom_operation(54321, "twice", &multiply_add::run);
  kernels::add_custom_operation(54321, "twice", &multiply_add::run);
  CHECK(kernels::find_custom_operation(54321) == &multiply_add::run);
  kernels::add_custom_operation(54321, "twice", &count_above::run);
  CHECK_THROWS_WITH(kernels::find_custom_operation(54321),
                    "custom_op: two operations are called twice; give their types different names");
}
