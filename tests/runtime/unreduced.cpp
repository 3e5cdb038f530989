// SPDX-License-Identifier: Apache-2.0
// Operations on unreduced and reduced arrays: on meshes of 1, 2, 4 and 2x2 devices, with parts that differ from device
// to device, they and their gradients are those of the one-device program, so nothing is scaled by a number of devices.
#include "runtime/layout_cases.hpp"
#include "runtime/marked.hpp"

#include <tessera/sharding/matmul.hpp>

#include <catch2/catch.hpp>

#include <numeric>

using namespace runtime_test;

TEST_CASE("Whatever operands are unreduced and reduced, values and gradients are those of one device") {
  int cut = 0;
  for (const op_case& c : all_cases(4)) {
    INFO(c.name);
    CHECK(check_marks_of(c, data_mesh(1), 0b1, false) > 0);
    CHECK(check_marks_of(c, data_mesh(2), 0b1, false) > 0);
    CHECK(check_marks_of(c, data_mesh(4), 0b1, false) > 0);
    CHECK(check_marks_of(c, grid(2, 2), 0b11, false) > 0);
    cut += check_marks_of(c, grid(2, 2), 0b10, true);
  }
  CHECK(cut > 300);
}

TEST_CASE("Parts of pending sums, and pending sums put together, are pending sums; of reduced arrays likewise") {
  std::vector<op_case> cases = slice_cases(4);
  for (const op_case& c : join_cases(4)) cases.push_back(c);
  for (const op_case& c : cases)
    for (mark m : {mark::reduced, mark::unreduced}) {
      if (c.name.find("pad") != c.name.npos && m == mark::unreduced) continue;
      if (c.name.find("elementwise") != c.name.npos && m == mark::unreduced) continue;  // products of pending sums
      for (std::int64_t devices : {1, 2, 4}) {
        const std::vector<mark> marks(c.inputs.size(), m);
        built b = build_marked(c, data_mesh(devices), marks, 0b1, false);
        INFO(c.name << text_of_marks(marks) << " on " << devices << " devices");
        REQUIRE(b.legal);
        fill_marked(b, c);
        check_against_one_device(b.p, 1e-12);
      }
    }
}

namespace {

constexpr axis_list x = axis_append(0, 0);

std::vector<std::vector<double>> numbers_of(const graph::graph& g, const std::vector<std::vector<double>>& inputs) {
  std::vector<bytes> raw;
  for (std::size_t i = 0; i < inputs.size(); ++i) raw.push_back(to_bytes(inputs[i], g.type(g.parameters[i]).type));
  std::vector<std::vector<double>> out;
  const std::vector<bytes> results = runtime::evaluate(g, raw);
  for (std::size_t i = 0; i < results.size(); ++i)
    out.push_back(to_numbers(results[i], g.type(g.outputs[i].node).type));
  return out;
}

}  // namespace

TEST_CASE("A bias beside a pending sum is added once: the sum is reduced first") {
  graph::graph g;
  g.mesh = data_mesh(2);
  const value z = sum_of_parts(g, array_type(dtype::f64, {1}), 0b1);
  const value b{&g, g.add_parameter(array_type(dtype::f64, {1}))};
  const value o = graph::unmarked(z) + b;
  const int wrt[] = {z.id, b.id};
  const graph::list<int> gradients = transform::gradients(g, graph::sum(o).id, wrt);
  g.outputs = {{o.id, -1}, {gradients[0], -1}, {gradients[1], -1}};
  CHECK(g.type(gradients[0]).reduced == 0b1);
  const auto answer = numbers_of(g, {{1, 2}, {10}});
  CHECK(answer[0][0] == 13);
  CHECK(answer[1][0] == 1);
  CHECK(answer[2][0] == 1);
}

TEST_CASE("A replicated factor of sharded data has the gradient of one device") {
  for (std::int64_t devices : {1, 2, 4}) {
    graph::graph g;
    g.mesh = data_mesh(devices);
    const value w{&g, g.add_parameter(array_type(dtype::f64, {}))};
    aval cut = array_type(dtype::f64, {4});
    cut.dims[0].axes = x;
    const value d{&g, g.add_parameter(cut)};
    const value loss = graph::sum((graph::unary(op::square, w) + 1.0) * d);
    const int wrt[] = {w.id};
    g.outputs = {{loss.id, -1}, {transform::gradients(g, loss.id, wrt)[0], -1}};
    const auto answer = numbers_of(g, {{1}, {0, 0, 0, 1}});
    CHECK(answer[0][0] == 2);
    CHECK(answer[1][0] == 2);
  }
}

TEST_CASE("Data-parallel weights that are reduced: nothing moves for a gradient, however often they are used") {
  graph::graph g;
  g.mesh = data_mesh(4);
  aval rows = array_type(dtype::f32, {8, 16});
  rows.dims[0].axes = x;
  aval weight = array_type(dtype::f32, {16, 16});
  weight.reduced = 0b1;
  value h{&g, g.add_parameter(rows)};
  const value w{&g, g.add_parameter(weight)};
  for (int layer = 0; layer < 3; ++layer) {
    const sharding::dot_dims dims = sharding::matmul_dims(2, 2);
    h = graph::dot(h, w, dims, graph::expect(sharding::matmul(h.type(), w.type(), nullptr, g.mesh)));
  }
  const int wrt[] = {w.id};
  const int gradient = transform::gradients(g, graph::sum(h).id, wrt)[0];
  CHECK(text_of(g.type(gradient), g.mesh) == "float32[16,16]{U:data}");
  g.outputs = {{gradient, -1}};
  const auto kept = analysis::summarise(transform::lower(g), g.mesh).collectives;
  CHECK(kept.all_reduce + kept.all_gather + kept.reduce_scatter == 0);
  g.outputs = {{graph::unmarked({&g, gradient}).id, -1}};
  const auto reduced = analysis::summarise(transform::lower(g), g.mesh).collectives;
  CHECK(reduced.all_reduce == 1);
  CHECK(reduced.all_gather + reduced.reduce_scatter == 0);
}

TEST_CASE(
    "Reduced over an axis that the product does not sum over: the forward pass is typed, the gradient is refused") {
  graph::graph g;
  g.mesh = data_mesh(2);
  const value a{&g, g.add_parameter(array_type(dtype::f32, {8, 16}))};
  aval weight = array_type(dtype::f32, {16, 4});
  weight.reduced = 0b1;
  const value w{&g, g.add_parameter(weight)};
  const aval type = graph::expect(sharding::matmul(a.type(), weight, nullptr, g.mesh));
  const value y = graph::dot(a, w, sharding::matmul_dims(2, 2), type);
  const int wrt[] = {w.id};
  g.outputs = {{transform::gradients(g, graph::sum(y).id, wrt)[0], -1}};
  CHECK(g.fault.what == message::grad_reduced_operand);
  CHECK(g.fault.type == a.type());
  CHECK(g.fault.beside == weight);
  CHECK_THROWS_AS(runtime::evaluate(g, std::vector<bytes>(2)), value_error);
}

TEST_CASE(
    "reshard from any spec to any other, unreduced and reduced ones among them, keeps the array and its gradient") {
  const mesh_value mesh = grid(2, 2);
  std::vector<aval> specs;
  for (const aval& cut : all_specs(array_type(dtype::f64, {4, 8}), mesh))
    for (axis_set unreduced = 0; unreduced < 4; ++unreduced)
      for (axis_set reduced = 0; reduced < 4; ++reduced) {
        aval type = cut;
        type.unreduced = unreduced;
        type.reduced = reduced;
        if (check_marks(type, mesh).ok()) specs.push_back(type);
      }
  int reshards = 0;
  for (const aval& from : specs)
    for (const aval& to : specs) {
      INFO(text_of(from, mesh) << " to " << text_of(to, mesh));
      program p;
      p.g.mesh = mesh;
      aval plain = from;
      plain.unreduced = 0;
      const value start =
          from.unreduced == 0 ? value{&p.g, p.g.add_parameter(from)} : sum_of_parts(p.g, plain, from.unreduced);
      const value moved = graph::reshard(start, to);
      const value w{&p.g, p.g.add_parameter(cotangent_type(to))};
      const value loss = graph::unmarked(graph::sum(moved * w));
      const int wrt[] = {start.id};
      const int gradient = transform::gradients(p.g, loss.id, wrt)[0];
      CHECK(p.g.type(gradient) == cotangent_type(from));
      p.g.outputs = {{moved.id, -1}, {gradient, -1}};
      std::mt19937 bits(3);
      for (int id : p.g.parameters)
        p.inputs.push_back(to_bytes(draw({{}, -9, 9, true}, p.g.type(id).size(), bits), dtype::f64));
      check_against_one_device(p, 0);
      ++reshards;
    }
  CHECK(reshards == static_cast<int>(specs.size() * specs.size()));
}

TEST_CASE("Making an array reduced, unreduced or cut moves nothing; reducing it is an all-reduce or a reduce-scatter") {
  const mesh_value mesh = data_mesh(2);
  const auto moved = [&](const aval& from, const aval& to) {
    graph::graph g;
    g.mesh = mesh;
    const value v{&g, g.add_parameter(from)};
    g.outputs = {{graph::reshard(v, to).id, -1}};
    return analysis::summarise(transform::lower(g), mesh).collectives;
  };
  const auto total = [](const analysis::collective_counts& c) {
    return c.all_reduce + c.all_gather + c.reduce_scatter + c.all_to_all + c.collective_permute;
  };
  const aval whole = array_type(dtype::f32, {8, 8});
  aval cut = whole;
  cut.dims[0].axes = x;
  aval sum = whole;
  sum.unreduced = 0b1;
  aval reduced = whole;
  reduced.reduced = 0b1;
  CHECK(total(moved(whole, sum)) == 0);
  CHECK(total(moved(cut, sum)) == 0);
  CHECK(total(moved(whole, reduced)) == 0);
  CHECK(total(moved(reduced, whole)) == 0);
  CHECK(total(moved(reduced, cut)) == 0);
  CHECK(total(moved(reduced, sum)) == 0);
  CHECK((moved(sum, whole).all_reduce == 1 && total(moved(sum, whole)) == 1));
  CHECK((moved(sum, reduced).all_reduce == 1 && total(moved(sum, reduced)) == 1));
  CHECK((moved(sum, cut).reduce_scatter == 1 && total(moved(sum, cut)) == 1));
  CHECK((moved(cut, reduced).all_gather == 1 && total(moved(cut, reduced)) == 1));
}
