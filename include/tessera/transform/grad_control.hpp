// SPDX-License-Identifier: Apache-2.0
// Gradients of loops and branches: the body of a loop is differentiated once, and what its transpose needs of the
// forward trips is stacked.
#pragma once

#include <tessera/graph/control.hpp>
#include <tessera/transform/bodies.hpp>
#include <tessera/transform/grad.hpp>
#include <tessera/transform/host_moves.hpp>
#include <tessera/transform/partial_evaluation.hpp>

#include <stdexcept>

namespace tessera::transform {

/// What could not be differentiated in a body is a fault of the trace.
constexpr void pass_fault_on(const graph::graph& joint, graph::graph& g) { g.outermost().report(joint.fault); }

/// Differentiates a scan: `joint` is its body with the transpose of the body behind it; values of the former that the
/// latter uses become stacked results of the one loop and stacked arguments of the other.
struct scan_gradient {
  graph::graph& g;
  int id;
  graph::control c;
  graph::list<int> arguments;
  const control_cotangents_in& in;
  policies around;
  graph::list<char> active;  ///< by argument: whether it has a cotangent
  graph::graph joint{};
  graph::list<int> forward{};   ///< parameters of the body in `joint`: trip, carries, stacked, captured
  graph::list<int> made{};      ///< outputs of the body in `joint`
  graph::list<int> carried{};   ///< parameters of the transpose: cotangents of carries, then sums for captured values
  graph::list<int> incoming{};  ///< and cotangents of stacked results, with
  graph::list<int> stacks{};    ///< the nodes of `g` they are slices of
  graph::list<int> saved{};     ///< nodes of `joint`

  constexpr scan_gradient(graph::graph& graph_in, int node, const control_cotangents_in& given,
                          policies policies_around)
      : g(graph_in),
        id(node),
        c(graph::control_of(graph_in.at(node))),
        arguments(graph::arguments_of(graph_in, node)),
        in(given),
        around(policies_around),
        active(given.wanted) {
    joint.mesh = g.mesh;
  }

  constexpr const graph::graph& body() const { return g.bodies[static_cast<std::size_t>(c.body)]; }
  constexpr std::size_t carries() const { return static_cast<std::size_t>(c.carries); }
  constexpr std::size_t captured() const { return static_cast<std::size_t>(c.carries + c.stacked); }
  constexpr int of_result(std::size_t r) const { return r < in.of_results.size() ? in.of_results[r] : -1; }

  /// A carry that depends on an active argument through any number of trips is active.
  constexpr void settle_active() {
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (!is_floating(g.type(arguments[i]).type)) active[i] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      graph::list<int> wrt;
      for (std::size_t i = 0; i < arguments.size(); ++i)
        if (active[i]) wrt.push_back(body().parameters[i + 1]);
      const graph::list<char> depends = depends_on(body(), body().size() - 1, wrt);
      for (std::size_t j = 0; j < carries(); ++j) {
        const int out = body().outputs[j].node;
        if (active[j] || !depends[static_cast<std::size_t>(out)] || !is_floating(body().type(out).type)) continue;
        active[j] = 1;
        changed = true;
      }
    }
  }

  /// The body and its transpose; returns the cotangents of the active arguments in one trip.
  constexpr graph::list<int> differentiate() {
    forward.push_back(joint.add_parameter(scalar_aval(dtype::i32)));
    for (std::size_t i = 0; i < arguments.size(); ++i)
      forward.push_back(joint.add_parameter(body().type(body().parameters[i + 1])));
    const graph::list<int> place = embed(joint, body(), forward);
    for (const graph::output& o : body().outputs) made.push_back(place[static_cast<std::size_t>(o.node)]);
    graph::list<seed> seeds;
    for (std::size_t j = 0; j < carries(); ++j) {
      if (!active[j]) continue;
      carried.push_back(joint.add_parameter(cotangent_type(joint.type(made[j]))));
      seeds.push_back({made[j], carried.back()});
    }
    for (std::size_t r = carries(); r < made.size(); ++r) {
      if (of_result(r) < 0) continue;
      incoming.push_back(joint.add_parameter(cotangent_type(joint.type(made[r]))));
      stacks.push_back(of_result(r));
      seeds.push_back({made[r], incoming.back()});
    }
    graph::list<int> wrt;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (active[i]) wrt.push_back(forward[i + 1]);
    const graph::list<int> made_there = gradients(joint, seeds, wrt, around);
    pass_fault_on(joint, g);
    return made_there;
  }

  /// What is kept of every trip for the transpose.
  constexpr void choose_saved(const graph::list<int>& outputs) {
    graph::list<int> unknown = carried;
    unknown.insert(unknown.end(), incoming.begin(), incoming.end());
    graph::list<int> at_hand{forward[0]};
    for (std::size_t i = carries(); i < arguments.size(); ++i) at_hand.push_back(forward[i + 1]);
    saved = partial_evaluation(joint, {}, unknown, at_hand).saved_for(outputs);
  }

  constexpr int zeros(const aval& type) { return graph::full(&g, type, 0.0).id; }

  /// Cotangents of the loop's arguments; sums for captured values start from what these have so far.
  constexpr graph::list<argument_cotangent> run() {
    settle_active();
    const std::size_t results_before = body().outputs.size();
    graph::list<int> in_a_trip = differentiate();

    // Cotangents of captured values are sums over the trips.
    graph::list<int> outputs;
    graph::list<int> from_stacked;
    std::size_t next = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!active[i]) continue;
      int ct = in_a_trip[next++];
      if (i >= captured()) {
        carried.push_back(joint.add_parameter(joint.type(ct)));
        ct = (value{&joint, carried.back()} + value{&joint, ct}).id;
      }
      if (i >= carries() && i < captured()) from_stacked.push_back(ct);
      else outputs.push_back(ct);
    }
    for (int ct : from_stacked) outputs.push_back(ct);
    choose_saved(outputs);

    graph::list<int> forward_outputs = made;
    for (int s : saved) forward_outputs.push_back(s);
    const graph::list<char> moved = offloaded(joint, saved, around);
    const graph::graph forward_body =
        send_to_host(extract(joint, forward, forward_outputs, checks::keep), made.size(), moved);

    graph::control back{graph::control_kind::scan,
                        static_cast<int>(g.bodies.size()),
                        c.trips,
                        static_cast<int>(carried.size()),
                        static_cast<int>(incoming.size() + saved.size()) + c.stacked,
                        !c.reverse};
    graph::list<int> parameters{forward[0]};
    for (int p : carried) parameters.push_back(p);
    for (int p : incoming) parameters.push_back(p);
    for (std::size_t i = carries(); i < captured(); ++i) parameters.push_back(forward[i + 1]);
    const std::size_t first_saved = parameters.size();
    for (int p : saved) parameters.push_back(p);
    for (std::size_t i = captured(); i < arguments.size(); ++i) parameters.push_back(forward[i + 1]);
    g.bodies.push_back(fetch_from_host(extract(joint, parameters, outputs, checks::drop), first_saved, moved));
    g.bodies[static_cast<std::size_t>(c.body)] = forward_body;

    graph::list<int> given;
    for (std::size_t j = 0; j < carries(); ++j)
      if (active[j]) given.push_back(of_result(j) >= 0 ? of_result(j) : zeros(cotangent_type(g.type(arguments[j]))));
    for (std::size_t i = captured(); i < arguments.size(); ++i)
      if (active[i]) given.push_back(in.so_far[i] >= 0 ? in.so_far[i] : zeros(joint.type(carried[given.size()])));
    for (int s : stacks) given.push_back(s);
    for (std::size_t i = carries(); i < captured(); ++i) given.push_back(arguments[i]);
    for (std::size_t s = 0; s < saved.size(); ++s)
      given.push_back(graph::add_result(g, id, static_cast<int>(results_before + s),
                                        graph::stacked(joint.type(saved[s]), c.trips)));
    for (std::size_t i = captured(); i < arguments.size(); ++i) given.push_back(arguments[i]);
    return results_of(back, graph::add_control(g, back, given));
  }

  /// The results of the backward loop as cotangents of the forward loop's arguments.
  constexpr graph::list<argument_cotangent> results_of(const graph::control& back, int loop) {
    graph::list<argument_cotangent> result(arguments.size());
    int carry = 0;
    int stack = back.carries;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!active[i]) continue;
      const int number = i >= carries() && i < captured() ? stack++ : carry++;
      const aval type = graph::result_type(back, g.bodies[static_cast<std::size_t>(back.body)], number);
      result[i] = {graph::add_result(g, loop, number, type), i >= captured()};
    }
    return result;
  }
};

/// Where a body and its transpose stand in one graph: parameters for the trip, the incoming cotangents, and the body's
/// own; outputs are the cotangents of the wanted arguments.
struct joint_body {
  graph::graph joint{};
  graph::list<int> cotangents{};
  graph::list<int> forward{};  ///< the body's parameters
  graph::list<int> made{};     ///< its outputs
  graph::list<int> outputs{};

  /// `in` is by parameter of the body but the first: cotangents that these have so far are incoming too, so that sums
  /// have the order that they would have without the node.
  constexpr joint_body(const graph::graph& body, const control_cotangents_in& in, policies around) {
    joint.mesh = body.mesh;
    forward.push_back(joint.add_parameter(scalar_aval(dtype::i32)));
    for (std::size_t p = 1; p < body.parameters.size(); ++p)
      forward.push_back(joint.add_parameter(body.type(body.parameters[p])));
    graph::list<seed> seeds;
    graph::list<int> wrt;
    const auto come_in = [&](int node) {
      cotangents.push_back(joint.add_parameter(cotangent_type(joint.type(node))));
      seeds.push_back({node, cotangents.back()});
    };
    for (std::size_t p = 0; p < in.wanted.size(); ++p) {
      if (!in.wanted[p]) continue;
      wrt.push_back(forward[p + 1]);
      if (in.so_far[p] >= 0) come_in(forward[p + 1]);
    }
    const graph::list<int> place = embed(joint, body, forward);
    for (const graph::output& o : body.outputs) made.push_back(place[static_cast<std::size_t>(o.node)]);
    for (std::size_t r = 0; r < in.of_results.size(); ++r)
      if (in.of_results[r] >= 0) come_in(made[r]);
    outputs = gradients(joint, seeds, wrt, around);
  }

  /// The incoming cotangents in the graph around, in the order of the parameters.
  static constexpr graph::list<int> given(const control_cotangents_in& in) {
    graph::list<int> list;
    for (std::size_t p = 0; p < in.wanted.size(); ++p)
      if (in.wanted[p] && in.so_far[p] >= 0) list.push_back(in.so_far[p]);
    for (int ct : in.of_results)
      if (ct >= 0) list.push_back(ct);
    return list;
  }
};

/// Results of control node `back` as cotangents of arguments, from argument number `first` on.
constexpr graph::list<argument_cotangent> wanted_results(graph::graph& g, int back, const graph::list<int>& arguments,
                                                         const graph::list<char>& wanted, std::size_t first) {
  graph::list<argument_cotangent> result(arguments.size());
  int next = 0;
  for (std::size_t i = first; i < arguments.size(); ++i)
    if (wanted[i]) result[i] = {graph::add_result(g, back, next++, cotangent_type(g.type(arguments[i]))), true};
  return result;
}

/// The gradient of a branch is a branch: each body computes its values again and then their cotangents.
constexpr graph::list<argument_cotangent> branch_cotangents(graph::graph& g, int id, const control_cotangents_in& in,
                                                            policies around) {
  const graph::control c = graph::control_of(g.at(id));
  const graph::list<int> arguments = graph::arguments_of(g, id);
  const control_cotangents_in of_bodies{
      in.of_results, {in.so_far.begin() + 1, in.so_far.end()}, {in.wanted.begin() + 1, in.wanted.end()}};
  graph::list<int> given{arguments[0]};
  for (int ct : joint_body::given(of_bodies)) given.push_back(ct);
  given.insert(given.end(), arguments.begin() + 1, arguments.end());
  const graph::control back{graph::control_kind::branch, static_cast<int>(g.bodies.size())};
  for (int b = 0; b < 2; ++b) {
    const joint_body both(g.bodies[static_cast<std::size_t>(c.body + b)], of_bodies, around);
    pass_fault_on(both.joint, g);
    graph::list<int> parameters{both.forward[0]};
    parameters.insert(parameters.end(), both.cotangents.begin(), both.cotangents.end());
    parameters.insert(parameters.end(), both.forward.begin() + 1, both.forward.end());
    g.bodies.push_back(extract(both.joint, parameters, both.outputs, checks::drop));
  }
  return wanted_results(g, graph::add_control(g, back, given), arguments, in.wanted, 1);
}

/// The gradient of a call is a call that computes the body's values again, but for those that the policy lets the first
/// one keep. Policies of regions around it may keep values for their own sake.
constexpr graph::list<argument_cotangent> call_cotangents(graph::graph& g, int id, const control_cotangents_in& in,
                                                          policies around) {
  const graph::control c = graph::control_of(g.at(id));
  const graph::list<int> arguments = graph::arguments_of(g, id);
  graph::list<graph::policy_function> allowed(around.begin(), around.end());
  if (g.at(id).policy != nullptr) allowed.push_back(g.at(id).policy);
  const joint_body both(g.bodies[static_cast<std::size_t>(c.body)], in, allowed);
  pass_fault_on(both.joint, g);
  const graph::list<int> saved =
      partial_evaluation(both.joint, allowed, both.cotangents, both.forward).saved_for(both.outputs);

  graph::list<int> forward_outputs = both.made;
  forward_outputs.insert(forward_outputs.end(), saved.begin(), saved.end());
  graph::list<int> parameters{both.forward[0]};
  parameters.insert(parameters.end(), both.cotangents.begin(), both.cotangents.end());
  parameters.insert(parameters.end(), both.forward.begin() + 1, both.forward.end());
  parameters.insert(parameters.end(), saved.begin(), saved.end());
  graph::list<int> given = joint_body::given(in);
  given.insert(given.end(), arguments.begin(), arguments.end());
  for (std::size_t s = 0; s < saved.size(); ++s)
    given.push_back(graph::add_result(g, id, static_cast<int>(both.made.size() + s), both.joint.type(saved[s])));
  const graph::control back{graph::control_kind::call, static_cast<int>(g.bodies.size())};
  const graph::list<char> moved = offloaded(both.joint, saved, allowed);
  g.bodies.push_back(fetch_from_host(extract(both.joint, parameters, both.outputs, checks::drop),
                                     parameters.size() - saved.size(), moved));
  g.bodies[static_cast<std::size_t>(c.body)] =
      send_to_host(extract(both.joint, both.forward, forward_outputs, checks::keep), both.made.size(), moved);
  return wanted_results(g, graph::add_control(g, back, given), arguments, in.wanted, 0);
}

/// The body of a custom gradient, written where it is asked for.
constexpr graph::list<argument_cotangent> custom_cotangents(graph::graph& g, int id, const control_cotangents_in& in) {
  const graph::control c = graph::control_of(g.at(id));
  const graph::list<int> arguments = graph::arguments_of(g, id);
  const graph::graph body = g.bodies[static_cast<std::size_t>(c.body)];
  const auto inputs = static_cast<std::size_t>(c.carries);
  const auto kept = inputs + static_cast<std::size_t>(c.stacked);
  const auto captured = kept + static_cast<std::size_t>(c.trips);
  graph::list<int> parameters{graph::constant(&g, dtype::i32, 0).id};
  for (std::size_t i = kept; i < captured; ++i) parameters.push_back(arguments[i]);
  for (std::size_t r = 0; r < kept - inputs; ++r) {
    const bool given = r < in.of_results.size() && in.of_results[r] >= 0;
    parameters.push_back(given ? in.of_results[r] : graph::full(&g, g.type(arguments[inputs + r]), 0.0).id);
  }
  for (std::size_t i = captured; i < arguments.size(); ++i) parameters.push_back(arguments[i]);
  const graph::list<int> place = embed(g, body, parameters);
  graph::list<argument_cotangent> result(arguments.size());
  for (std::size_t i = 0; i < inputs; ++i) {
    const int made = body.outputs[i].node;
    if (in.wanted[i] && is_floating(body.type(made).type)) result[i].id = place[static_cast<std::size_t>(made)];
  }
  return result;
}

/// A while loop does not know how many trips it will make, so nothing can be kept for a gradient.
inline void while_loop_has_no_gradient() {
  throw std::logic_error("tessera: while_loop: it has no gradient; use scan or fori_loop with constant bounds");
}

constexpr graph::list<argument_cotangent> control_cotangents(graph::graph& g, int id, const control_cotangents_in& in,
                                                             policies around) {
  switch (graph::control_of(g.at(id)).kind) {
    case graph::control_kind::scan: return scan_gradient(g, id, in, around).run();
    case graph::control_kind::branch: return branch_cotangents(g, id, in, around);
    case graph::control_kind::call: return call_cotangents(g, id, in, around);
    case graph::control_kind::custom_gradient: return custom_cotangents(g, id, in);
    default: while_loop_has_no_gradient();
  }
  return {};
}

}  // namespace tessera::transform
