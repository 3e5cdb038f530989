// SPDX-License-Identifier: Apache-2.0
// Any mesh and any legal sharding give the one-device answer, forward and backward: every operation, then random
// programs.
#include "runtime/mesh_independence.hpp"
#include "runtime/naive_graph.hpp"
#include "runtime/random_program.hpp"

#include <set>

using namespace runtime_test;

TEST_CASE("unary operations give the one-device answer on every mesh") { check_meshes(unary_cases(8), 40); }
TEST_CASE("binary operations give the one-device answer on every mesh") { check_meshes(binary_cases(8), 60); }
TEST_CASE("choices and conversions give the one-device answer on every mesh") { check_meshes(choice_cases(8), 150); }
TEST_CASE("reductions give the one-device answer on every mesh, however the result is cut") {
  check_meshes(reduce_cases(8), 24);
}
TEST_CASE("contractions give the one-device answer on every mesh, however operands and result are cut") {
  check_meshes(dot_cases(8), 250);
}
TEST_CASE("movements give the one-device answer on every mesh, from any sharding to any") {
  check_meshes(movement_cases(8), 400);
}
TEST_CASE("softmax gives the one-device answer on every mesh, also along a cut dimension") {
  check_meshes(softmax_cases(8), 60);
}

namespace {

/// The results of a program as plain loops give them.
std::vector<bytes> by_plain_loops(const program& p) {
  std::vector<std::vector<double>> inputs;
  for (std::size_t i = 0; i < p.inputs.size(); ++i)
    inputs.push_back(to_numbers(p.inputs[i], p.g.type(p.g.parameters[i]).type));
  std::vector<bytes> results;
  const std::vector<std::vector<double>> outputs = naive_graph::run(p.g, inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    results.push_back(to_bytes(outputs[i], p.g.type(p.g.outputs[i].node).type));
  return results;
}

}  // namespace

TEST_CASE("random programs with random shardings give what plain loops give node by node, forward and backward") {
  const std::vector<mesh_value> meshes{data_mesh(1), data_mesh(2), grid(2, 2), grid(2, 4), data_mesh(4), data_mesh(8)};
  std::set<op> met;
  for (unsigned seed = 0; seed < 360; ++seed) {
    const program p = program_writer(seed, meshes[seed % meshes.size()]).write();
    INFO("seed " << seed << ", " << p.g.mesh.devices() << " devices");
    // A value passes through up to 30 steps, each of which may turn rounding of sums (1e-15) into a little more.
    check_equal(p, runtime::evaluate(p.g, p.inputs), by_plain_loops(p), 1e-11);
    check_against_one_device(p, 1e-11);
    for (const graph::node& n : p.g.nodes) met.insert(n.code);
  }
  for (const op code :
       {op::slice, op::update_slice, op::dynamic_slice, op::dynamic_update, op::gather, op::scatter, op::empty, op::dot,
        op::windows, op::overlap_add, op::cumulative, op::recurrence, op::argsort, op::threefry_hi, op::threefry_lo,
        op::softmax_grad, op::log_softmax_grad, op::select, op::reduce_max})
    CHECK(met.contains(code));
}
