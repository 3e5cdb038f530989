// SPDX-License-Identifier: Apache-2.0
// Whatever propagation finds for axes that are left to the compiler, the values are those of one device.
#include "runtime/random_program.hpp"

#include <tessera/sharding/manual.hpp>
#include <tessera/sharding/matmul.hpp>
#include <tessera/transform/propagate.hpp>

using namespace runtime_test;

namespace {

axis_list list_of(axis_set axes) {
  axis_list list = 0;
  for (int i = 0; i < 16; ++i)
    if (axes & bit_of(i)) list = axis_append(list, i);
  return list;
}

/// The same program with `axes` left to the compiler between parameters and results.
graph::graph left_to_the_compiler(const graph::graph& g, axis_set axes) {
  graph::graph made;
  made.mesh = g.mesh;
  std::vector<int> place;
  for (const graph::node& old : g.nodes) {
    graph::node n = old;
    if (n.code == op::parameter) {
      const value entering{&made, made.add_parameter(n.type)};
      place.push_back(graph::to_auto(entering, tessera::sharding::without_axes(n.type, axes), list_of(axes)).id);
      continue;
    }
    n.type = tessera::sharding::without_axes(n.type, axes);
    for (int k = 0; k < n.operand_count(); ++k) n.operands[k] = place[static_cast<std::size_t>(n.operands[k])];
    if (n.code == op::reshape) {
      // With fewer axes it may no longer leave blocks where they are, and then would not have been written so.
      const aval operand = made.type(n.operands[0]);
      const ruling natural = sharding::reshape(operand, n.type, nullptr, made.mesh);
      if (!natural.ok() || !(natural.result == n.type)) {
        aval whole = n.type;
        for (int d = 0; d < whole.rank; ++d) whole.dims[d].axes = 0;
        aval whole_operand = operand;
        for (int d = 0; d < operand.rank; ++d) whole_operand.dims[d].axes = 0;
        const value gathered = graph::reshard({&made, n.operands[0]}, whole_operand);
        place.push_back(graph::reshard(graph::reshape(gathered, whole), n.type).id);
        continue;
      }
    }
    place.push_back(made.add(n));
  }
  for (const graph::output& out : g.outputs) {
    const value leaving{&made, place[static_cast<std::size_t>(out.node)]};
    made.outputs.push_back({graph::to_explicit(leaving, g.type(out.node), list_of(axes)).id, out.alias});
  }
  return made;
}

int cut_nodes(const graph::graph& g, axis_set axes) {
  int n = 0;
  for (const graph::node& one : g.nodes) n += (one.type.cut() & axes) != 0;
  return n;
}

}  // namespace

TEST_CASE("random programs give the one-device answer whichever axes are left to the compiler") {
  int kept = 0;
  int written = 0;
  for (unsigned seed = 0; seed < 120; ++seed) {
    const std::vector<mesh_value> meshes = all_meshes();
    const program p = program_writer(seed, meshes[1 + seed % 4], false).write();
    const std::vector<bytes> expected = runtime::evaluate(uncut(p.g), p.inputs);
    for (unsigned set = 1; set < 1U << p.g.mesh.rank; ++set) {
      const auto axes = static_cast<axis_set>(set);
      const graph::graph automatic = left_to_the_compiler(p.g, axes);
      INFO("seed " << seed << ", " << p.g.mesh.devices() << " devices, axes " << set);
      check_equal(p, runtime::evaluate(automatic, p.inputs), expected, 1e-11);
      kept += cut_nodes(transform::propagate(transform::simplify(automatic)), axes);
      written += cut_nodes(p.g, axes);
    }
  }
  INFO(kept << " values lie along an automatic axis, " << written << " did along an explicit one");
  CHECK(3 * kept > written);
}

TEST_CASE("a gradient through an automatic region agrees with the one of whole arrays") {
  graph::graph g;
  g.mesh = grid(2, 4);
  const axis_list data = axis_append(0, 0);
  const axis_list model = axis_append(0, 1);
  aval x_type = array_type(dtype::f64, {8, 16});
  aval w_type = array_type(dtype::f64, {16, 8});
  x_type.dims[0].axes = data;
  w_type.dims[1].axes = model;
  program p;
  p.g.mesh = g.mesh;
  const value x{&p.g, p.g.add_parameter(x_type)};
  const value w{&p.g, p.g.add_parameter(w_type)};
  const axis_list both = axis_append(data, 1);
  const auto forget = [&](value v) { return graph::to_auto(v, tessera::sharding::without_axes(v.type(), 3), both); };
  const aval product = array_type(dtype::f64, {8, 8});
  const value h = graph::unary(op::tanh, graph::dot(forget(x), forget(w), sharding::matmul_dims(2, 2), product));
  aval leaving = product;
  leaving.dims[0].axes = both;
  const value y = graph::to_explicit(h, leaving, both);
  const value loss = graph::sum(graph::unary(op::square, y));
  p.g.outputs = {{loss.id, -1}};
  const int wrt[] = {x.id, w.id};
  for (int id : transform::gradients(p.g, loss.id, wrt)) {
    CHECK(p.g.type(id) == p.g.type(wrt[p.g.outputs.size() - 1]));
    p.g.outputs.push_back({id, -1});
  }
  std::mt19937 bits(4);
  for (int parameter : p.g.parameters)
    p.inputs.push_back(to_bytes(draw({{}, -1, 1}, p.g.type(parameter).size(), bits), dtype::f64));
  check_against_one_device(p, 1e-13);
}
