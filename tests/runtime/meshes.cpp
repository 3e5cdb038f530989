// SPDX-License-Identifier: Apache-2.0
// Any mesh and any legal sharding give the one-device answer, forward and backward: every operation, then random
// programs.
#include "runtime/mesh_independence.hpp"

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

/// Writes random programs over matrices of extents 8 and 16: each step applies an operation to values made before, with
/// random legal shardings, and keeps numbers within [-1, 1] or so.
class program_writer {
 public:
  program_writer(unsigned seed, const mesh_value& mesh) : bits_(seed) { made_.g.mesh = mesh; }

  program write() {
    const std::size_t parameters = 2 + pick(3);
    for (std::size_t i = 0; i < parameters; ++i) add_parameter();
    const std::size_t steps = 10 + pick(21);
    while (values_.size() < parameters + steps) {
      const std::size_t nodes = made_.g.nodes.size();
      try {
        values_.push_back(bounded(next()));
      } catch (const std::logic_error&) {
        made_.g.nodes.resize(nodes);  // these shardings do not go together
      }
    }
    finish();
    return std::move(made_);
  }

 private:
  std::size_t pick(std::size_t n) { return bits_() % n; }
  value any() { return values_[pick(values_.size())]; }
  value floats(int rank) {
    for (;;)
      if (const value v = any(); v.type().rank == rank) return v;
  }
  aval random_spec(const aval& shape) {
    const std::vector<aval> specs = all_specs(shape, made_.g.mesh);
    return specs[pick(specs.size())];
  }
  spec_value random_spec_of(const aval& shape) { return graph::spec_of(random_spec(shape)); }

  void add_parameter() {
    const std::int64_t extents[] = {8, 16};
    values_.push_back(
        {&made_.g, made_.g.add_parameter(random_spec(array_type(dtype::f64, {extents[pick(2)], extents[pick(2)]})))});
  }

  /// Sums of many terms are brought back to where functions are curved.
  value bounded(value v) {
    const op code = made_.g.at(v.id).code;
    return code == op::dot || code == op::reduce_sum || code == op::mul || code == op::add || code == op::sub
               ? graph::unary(op::tanh, v)
               : v;
  }

  value next() {
    switch (pick(10)) {
      case 0:
      case 1: return unary();
      case 2:
      case 3: return binary();
      case 4: return reduction();
      case 5:
      case 6: return product();
      case 7: return movement();
      case 8: return choice();
      default: return rows();
    }
  }

  value unary() {
    const op codes[] = {op::neg, op::square, op::exp, op::tanh, op::logistic, op::sin, op::cos, op::erf};
    const value v = graph::unary(codes[pick(8)], any());
    return made_.g.at(v.id).code == op::exp ? v * 0.3 : v;
  }

  value binary() {
    const op codes[] = {op::add, op::sub, op::mul, op::max, op::min};
    return graph::binary(codes[pick(5)], any(), any());
  }

  value reduction() {
    const value v = any();
    if (v.type().rank == 0) return unary();
    const op codes[] = {op::reduce_sum, op::reduce_sum, op::reduce_max, op::reduce_min};
    const op code = codes[pick(4)];
    const auto dims = static_cast<sharding::dim_set>(1 + pick((1U << v.type().rank) - 1));
    const bool keep = pick(2) == 0;
    if (pick(2) == 0) return graph::reduce(code, v, dims, keep);
    const aval plain = graph::expect(sharding::reduce(v.type(), dims, keep, nullptr, v.mesh()));
    const spec_value spec = random_spec_of(plain);
    return graph::reduce(code, v, dims, keep, &spec);
  }

  value product() {
    const value a = floats(2);
    const value b = floats(2);
    const int left = static_cast<int>(pick(2));
    const int right = static_cast<int>(pick(2));
    const sharding::dot_dims dims{sharding::dim_append(0, left), sharding::dim_append(0, right), 0, 0};
    if (pick(3) == 0)
      return graph::dot(a, b, dims, graph::expect(sharding::dot_general(a.type(), b.type(), dims, nullptr, a.mesh())));
    const spec_value spec = random_spec_of(sharding::dot_result(a.type(), b.type(), dims));
    return graph::dot(a, b, dims, graph::expect(sharding::dot_general(a.type(), b.type(), dims, &spec, a.mesh())));
  }

  value movement() {
    const value v = floats(2);
    const std::int64_t size = v.type().size();
    switch (pick(4)) {
      case 0: return graph::transpose(v, sharding::dim_append(sharding::dim_append(0, 1), 0));
      case 1: return graph::reshard(v, random_spec(v.type()));
      case 2: {
        const aval type = array_type(dtype::f64, {size / 8, 8});
        const spec_value spec = random_spec_of(type);
        return ops::write_reshape(
            std::array{v}, graph::expect(sharding::reshape(v.type(), type, pick(2) == 0 ? &spec : nullptr, v.mesh())));
      }
      default: {
        const value row = any();
        const std::int64_t columns = row.type().rank == 0 ? 8 : row.type().dims[row.type().rank - 1].extent;
        return ops::write_broadcast(
            std::array{row}, graph::expect(sharding::broadcast_to(row.type(), array_type(dtype::f64, {16, columns}),
                                                                  nullptr, row.mesh())));
      }
    }
  }

  value choice() {
    const op codes[] = {op::lt, op::ge, op::ne};
    const value a = any();
    return graph::select(graph::binary(codes[pick(3)], a, graph::number_like(a, 0.125)), any(), any());
  }

  value rows() {
    const value v = floats(2);
    switch (pick(3)) {
      case 0: return ops::write_softmax<op::softmax, -1>(std::array{v}, v.type());
      case 1: return ops::write_softmax<op::log_softmax, -1>(std::array{v}, v.type()) * 0.1;
      default: return ops::write_softmax<op::softmax, 0>(std::array{v}, v.type());
    }
  }

  /// The loss is a mean over all values; it and some values are results, cut at random, and so are all gradients.
  void finish() {
    value loss = graph::constant(&made_.g, dtype::f64, 0);
    std::vector<int> wrt;
    for (const value& v : values_) {
      loss = loss + graph::sum(v) / static_cast<double>(v.type().size() * static_cast<std::int64_t>(values_.size()));
      if (made_.g.at(v.id).code == op::parameter) wrt.push_back(v.id);
    }
    made_.g.outputs = {{loss.id, -1}};
    for (int id : transform::gradients(made_.g, loss.id, wrt)) made_.g.outputs.push_back({id, -1});
    for (int i = 0; i < 3; ++i) {
      const value v = values_[values_.size() - 1 - pick(values_.size() / 2)];
      made_.g.outputs.push_back({graph::reshard(v, random_spec(v.type())).id, -1});
    }
    for (int p : made_.g.parameters)
      made_.inputs.push_back(to_bytes(draw(input{{}, -1, 1}, made_.g.type(p).size(), bits_), dtype::f64));
  }

  std::mt19937 bits_;
  program made_{};
  std::vector<value> values_{};
};

}  // namespace

TEST_CASE("random programs with random shardings give the one-device answer, forward and backward") {
  // A value passes through up to 30 steps, each of which may turn rounding of sums (1e-15) into a little more.
  for (unsigned seed = 0; seed < 300; ++seed) {
    const std::vector<mesh_value> meshes = all_meshes();
    program_writer writer(seed, meshes[1 + seed % 4]);
    const program p = writer.write();
    INFO("seed " << seed << ", " << p.g.mesh.devices() << " devices");
    check_against_one_device(p, 1e-11);
  }
}
