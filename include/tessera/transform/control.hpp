// SPDX-License-Identifier: Apache-2.0
// Control nodes become a step that is followed by the steps of their bodies; carries and slices have memory of their
// own.
#pragma once

#include <tessera/graph/control.hpp>
#include <tessera/transform/lifetimes.hpp>
#include <tessera/transform/lowering.hpp>

namespace tessera::transform {

/// Lowers one control node. A carry has one buffer for all trips: it starts with the argument, the body reads it there,
/// and what the body makes of it is written over it, in place where nothing reads it later. Slices of stacked arrays are
/// windows.
struct control_lowering {
  lowering& outer;
  graph::program& out;
  int id;
  graph::control c;
  graph::list<int> arguments;
  graph::list<int> results{};  ///< buffers of the node's results
  std::size_t at = 0;          ///< the control step
  int trip = -1;               ///< the buffer of the number of the trip

  constexpr control_lowering(lowering& pass, const graph::list<int>& members)
      : outer(pass),
        out(pass.out),
        id(members[0]),
        c(graph::control_of(pass.g.at(members[0]))),
        arguments(graph::arguments_of(pass.g, members[0])) {
    const graph::graph& body = first_body();
    results.resize(body.outputs.size(), -1);
    if (c.kind == graph::control_kind::while_loop) results.resize(static_cast<std::size_t>(c.carries), -1);
    for (std::size_t m = 1; m < members.size(); ++m)
      results[static_cast<std::size_t>(outer.g.at(members[m]).attribute[0])] = members[m];
    for (std::size_t r = 0; r < results.size(); ++r) results[r] = result_buffer(r);
  }

  /// The body that makes the results.
  constexpr const graph::graph& first_body() const {
    const bool loops = c.kind == graph::control_kind::while_loop;
    return outer.g.bodies[static_cast<std::size_t>(c.body + (loops ? 1 : 0))];
  }

  /// Whether nothing but this node uses node `argument`, so that a carry may start in its memory.
  constexpr bool used_here_only(int argument) const {
    const int stored = stored_node(outer.g, argument);
    if (outer.g.at(stored).code == op::parameter || outer.g.at(stored).code == op::constant) return false;
    return outer.uses[static_cast<std::size_t>(stored)] == 1;
  }

  /// The buffer of result `r`; `results[r]` is its node, or -1 if nobody asks for it. A carry lies where its argument
  /// lies, or the argument is copied.
  constexpr int result_buffer(std::size_t r) {
    const int node = results[r];
    const aval type = graph::result_type(c, first_body(), static_cast<int>(r));
    if (static_cast<int>(r) >= c.carries) return node >= 0 ? outer.buffer(node) : temporary(type);
    const int argument = arguments[r];
    const int start = outer.buffer(argument);
    if (used_here_only(argument)) {
      if (node >= 0) outer.buffer_of[static_cast<std::size_t>(node)] = start;
      return start;
    }
    const int carry = node >= 0 ? outer.buffer(node) : temporary(type);
    copy(start, carry);
    return carry;
  }

  constexpr int temporary(const aval& type) { return outer.add_buffer(graph::space::temporary, 0, type); }

  constexpr void copy(int from, int to) {
    const graph::buffer& b = out.buffers[static_cast<std::size_t>(to)];
    graph::step s;
    s.kind = graph::step_kind::copy_out;
    s.varying = b.varying;
    s.first = static_cast<int>(out.accesses.size());
    s.sources = s.results = 1;
    s.bytes = 2 * b.bytes;
    out.accesses.push_back({from});
    out.accesses.push_back({to});
    out.steps.push_back(s);
  }

  /// The part of `whole` that belongs to a trip.
  constexpr int window(int whole, const aval& slice, std::int64_t stride) {
    const int made = outer.add_buffer(graph::space::window, whole, slice);
    out.buffers[static_cast<std::size_t>(made)].loop = static_cast<int>(step().sizes[graph::loop_number]);
    out.buffers[static_cast<std::size_t>(made)].stride = stride;
    return made;
  }

  constexpr graph::step& step() { return out.steps[at]; }

  constexpr void open(graph::step_kind kind) {
    graph::step s;
    s.kind = kind;
    s.sizes[graph::trips] = c.trips;
    s.sizes[graph::loop_number] = out.loops++;
    s.sizes[graph::backwards] = c.reverse ? 1 : 0;
    s.sizes[graph::choice_buffer] = -1;
    trip = temporary(scalar_aval(dtype::i32));
    at = out.steps.size();
    out.steps.push_back(s);
  }

  /// The control step reads its arguments and writes its results.
  constexpr void close() {
    const auto first = static_cast<int>(out.accesses.size());
    bool counts = false;
    for (std::size_t i = at + 1; i < out.steps.size(); ++i)
      for (int a = out.steps[i].first; a < out.steps[i].first + out.steps[i].sources; ++a)
        counts |= out.accesses[static_cast<std::size_t>(a)].buffer == trip;
    for (int argument : arguments) out.accesses.push_back({outer.buffer(argument)});
    for (int result : results) out.accesses.push_back({result});
    if (counts) out.accesses.push_back({trip});
    step().first = first;
    step().sources = static_cast<int>(arguments.size());
    step().results = static_cast<int>(results.size()) + (counts ? 1 : 0);
    step().sizes[graph::trip_buffer] = counts ? trip : -1;
  }

  /// Appends the steps of a body whose outputs have the buffers `targets`, or -1 where any will do; returns how many
  /// there are, and leaves the buffers of its outputs in `targets`.
  constexpr std::int64_t lower_body(const graph::graph& body, graph::list<int>& targets) {
    const std::size_t before = out.steps.size();
    const fusion f = fuse(body);
    lowering pass(body, f, out);
    bind_parameters(pass, body);
    for (std::size_t o = 0; o < targets.size(); ++o)
      if (targets[o] >= 0) pass.buffer_of[static_cast<std::size_t>(body.outputs[o].node)] = targets[o];
    pass.lower_units();
    for (std::size_t o = 0; o < targets.size(); ++o) targets[o] = pass.buffer(body.outputs[o].node);
    return static_cast<std::int64_t>(out.steps.size() - before);
  }

  constexpr void bind_parameters(lowering& pass, const graph::graph& body) {
    pass.buffer_of[static_cast<std::size_t>(body.parameters[0])] = trip;
    const auto leading = static_cast<std::size_t>(c.leading());
    for (std::size_t i = 0; i + leading < arguments.size(); ++i) {
      const int parameter = body.parameters[i + 1];
      const bool carry = static_cast<int>(i) < c.carries;
      int from = carry ? results[i] : outer.buffer(arguments[i + leading]);
      if (!carry && static_cast<int>(i) < c.carries + c.stacked)
        from = window(from, body.type(parameter), body.type(parameter).bytes());
      pass.buffer_of[static_cast<std::size_t>(parameter)] = from;
    }
  }

  /// What the body made of carry `j`, in buffer `made`, becomes the carry of the next trip.
  constexpr void carry_on(std::size_t j, int made, const lifetimes& lives) {
    const int carry = results[j];
    if (made == carry) return;
    const int birth = lives.born[static_cast<std::size_t>(made)];
    const int last_read = lives.dies[static_cast<std::size_t>(carry)];
    const bool temporary_here = out.buffers[static_cast<std::size_t>(made)].where == graph::space::temporary;
    const bool free = last_read < birth ||
                      (last_read == birth && reads_in_place(out, out.steps[static_cast<std::size_t>(birth)], carry));
    if (free && temporary_here && birth > static_cast<int>(at)) {
      graph::buffer& b = out.buffers[static_cast<std::size_t>(made)];
      b.where = graph::space::window;
      b.place = carry;
      b.loop = static_cast<int>(step().sizes[graph::loop_number]);
    } else {
      copy(made, carry);
    }
  }

  constexpr void carry_all_on(const graph::list<int>& made) {
    const lifetimes lives(out);
    for (std::size_t j = 0; j < static_cast<std::size_t>(c.carries); ++j) carry_on(j, made[j], lives);
  }

  constexpr void scan() {
    open(graph::step_kind::scan);
    const graph::graph& body = first_body();
    graph::list<int> targets(results.size(), -1);
    for (std::size_t r = static_cast<std::size_t>(c.carries); r < results.size(); ++r) {
      const aval& slice = body.type(body.outputs[r].node);
      targets[r] = window(results[r], slice, slice.bytes());
    }
    lower_body(body, targets);
    carry_all_on(targets);
    step().sizes[graph::second_steps] = static_cast<std::int64_t>(out.steps.size() - at - 1);
    close();
  }

  constexpr void while_loop() {
    open(graph::step_kind::while_loop);
    graph::list<int> choice(1, -1);
    step().sizes[graph::first_steps] = lower_body(outer.g.bodies[static_cast<std::size_t>(c.body)], choice);
    step().sizes[graph::choice_buffer] = choice[0];
    graph::list<int> targets(results.size(), -1);
    lower_body(first_body(), targets);
    carry_all_on(targets);
    step().sizes[graph::second_steps] =
        static_cast<std::int64_t>(out.steps.size() - at - 1) - step().sizes[graph::first_steps];
    close();
  }

  constexpr void branch() {
    open(graph::step_kind::branch);
    step().sizes[graph::choice_buffer] = outer.buffer(arguments[0]);
    graph::list<int> targets = results;
    step().sizes[graph::first_steps] = lower_body(outer.g.bodies[static_cast<std::size_t>(c.body)], targets);
    step().sizes[graph::second_steps] = lower_body(outer.g.bodies[static_cast<std::size_t>(c.body + 1)], targets);
    close();
  }

  /// The steps of a body that runs once stand among those around them.
  constexpr void call() {
    graph::list<int> targets = results;
    lower_body(first_body(), targets);
  }
};

constexpr void lower_control(lowering& pass, const graph::list<int>& members) {
  control_lowering lower(pass, members);
  switch (lower.c.kind) {
    case graph::control_kind::scan: return lower.scan();
    case graph::control_kind::while_loop: return lower.while_loop();
    case graph::control_kind::branch: return lower.branch();
    case graph::control_kind::call: return lower.call();
  }
}

}  // namespace tessera::transform
