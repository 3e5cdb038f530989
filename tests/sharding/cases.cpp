// SPDX-License-Identifier: Apache-2.0
// Every case of reference/sharding_rules.jsonl whose operation exists is put to our rules; the others are counted.
#include "sharding/cases.hpp"

#include <tessera/analysis/summary.hpp>
#include <tessera/sharding/dot_general.hpp>
#include <tessera/sharding/elementwise.hpp>
#include <tessera/sharding/reduce.hpp>
#include <tessera/sharding/reshape.hpp>
#include <tessera/transform/grad.hpp>
#include <tessera/transform/plan.hpp>

#include <catch2/catch.hpp>

#include <cstdio>
#include <functional>
#include <map>
#include <optional>

namespace ts = tessera;
using cases::json;
using cases::test_case;
using ts::message;

namespace {

/// What a rule needs of a case.
struct question {
  const test_case& c;
  std::vector<ts::aval> inputs;
  std::string spec_text;
  std::optional<ts::spec_value> out_spec;

  const ts::spec_value* chosen() const { return out_spec ? &*out_spec : nullptr; }
  const ts::mesh_value& mesh() const { return c.mesh; }

  ts::aval shape(const char* name, ts::dtype type = ts::f32) const {
    ts::aval a;
    a.type = type;
    for (std::int64_t extent : c.params.at(name)) a.dims[a.rank++].extent = extent;
    return a;
  }
};

using rule = std::function<ts::ruling(const question&)>;

ts::ruling elementwise(const question& q) { return ts::sharding::elementwise(q.inputs, q.mesh()); }

ts::ruling where(const question& q) { return ts::sharding::where(q.inputs[0], q.inputs[1], q.inputs[2], q.mesh()); }

ts::ruling create(const question& q, ts::dtype type) {
  return ts::with_spec(q.shape("shape", type), q.out_spec.value_or(ts::spec_value{}), q.mesh());
}

ts::sharding::dim_list dims_of(const json& list) {
  ts::sharding::dim_list dims = 0;
  for (int d : list) dims = ts::sharding::dim_append(dims, d);
  return dims;
}

ts::sharding::dot_dims dot_dims_of(const question& q) {
  ts::sharding::dot_dims dims;
  dims.lhs_contracting = dims_of(q.c.params.at("contract").at(0));
  dims.rhs_contracting = dims_of(q.c.params.at("contract").at(1));
  if (q.c.params.contains("batch")) {
    dims.lhs_batch = dims_of(q.c.params.at("batch").at(0));
    dims.rhs_batch = dims_of(q.c.params.at("batch").at(1));
  }
  return dims;
}

ts::ruling dot_general(const question& q) {
  return ts::sharding::dot_general(q.inputs[0], q.inputs[1], dot_dims_of(q), q.chosen(), q.mesh());
}

ts::ruling reduce(const question& q) {
  std::vector<int> axes;
  if (q.c.params.contains("axis")) axes = {q.c.params.at("axis")};
  else axes = q.c.params.at("axes").get<std::vector<int>>();
  const ts::sharding::dim_set_ruling dims = ts::sharding::named_dims(axes, q.inputs[0].rank);
  if (dims.failure != message::none) return ts::refuse(dims.failure);
  return ts::sharding::reduce(q.inputs[0], dims.dims, false, q.chosen(), q.mesh());
}

ts::ruling argmax(question q) {
  q.inputs[0].type = ts::i32;
  return reduce(q);
}

ts::ruling reshape(const question& q) {
  return ts::sharding::reshape(q.inputs[0], q.shape("new_sizes"), q.chosen(), q.mesh());
}

ts::ruling expand_dims(const question& q) {
  const int at = q.c.params.at("axis");
  ts::aval target = q.inputs[0];
  for (int d = target.rank++; d > at; --d) target.dims[d] = target.dims[d - 1];
  target.dims[at] = {1, 0};
  return ts::sharding::reshape(q.inputs[0], target, nullptr, q.mesh());
}

ts::ruling broadcast_in_dim(const question& q) {
  return ts::sharding::broadcast_to(q.inputs[0], q.shape("shape"), q.chosen(), q.mesh());
}

ts::ruling reshard(const question& q) {
  const std::string to = q.c.params.at("to");
  return ts::with_spec(q.inputs[0], cases::read_spec(to, q.mesh()), q.mesh());
}

/// The cotangent of operand `wrt` of a contraction in a graph that sums its result, and what the backward pass moves.
ts::ruling grad_of_dot(const question& q) {
  ts::graph::graph g;
  g.mesh = q.mesh();
  const ts::graph::value operands[] = {{&g, g.add_parameter(q.inputs[0])}, {&g, g.add_parameter(q.inputs[1])}};
  const ts::sharding::dot_dims dims = dot_dims_of(q);
  const ts::spec_value natural = ts::graph::spec_of(ts::sharding::dot_result(q.inputs[0], q.inputs[1], dims));
  const ts::ruling type = ts::sharding::dot_general(q.inputs[0], q.inputs[1], dims, &natural, g.mesh);
  if (!type.ok()) return type;
  const int loss = ts::graph::sum(ts::graph::dot(operands[0], operands[1], dims, type.result)).id;
  const int wrt[] = {operands[q.c.params.at("wrt").get<int>()].id};
  const int cotangent = ts::transform::gradients(g, loss, wrt)[0];
  g.outputs.push_back({cotangent, -1});
  const auto moved = ts::analysis::summarise(ts::transform::lower(g), g.mesh).collectives;
  const std::string backward = q.c.params.at("bwd");
  CHECK(moved.all_reduce == (backward.find("all-reduce") != backward.npos ? 1 : 0));
  CHECK(moved.reduce_scatter == (backward.find("reduce-scatter") != backward.npos ? 1 : 0));
  CHECK(moved.all_gather == 0);
  return {g.type(cotangent)};
}

const std::map<std::string, rule>& rules() {
  static const std::map<std::string, rule> table{
      {"mul", elementwise},
      {"add", elementwise},
      {"sub", elementwise},
      {"sin", elementwise},
      {"select", where},
      {"jnp.where", where},
      {"zeros", [](const question& q) { return create(q, ts::f32); }},
      {"iota", [](const question& q) { return create(q, ts::i32); }},
      {"dot_general", dot_general},
      {"reduce_sum", reduce},
      {"reduce_max", reduce},
      {"mean", reduce},
      {"argmax", argmax},
      {"reshape", reshape},
      {"expand_dims", expand_dims},
      {"broadcast_in_dim", broadcast_in_dim},
      {"reshard", reshard},
      {"grad(dot_general)", grad_of_dot},
  };
  return table;
}

/// Why a case is not asked, or nothing.
std::string reason_to_leave_out(const test_case& c) {
  const std::string params = c.params.dump();
  const auto mentions = [&](const char* word) {
    return c.op.find(word) != c.op.npos || params.find(word) != params.npos;
  };
  if (mentions("manual") || mentions("shard_map")) return "shard_map";
  if (mentions("Auto") || mentions("auto_axes") || mentions("with_sharding_constraint")) return "auto axes";
  bool pending = params.find("reduced=") != params.npos || cases::has_pending_axes(c.out);
  for (const std::string& input : c.inputs) pending = pending || cases::has_pending_axes(input);
  if (pending) return "unreduced and reduced values";
  if (mentions("bf16")) return "arithmetic of 16-bit types";
  if (!rules().contains(c.op)) return "operation not there yet";
  return "";
}

const std::map<std::string, message>& expected_messages() {
  static const std::map<std::string, message> table{
      {"ew05", message::elementwise_sharding},    {"ew15", message::elementwise_sharding},
      {"ew07", message::elementwise_duplicate},   {"cr11", message::spec_too_long},
      {"cr12", message::spec_unknown_axis},       {"cr13", message::spec_axis_twice},
      {"dot03", message::matmul_contracting_one}, {"dot04", message::matmul_contracting_one},
      {"dot06", message::matmul_duplicate},       {"dot08", message::matmul_contracting_both},
      {"dot22", message::matmul_batch_sharding},  {"dot23", message::matmul_batch_sharding},
      {"rs12", message::reshape_merge},           {"rs13", message::reshape_merge},
      {"rs15", message::reshape_merge},           {"se03", message::where_sharding},
      {"se05", message::where_sharding},
  };
  return table;
}

std::string printed(const ts::aval& a, const ts::mesh_value& mesh) {
  ts::text_buffer out;
  ts::write_aval(out, a, mesh);
  return std::string(out.view());
}

void ask(const test_case& c) {
  question q{c, {}, {}, {}};
  for (const std::string& input : c.inputs) q.inputs.push_back(cases::read_type(input, c.mesh));
  if (c.params.contains("out_sharding")) {
    q.spec_text = c.params.at("out_sharding");
    q.out_spec = cases::read_spec(q.spec_text, c.mesh);
  }
  const ts::ruling ruled = rules().at(c.op)(q);
  CAPTURE(c.id, c.op, c.inputs, c.params.dump());
  if (c.error.empty()) {
    CHECK(std::string(ts::sentence(ruled.failure)) == "");
    CHECK(printed(ruled.result, c.mesh) == printed(cases::read_type(c.out, c.mesh), c.mesh));
    CHECK(ruled.result == cases::read_type(c.out, c.mesh));
  } else {
    CHECK_FALSE(ruled.ok());
    REQUIRE(expected_messages().contains(c.id));
    CHECK(std::string(ts::sentence(ruled.failure)) == std::string(ts::sentence(expected_messages().at(c.id))));
  }
}

}  // namespace

TEST_CASE("Every published case whose operation exists comes out as published, or as our stricter rule says") {
  std::map<std::string, int> left_out;
  int asked = 0;
  int refused = 0;
  for (const test_case& c : cases::read_all(TESSERA_REFERENCE_DIR "/sharding_rules.jsonl")) {
    if (const std::string reason = reason_to_leave_out(c); !reason.empty()) {
      ++left_out[reason];
      continue;
    }
    ask(c);
    ++asked;
    refused += !c.error.empty();
  }
  for (const auto& [reason, count] : left_out) std::printf("left out, %s: %d\n", reason.c_str(), count);
  CHECK(asked == 47);
  CHECK(refused == static_cast<int>(expected_messages().size()));
  CHECK(left_out.size() == 5);
  CHECK(left_out["shard_map"] == 35);
  CHECK(left_out["auto axes"] == 4);
  CHECK(left_out["unreduced and reduced values"] == 14);
  CHECK(left_out["arithmetic of 16-bit types"] == 1);
  CHECK(left_out["operation not there yet"] == 31);
}

TEST_CASE("The notation of the cases is read as it is written") {
  const ts::mesh_value mesh{2, {"x", "y"}, {2, 4}};
  CHECK(printed(cases::read_type("f32[8@x,4@(x,y),16]", mesh), mesh) == "float32[8@x,4@(x,y),16]");
  CHECK(printed(cases::read_type("bool[]", mesh), mesh) == "bool[]");
  const ts::spec_value spec = cases::read_spec("P('x',None,('y','x'))", mesh);
  CHECK(spec.rank == 3);
  CHECK(spec.dims[0] == ts::axis_append(0, 0));
  CHECK(spec.dims[1] == 0);
  CHECK(spec.dims[2] == ts::axis_append(ts::axis_append(0, 1), 0));
  CHECK(cases::read_spec("P()", mesh).rank == 0);
  CHECK(cases::read_spec("P('q')", mesh).unknown.dimension == 0);
}
