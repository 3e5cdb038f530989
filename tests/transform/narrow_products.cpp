// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops.hpp>
#include <tessera/transform/narrow_products.hpp>
#include <tessera/transform/partition.hpp>
#include <tessera/transform/plan.hpp>
#include <tessera/transform/widen.hpp>

#include <catch2/catch.hpp>

#include <algorithm>

namespace ts = tessera;
using ts::bf16, ts::f32, ts::P, ts::shape;
using ts::graph::op;
namespace transform = ts::transform;

namespace {

using cluster = ts::mesh<ts::axis<"data", 2>>;

template <ts::dtype D, class Shape, class Spec = P<>>
using array = ts::expr<ts::tensor<D, Shape, Spec, cluster>::type, cluster>;

/// The graph of f on arrays of these types, partitioned, before and after the pass.
template <class... Arrays, class F>
constexpr ts::graph::graph narrowed(F f) {
  ts::graph::graph g;
  g.mesh = cluster::value;
  const auto parameter = [&]<class A>(std::type_identity<A>) { return A{{&g, g.add_parameter(A::type)}}; };
  const std::tuple<Arrays...> arguments{parameter(std::type_identity<Arrays>{})...};
  const auto result = std::apply(f, arguments);
  g.outputs.push_back({result.handle.id, -1});
  const ts::graph::graph global = transform::widen(transform::simplify(g));
  return transform::narrow_products(transform::partition(transform::propagate(global)));
}

/// The element type of the one product in a graph.
constexpr ts::dtype type_of_product(const ts::graph::graph& g) {
  for (const ts::graph::node& n : g.nodes)
    if (n.code == op::dot) return n.type.type;
  return ts::dtype::bool_;
}

/// What the pass leaves is reached from the outputs alone.
constexpr int count_of_converts(const ts::graph::graph& g) {
  int count = 0;
  for (const ts::graph::node& n : transform::eliminate_dead(g).nodes) count += n.code == op::convert;
  return count;
}

using left = array<bf16, shape<4, 8>>;
using right = array<bf16, shape<8, 6>>;
using cut_left = array<bf16, shape<4, 8>, P<ts::none, "data">>;
using cut_right = array<bf16, shape<8, 6>, P<"data">>;

}  // namespace

TEST_CASE("a product whose rounding alone is used has 16 bits itself") {
  const auto g = narrowed<left, right>([](auto a, auto b) { return ts::matmul(a, b); });
  CHECK(type_of_product(g) == bf16);
  CHECK(count_of_converts(g) == 0);
}

TEST_CASE("a product that is wanted in float32 stays there") {
  const auto kept = [](auto a, auto b) { return ts::matmul(a, b, ts::preferred_element_type<f32>); };
  CHECK(type_of_product(narrowed<left, right>(kept)) == f32);
  const auto other = [](auto a, auto b) {
    return ts::astype<ts::f16>(ts::matmul(a, b, ts::preferred_element_type<f32>));
  };
  CHECK(type_of_product(narrowed<left, right>(other)) == f32);
}

TEST_CASE("a product that is summed over devices is rounded after the sum") {
  const auto whole = [](auto a, auto b) { return ts::matmul(a, b, ts::out_sharding<P<>>); };
  CHECK(type_of_product(narrowed<cut_left, cut_right>(whole)) == f32);
  const auto pending = [](auto a, auto b) {
    return ts::reshard<P<>>(ts::matmul(a, b, ts::out_sharding<P<ts::unreduced<"data">>>));
  };
  CHECK(type_of_product(narrowed<cut_left, cut_right>(pending)) == bf16);
}

TEST_CASE("no plan has a float32 array for products of 16-bit numbers, in loops neither") {
  const auto layers = [](auto w, auto x) {
    return ts::scan([](auto h, auto each) { return std::pair(ts::tanh(ts::matmul(h, each)), ts::none); }, x, w).first;
  };
  ts::graph::graph g;
  g.mesh = cluster::value;
  const array<bf16, shape<3, 8, 8>> w{{&g, g.add_parameter(array<bf16, shape<3, 8, 8>>::type)}};
  const array<bf16, shape<4, 8>> x{{&g, g.add_parameter(array<bf16, shape<4, 8>>::type)}};
  g.outputs.push_back({layers(w, x).handle.id, -1});
  const ts::graph::program p = transform::lower(g);
  for (const ts::graph::buffer& b : p.buffers) CHECK(!(b.type == f32 && b.bytes >= 4 * 4 * 8));
}
