// SPDX-License-Identifier: Apache-2.0
// Loops and branches on many examples at once: each is one loop whose body has the examples along leading dimensions.
#pragma once

#include <tessera/transform/batch.hpp>
#include <tessera/transform/bodies.hpp>

namespace tessera::transform {

/// A body for many examples, and which of its outputs depend on them.
struct batched_body {
  graph::graph body{};
  graph::list<char> batched{};
};

/// `body` with parameters of which some are batched. Outputs are batched where they have to be or `wanted` says.
constexpr batched_body batch_body(const graph::graph& body, const graph::list<char>& parameters,
                                  const graph::list<char>& wanted, dim examples) {
  batched_body made;
  made.body.mesh = body.mesh;
  batcher pass(made.body, body, examples);
  for (std::size_t p = 0; p < body.parameters.size(); ++p) {
    const aval& type = body.type(body.parameters[p]);
    pass.image(body.parameters[p]) = {made.body.add_parameter(parameters[p] ? pass.many(type) : type),
                                      parameters[p] != 0};
  }
  pass.run();
  for (std::size_t o = 0; o < body.outputs.size() && !pass.failed; ++o) {
    const batch_image out = pass.image(body.outputs[o].node);
    made.batched.push_back(out.batched || wanted[o]);
    made.body.outputs.push_back({made.batched.back() ? pass.all(out).id : out.id, -1});
  }
  return made;
}

/// A control node while it is mapped.
struct control_batcher {
  batcher& pass;
  int id;
  graph::control c;
  graph::list<batch_image> arguments{};
  graph::list<char> parameters{};  ///< of bodies: whether each is batched
  graph::list<char> results{};

  constexpr control_batcher(batcher& b, int node) : pass(b), id(node), c(graph::control_of(b.from.at(node))) {
    for (int argument : graph::arguments_of(pass.from, id)) arguments.push_back(pass.image(argument));
    parameters.push_back(0);
    for (std::size_t i = static_cast<std::size_t>(c.leading()); i < arguments.size(); ++i)
      parameters.push_back(arguments[i].batched ? 1 : 0);
    const bool custom = c.kind == graph::control_kind::custom_gradient;
    const std::size_t outputs = pass.from.bodies[static_cast<std::size_t>(c.body)].outputs.size();
    results.resize(custom ? static_cast<std::size_t>(c.stacked) : outputs, 0);
  }

  constexpr const graph::graph& body(int b) const { return pass.from.bodies[static_cast<std::size_t>(c.body + b)]; }

  /// The nodes of the arguments: carries batched as they have to be, stacked arrays with their trips in front.
  constexpr graph::list<int> nodes() {
    graph::list<int> ids;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::size_t p = i + 1 - static_cast<std::size_t>(c.leading());
      const bool leading = i < static_cast<std::size_t>(c.leading());
      value v = !leading && parameters[p] ? pass.all(arguments[i]) : pass.plain(arguments[i]);
      if (c.is_stacked(i) && parameters[p]) v = move_dim(v, 1, 0);
      ids.push_back(v.id);
    }
    return ids;
  }

  /// Bodies for the batched parameters; a carry is batched if what becomes of it is. False if something cannot be
  /// mapped.
  constexpr bool map_bodies(graph::list<graph::graph>& made) {
    for (bool stable = false; !stable;) {
      stable = true;
      made.clear();
      for (int b = 0; b < c.bodies() && stable; ++b) {
        const batched_body mapped = batch_body(body(b), parameters, results, pass.examples);
        if (mapped.body.fault.what != message::none) return pass.fail(mapped.body.fault), false;
        made.push_back(mapped.body);
        stable = b == 0 || mapped.batched == results;
        results = mapped.batched;
      }
      for (int i = 0; i < c.carries; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (parameters[at + 1] != results[at]) parameters[at + 1] = results[at] = 1, stable = false;
      }
    }
    return true;
  }

  /// Result nodes of control node `node`; those of trips side by side get their examples in front.
  constexpr void take_results(int node) {
    for (int i = id + 1; i < pass.from.size(); ++i) {
      const graph::node& n = pass.from.at(i);
      if (n.code != op::result || n.operands[0] != id) continue;
      const auto number = static_cast<std::size_t>(n.attribute[0]);
      const bool many = number < results.size() && results[number];
      aval type = many ? pass.many(n.type) : n.type;
      const bool trips = c.kind == graph::control_kind::scan && static_cast<int>(number) >= c.carries;
      if (many && trips) {
        const dim first = type.dims[0];
        type.dims[0] = type.dims[1];
        type.dims[1] = first;
      }
      value v{&pass.into, graph::add_result(pass.into, node, static_cast<int>(number), type)};
      if (many && trips) v = move_dim(v, 1, 0);
      pass.image(i) = {v.id, many};
    }
  }

  constexpr void write(const graph::list<graph::graph>& bodies) {
    const graph::list<int> ids = nodes();
    if (pass.failed) return;
    c.body = static_cast<int>(pass.into.bodies.size());
    for (const graph::graph& b : bodies) pass.into.bodies.push_back(b);
    const int node = graph::add_control(pass.into, c, ids);
    pass.into.at(node).policy = pass.from.at(id).policy;
    take_results(node);
  }

  /// Examples that go both ways: both branches are run, each result is chosen by example.
  constexpr void choose() {
    graph::list<batch_image> made[2];
    for (int b = 0; b < 2 && !pass.failed; ++b) {
      batcher branch(pass.into, body(b), pass.examples);
      branch.image(body(b).parameters[0]) = {graph::constant(&pass.into, dtype::i32, 0).id, false};
      for (std::size_t p = 1; p < body(b).parameters.size(); ++p) branch.image(body(b).parameters[p]) = arguments[p];
      branch.run();
      pass.failed = branch.failed;
      for (const graph::output& out : body(b).outputs) made[b].push_back(branch.image(out.node));
    }
    for (int i = id + 1; i < pass.from.size() && !pass.failed; ++i) {
      const graph::node& n = pass.from.at(i);
      if (n.code != op::result || n.operands[0] != id) continue;
      const auto number = static_cast<std::size_t>(n.attribute[0]);
      const value yes = pass.all(made[0][number]), no = pass.all(made[1][number]);
      if (pass.failed) return;
      const value chosen = graph::select(pass.aligned(arguments[0], n.type.rank), yes, no);
      pass.image(i) = {chosen.id, true};
    }
  }

  /// The body of a while loop for the parameters as they are batched; a carry is if what becomes of it is.
  constexpr batched_body map_trips() {
    for (;;) {
      batched_body made = batch_body(body(1), parameters, results, pass.examples);
      if (made.body.fault.what != message::none) return made;
      results = made.batched;
      bool stable = true;
      for (std::size_t i = 0; i < results.size(); ++i) {
        stable = stable && parameters[i + 1] == results[i];
        parameters[i + 1] = results[i] = results[i] | parameters[i + 1];
      }
      if (stable) return made;
    }
  }

  /// Examples that stop at different trips: the loop goes on while one of them does, the others keep their carries.
  constexpr void hold_finished(graph::graph& asked, graph::graph& trips) {
    graph::list<int> given;
    for (int p : trips.parameters) given.push_back(p);
    const value goes_on{&trips, embed(trips, asked, given)[static_cast<std::size_t>(asked.outputs[0].node)]};
    batcher held(trips, body(1), pass.examples);
    for (std::size_t i = 0; i < trips.outputs.size(); ++i) {
      const value before{&trips, trips.parameters[i + 1]}, after{&trips, trips.outputs[i].node};
      const value each = held.aligned({goes_on.id, true}, before.type().rank - 1);
      trips.outputs[i].node = graph::select(each, after, before).id;
    }
    const value all{&asked, asked.outputs[0].node};
    const value some = graph::reduce(op::reduce_max, graph::convert(all, dtype::i32), 1, false);
    asked.outputs[0].node = graph::binary(op::gt, some, graph::number_like(some, 0)).id;
  }

  constexpr void repeat_while() {
    results.assign(body(1).outputs.size(), 0);
    batched_body trips = map_trips();
    batched_body asked = batch_body(body(0), parameters, {0}, pass.examples);
    if (trips.body.fault.what == message::none && asked.body.fault.what == message::none && asked.batched[0]) {
      for (std::size_t i = 0; i < results.size(); ++i) parameters[i + 1] = results[i] = 1;
      trips = map_trips();
      asked = batch_body(body(0), parameters, {0}, pass.examples);
      hold_finished(asked.body, trips.body);
    }
    if (trips.body.fault.what != message::none) return pass.fail(trips.body.fault);
    if (asked.body.fault.what != message::none) return pass.fail(asked.body.fault);
    write({asked.body, trips.body});
  }

  /// The gradient that a user wrote, for all examples. What it gives for an input that they share is added up.
  constexpr void differentiate() {
    const graph::graph& back = body(0);
    const auto inputs = static_cast<std::size_t>(c.carries), outputs = static_cast<std::size_t>(c.stacked);
    graph::list<char> given{0}, wanted;
    const auto batched = [&](std::size_t argument) { return arguments[argument].batched ? char{1} : char{0}; };
    for (std::size_t k = 0; k < static_cast<std::size_t>(c.trips); ++k) given.push_back(batched(inputs + outputs + k));
    for (std::size_t r = 0; r < outputs; ++r) given.push_back(batched(inputs + r));
    for (std::size_t k = given.size(); k < back.parameters.size(); ++k)
      given.push_back(batched(inputs + k - 1));  // what is captured, behind the kept values
    for (std::size_t i = 0; i < inputs; ++i) wanted.push_back(batched(i));
    batched_body made = batch_body(back, given, wanted, pass.examples);
    if (made.body.fault.what != message::none) return pass.fail(made.body.fault);
    for (std::size_t i = 0; i < inputs; ++i) {
      int& out = made.body.outputs[i].node;
      const aval& one = back.type(back.outputs[i].node);
      if (!made.batched[i] || wanted[i] || !is_floating(one.type)) continue;
      const spec_value spec = graph::spec_of(one);
      out = graph::reduce(op::reduce_sum, {&made.body, out}, 1, false, &spec).id;
    }
    for (std::size_t r = 0; r < outputs; ++r) results[r] = batched(inputs + r);
    parameters.assign(parameters.size(), 0);
    for (std::size_t i = 0; i < arguments.size(); ++i) parameters[i + 1] = batched(i);
    write({made.body});
  }

  constexpr void run() {
    bool any = false;
    for (const batch_image& argument : arguments) any = any || argument.batched;
    graph::list<graph::graph> bodies;
    if (!any) {
      for (int b = 0; b < c.bodies(); ++b) bodies.push_back(body(b));
      write(bodies);
    } else if (c.kind == graph::control_kind::while_loop) {
      repeat_while();
    } else if (c.kind == graph::control_kind::custom_gradient) {
      differentiate();
    } else if (c.kind == graph::control_kind::branch && arguments[0].batched) {
      choose();
    } else if (map_bodies(bodies)) {
      write(bodies);
    }
  }
};

constexpr void batcher::visit_control(int id) { control_batcher(*this, id).run(); }

}  // namespace tessera::transform
