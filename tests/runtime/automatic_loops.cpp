// SPDX-License-Identifier: Apache-2.0
// Axes that are left to the compiler, in loops and branches: values and gradients are those of one device, and the
// bodies lie along the axes as what they are given does.
#include "runtime/mesh_independence.hpp"

#include <tessera/analysis/summary.hpp>
#include <tessera/ops.hpp>
#include <tessera/transform/propagate.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <catch2/catch.hpp>

#include <tuple>

using namespace runtime_test;
namespace ts = tessera;

namespace {

template <std::int64_t Data>
using cluster = mesh<axis<"data", Data>, axis<"model", 2>>;

inline constexpr auto layers = [](auto x, auto w) {
  return scan([](auto h, auto layer) { return std::pair(ts::tanh(matmul(h, layer)), sum<1>(h)); }, x, w);
};
inline constexpr auto alternating = [](auto x, auto w) {
  return fori_loop<0, 3>(
      [&](auto i, auto h) {
        return cond(
            i == 1, [](auto v, auto m) { return matmul(v, m); }, [](auto v, auto) { return v * 2; }, h, slice<0>(w));
      },
      x);
};
inline constexpr auto halved = [](auto x, auto) {
  return while_loop([](auto v) { return sum(square(v)) > 1; }, [](auto v) { return v * 0.5; }, x);
};
inline constexpr auto checkpointed = [](auto x, auto w) {
  return checkpoint([](auto a, auto b) { return ts::tanh(matmul(a, slice<1>(b))); })(x, w);
};

/// The same program on one device, loops and regions included.
graph::graph alone(const graph::graph& g) {
  graph::graph made = uncut(g);
  for (graph::node& n : made.nodes)
    if (n.code == op::to_auto || n.code == op::to_explicit) n.attribute[0] = 0;
  for (graph::graph& body : made.bodies) body = alone(body);
  return made;
}

int cut_in_bodies(const graph::graph& g) {
  int n = 0;
  for (const graph::graph& body : g.bodies) {
    for (const graph::node& one : body.nodes) n += one.type.rank == 2 && one.type.cut() != 0;
    n += cut_in_bodies(body);
  }
  return n;
}

/// Whether `f(x, w)` and, if asked, its gradients are the same with all axes left to the compiler as on one device.
template <std::int64_t Data, bool Differentiate, class F>
void check_region(const char* name, F f) {
  INFO(name << " on " << Data << " x 2 devices");
  using M = cluster<Data>;
  using rows = expr<tensor<dtype::f64, shape<8, 4>, P<"data">, M>::type, M>;
  using stack = expr<tensor<dtype::f64, shape<3, 4, 4>, P<none, none, "model">, M>::type, M>;
  program p;
  p.g.mesh = M::value;
  const rows x{{&p.g, p.g.add_parameter(rows::type)}};
  const stack w{{&p.g, p.g.add_parameter(stack::type)}};
  const auto results = auto_axes(f, out_sharding<P<>>)(x, w);
  value loss = graph::constant(&p.g, dtype::f64, 0);
  ops::for_each_leaf(results, [&](const auto& leaf) {
    const value v{&p.g, leaf.handle.id};
    p.g.outputs.push_back({v.id, -1});
    loss = loss + graph::sum(v * v);
  });
  const int wrt[] = {x.handle.id, w.handle.id};
  if (Differentiate)
    for (int id : transform::gradients(p.g, loss.id, wrt)) p.g.outputs.push_back({id, -1});
  REQUIRE(p.g.fault.what == message::none);
  std::mt19937 bits(6);
  for (int id : p.g.parameters) p.inputs.push_back(to_bytes(draw({{}, -1, 1}, p.g.type(id).size(), bits), dtype::f64));
  CHECK(cut_in_bodies(transform::propagate(p.g)) > 0);
  check_equal(p, runtime::evaluate(p.g, p.inputs), runtime::evaluate(alone(p.g), p.inputs), 1e-12);
}

}  // namespace

TEST_CASE("Loops and branches of an automatic region are those of one device, and lie as their arguments do") {
  check_region<2, true>("scan", layers);
  check_region<4, true>("scan", layers);
  check_region<2, true>("a branch in a loop", alternating);
  check_region<2, false>("while", halved);
  check_region<2, true>("checkpoint", checkpointed);
}
