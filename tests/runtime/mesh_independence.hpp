// SPDX-License-Identifier: Apache-2.0
// Whether an operation gives the one-device answer on every mesh and for every legal sharding, forward and backward.
#pragma once

#include "runtime/support.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace runtime_test {

/// The same program on one device: nothing is cut.
inline graph::graph uncut(graph::graph g) {
  for (graph::node& n : g.nodes)
    for (int d = 0; d < n.type.rank; ++d) n.type.dims[d].axes = 0;
  g.mesh = one_device();
  return g;
}

struct program {
  graph::graph g{};
  std::vector<bytes> inputs{};
};

/// How far two answers may be apart, relative to the largest number of the array; 0 asks for the same bits.
inline void check_equal(const program& p, const std::vector<bytes>& found, const std::vector<bytes>& expected,
                        double allowed) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t o = 0; o < found.size(); ++o) {
    if (found[o] == expected[o]) continue;
    const dtype type = p.g.type(p.g.outputs[o].node).type;
    const std::vector<double> a = to_numbers(found[o], type);
    const std::vector<double> b = to_numbers(expected[o], type);
    double largest = 0;
    double apart = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(b[i]));
      apart = std::isfinite(a[i]) ? std::max(apart, std::abs(a[i] - b[i])) : std::numeric_limits<double>::infinity();
    }
    INFO("output " << o << " of type " << text_of(p.g.type(p.g.outputs[o].node), p.g.mesh) << " is off by " << apart
                   << " of " << largest);
    CHECK(apart <= allowed * largest);
  }
}

inline void check_against_one_device(const program& p, double allowed) {
  check_equal(p, runtime::evaluate(p.g, p.inputs), runtime::evaluate(uncut(p.g), p.inputs), allowed);
}

inline aval type_of(const input& i, dtype floating) {
  return array_type(i.type == dtype::f64 ? floating : i.type, i.extents);
}

/// A case with these operand types: its result, loss and gradients. False if the rule refuses them.
inline bool build(program& p, const op_case& c, std::span<const aval> types, const aval* out_type) {
  const std::vector<value> inputs = add_inputs(p.g, types);
  try {
    const spec_value spec = out_type == nullptr ? spec_value{} : graph::spec_of(*out_type);
    const value y = c.build(inputs, out_type == nullptr ? nullptr : &spec);
    const differentiated d = add_gradients(p.g, y, inputs);
    p.g.outputs = {{y.id, -1}, {d.loss.id, -1}};
    for (int id : d.gradients) p.g.outputs.push_back({id, -1});
  } catch (const std::logic_error&) {
    return false;
  }
  return true;
}

inline void fill(program& p, const op_case& c) {
  std::mt19937 bits(3);
  for (std::size_t i = 0; i < p.g.parameters.size(); ++i) {
    const aval& type = p.g.type(p.g.parameters[i]);
    p.inputs.push_back(
        to_bytes(draw(i < c.inputs.size() ? c.inputs[i] : input{{}, 1, 4, true}, type.size(), bits), type.type));
  }
}

/// Every choice of one spec an operand and, where the operation takes one, one spec for the result; at most `limit` of
/// them, evenly.
inline int check_specs(const op_case& c, const mesh_value& mesh, dtype floating, std::size_t limit) {
  std::vector<std::vector<aval>> choices;
  for (const input& i : c.inputs) choices.push_back(all_specs(type_of(i, floating), mesh));
  if (c.takes_out_spec) {
    program plain;
    std::vector<aval> types;
    for (const input& i : c.inputs) types.push_back(type_of(i, floating));
    plain.g.mesh = mesh;
    REQUIRE(build(plain, c, types, nullptr));
    choices.push_back(all_specs(plain.g.type(plain.g.outputs[0].node), mesh));
    choices.back().insert(choices.back().begin(), aval{});  // no spec is asked for
  }
  std::size_t all = 1;
  for (const auto& list : choices) all *= list.size();
  const std::size_t stride =
      std::max<std::size_t>(1, all / limit) | 1U;  // odd, so that every spec of every operand is met
  int legal = 0;
  for (std::size_t number = 0; number < all; number += stride) {
    program p;
    p.g.mesh = mesh;
    std::vector<aval> types;
    std::size_t rest = number;
    for (const auto& list : choices) {
      types.push_back(list[rest % list.size()]);
      rest /= list.size();
    }
    const aval out = types.back();
    const bool chosen = c.takes_out_spec && out != aval{};
    if (c.takes_out_spec) types.pop_back();
    if (!build(p, c, types, chosen ? &out : nullptr)) continue;
    ++legal;
    fill(p, c);
    std::string what = c.name;
    for (const aval& type : types) what += " " + text_of(type, mesh);
    if (chosen) what += " -> " + text_of(out, mesh);
    INFO(what);
    const bool whole = std::all_of(c.inputs.begin(), c.inputs.end(), [](const input& i) { return i.whole; });
    const double rounding = floating == dtype::f32 ? 1e-6 : 1e-13;
    check_against_one_device(p, whole && !c.order_matters ? 0 : rounding);
  }
  return legal;
}

inline void check_meshes(const std::vector<op_case>& cases, std::size_t limit) {
  for (const op_case& c : cases)
    for (const mesh_value& mesh : all_meshes()) {
      check_specs(c, mesh, dtype::f64, limit);
      const int legal = check_specs(c, mesh, dtype::f32, limit);
      INFO(c.name << " on " << mesh.devices() << " devices");
      CHECK(legal >= 1);
    }
}

}  // namespace runtime_test
