// SPDX-License-Identifier: Apache-2.0
// The steps of all units. Control nodes become a step that is followed by the steps of their bodies; carries and slices
// have memory of their own.
#pragma once

#include <tessera/graph/control.hpp>
#include <tessera/transform/lifetimes.hpp>
#include <tessera/transform/lower_collectives.hpp>
#include <tessera/transform/lower_movement.hpp>
#include <tessera/transform/lowering.hpp>
#include <tessera/transform/recompute.hpp>
#include <tessera/transform/schedule.hpp>

namespace tessera::transform {

/// Appends the steps of a graph or a body, in the order of the schedule.
constexpr void lower_units(lowering& pass);

/// Lowers one control node. A carry has one buffer for all trips: it starts with the argument, the body reads it there,
/// and what the body makes of it is written over it, in place where nothing reads it later. Slices of stacked arrays
/// are windows.
struct control_lowering {
  lowering& outer;
  graph::program& out;
  int id;
  graph::control c;
  graph::list<int> arguments;
  graph::list<int> nodes{};       ///< by result: its node, or -1 if nobody asks for it
  graph::list<int> results{};     ///< by result: its buffer
  graph::list<int> stack_of{};    ///< by carry: the buffer of the stack it lives in, or -1
  graph::list<int> copied_out{};  ///< pairs of buffers: what is copied behind the loop, and where to
  std::size_t at = 0;             ///< the control step
  int trip = -1;                  ///< the buffer of the number of the trip

  constexpr control_lowering(lowering& pass, const graph::list<int>& members)
      : outer(pass),
        out(pass.out),
        id(members[0]),
        c(graph::control_of(pass.g.at(members[0]))),
        arguments(graph::arguments_of(pass.g, members[0])) {
    nodes.resize(last_body().outputs.size(), -1);
    results.resize(nodes.size(), -1);
    stack_of.resize(carries(), -1);
    for (std::size_t m = 1; m < members.size(); ++m)
      nodes[static_cast<std::size_t>(outer.g.at(members[m]).attribute[0])] = members[m];
    if (c.kind == graph::control_kind::scan)
      for (std::size_t r = carries(); r < results.size(); ++r) stack_carry(r);
    for (std::size_t r = 0; r < results.size(); ++r)
      if (results[r] < 0) results[r] = result_buffer(r);
  }

  constexpr std::size_t carries() const { return static_cast<std::size_t>(c.carries); }

  /// The body that makes the results.
  constexpr const graph::graph& last_body() const {
    return outer.g.bodies[static_cast<std::size_t>(c.body + c.bodies() - 1)];
  }
  constexpr int made_by_body(std::size_t r) const { return last_body().outputs[r].node; }

  /// Whether the memory of result node `node` is chosen elsewhere: it is a result of the program or of a body.
  constexpr bool is_placed(int node) const {
    if (node < 0) return false;
    for (const graph::output& o : outer.g.outputs)
      if (stored_node(outer.g, o.node) == node) return true;
    return outer.buffer_of[static_cast<std::size_t>(node)] >= 0;
  }

  /// If result `r` is a carry as it comes in, the carry lives in the stack, and what the last trip makes beside it:
  /// behind it, or before it if the last slice comes first.
  constexpr void stack_carry(std::size_t r) {
    const int j = c.carry_at(last_body(), made_by_body(r));
    if (j < 0 || is_placed(nodes[r])) return;
    const auto carry = static_cast<std::size_t>(j);
    const aval slice = last_body().type(made_by_body(r));
    const int stack = temporary(graph::stacked(slice, c.trips));
    const int last = temporary(slice);
    if (c.reverse) out.buffers[static_cast<std::size_t>(stack)].follows = last;
    else out.buffers[static_cast<std::size_t>(last)].follows = stack;
    stack_of[carry] = results[r] = stack;
    if (nodes[r] >= 0) outer.buffer_of[static_cast<std::size_t>(nodes[r])] = stack;
    start_in(arguments[carry], still_window(stack, slice, c.reverse ? (c.trips - 1) * slice.bytes() : 0));
    results[carry] = last;
    if (is_placed(nodes[carry])) {
      copied_out.push_back(last);
      copied_out.push_back(outer.buffer(nodes[carry]));
    } else if (nodes[carry] >= 0) {
      outer.buffer_of[static_cast<std::size_t>(nodes[carry])] = last;
    }
  }

  /// The argument is made where the first trip reads it, or copied there.
  constexpr void start_in(int argument, int place) {
    const int start = outer.buffer(argument);
    graph::buffer& given = out.buffers[static_cast<std::size_t>(start)];
    if (!used_here_only(argument) || given.where != graph::space::temporary) return copy(start, place);
    given.where = graph::space::window;
    given.place = place;
  }

  /// Whether nothing but this node uses node `argument`, so that a carry may start in its memory.
  constexpr bool used_here_only(int argument) const {
    const int stored = stored_node(outer.g, argument);
    if (outer.g.at(stored).code == op::parameter || outer.g.at(stored).code == op::constant) return false;
    return outer.uses[static_cast<std::size_t>(stored)] == 1;
  }

  /// The buffer of result `r`. A carry lies where its argument lies, or the argument is copied.
  constexpr int result_buffer(std::size_t r) {
    const int node = nodes[r];
    const aval type = graph::result_type(c, last_body(), static_cast<int>(r));
    if (r >= carries()) return node >= 0 ? outer.buffer(node) : temporary(type);
    const int start = outer.buffer(arguments[r]);
    if (used_here_only(arguments[r]) && (node < 0 || outer.buffer_of[static_cast<std::size_t>(node)] < 0)) {
      if (node >= 0) outer.buffer_of[static_cast<std::size_t>(node)] = start;
      return start;
    }
    const int carry = node >= 0 ? outer.buffer(node) : temporary(type);
    copy(start, carry);
    return carry;
  }

  constexpr int temporary(const aval& type) { return outer.add_buffer(graph::space::temporary, 0, type); }

  constexpr void copy(int from, int to) { out.steps.push_back(copy_step(out, from, to)); }

  /// A part of `whole` that stays.
  constexpr int still_window(int whole, const aval& part, std::int64_t offset) {
    const int made = outer.add_buffer(graph::space::window, whole, part);
    out.buffers[static_cast<std::size_t>(made)].offset = offset;
    return made;
  }

  /// The part of `whole` that belongs to a trip.
  constexpr int window(int whole, const aval& slice, std::int64_t stride, std::int64_t offset = 0) {
    const int made = still_window(whole, slice, offset);
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
    const fused_graph fused = fuse_and_recompute(body);
    lowering pass(fused.g, fused.f, out);
    bind_parameters(pass, fused.g);
    for (std::size_t o = 0; o < targets.size(); ++o)
      if (targets[o] >= 0) pass.buffer_of[static_cast<std::size_t>(fused.g.outputs[o].node)] = targets[o];
    lower_units(pass);
    for (std::size_t o = 0; o < targets.size(); ++o) targets[o] = pass.buffer(fused.g.outputs[o].node);
    return static_cast<std::int64_t>(out.steps.size() - before);
  }

  constexpr void bind_parameters(lowering& pass, const graph::graph& body) {
    pass.buffer_of[static_cast<std::size_t>(body.parameters[0])] = trip;
    const auto leading = static_cast<std::size_t>(c.leading());
    for (std::size_t i = 0; i + leading < arguments.size(); ++i) {
      const int parameter = body.parameters[i + 1];
      const bool carry = static_cast<int>(i) < c.carries;
      int from = carry ? results[i] : outer.buffer(arguments[i + leading]);
      const bool sliced = carry ? stack_of[i] >= 0 : static_cast<int>(i) < c.carries + c.stacked;
      if (sliced) from = window(carry ? stack_of[i] : from, body.type(parameter), body.type(parameter).bytes());
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
    for (std::size_t j = 0; j < carries(); ++j)
      if (stack_of[j] < 0) carry_on(j, made[j], lives);
  }

  /// Where the body of a scan writes result `r`, or -1 where any place will do. A carry that is stacked as it comes in
  /// is copied, unless it lives in the stack.
  constexpr int target(std::size_t r) {
    const aval& slice = last_body().type(made_by_body(r));
    if (r < carries())
      return stack_of[r] < 0 ? -1 : window(stack_of[r], slice, slice.bytes(), (c.reverse ? -1 : 1) * slice.bytes());
    const int j = c.carry_at(last_body(), made_by_body(r));
    if (j < 0) return window(results[r], slice, slice.bytes());
    if (stack_of[static_cast<std::size_t>(j)] < 0)
      copy(results[static_cast<std::size_t>(j)], window(results[r], slice, slice.bytes()));
    return -1;
  }

  constexpr void scan() {
    open(graph::step_kind::scan);
    graph::list<int> targets;
    for (std::size_t r = 0; r < results.size(); ++r) targets.push_back(target(r));
    lower_body(last_body(), targets);
    carry_all_on(targets);
    step().sizes[graph::second_steps] = static_cast<std::int64_t>(out.steps.size() - at - 1);
    close();
    for (std::size_t p = 0; p < copied_out.size(); p += 2) copy(copied_out[p], copied_out[p + 1]);
  }

  constexpr void while_loop() {
    open(graph::step_kind::while_loop);
    graph::list<int> choice(1, -1);
    step().sizes[graph::first_steps] = lower_body(outer.g.bodies[static_cast<std::size_t>(c.body)], choice);
    step().sizes[graph::choice_buffer] = choice[0];
    graph::list<int> targets(results.size(), -1);
    lower_body(last_body(), targets);
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
    lower_body(last_body(), targets);
  }
};

/// Appends the steps of a control node and of its bodies.
constexpr void lower_control(lowering& pass, const graph::list<int>& members) {
  control_lowering lower(pass, members);
  switch (lower.c.kind) {
    case graph::control_kind::scan: return lower.scan();
    case graph::control_kind::while_loop: return lower.while_loop();
    case graph::control_kind::branch: return lower.branch();
    case graph::control_kind::call: return lower.call();
    case graph::control_kind::custom_gradient: throw std::logic_error("lowering: a custom gradient is no step");
  }
}

constexpr void lower_unit(lowering& pass, int number) {
  const graph::list<int> members = pass.f.members(number);
  const int id = members[0];
  switch (pass.g.at(id).code) {
    case op::overlap_add:
    case op::dynamic_slice:
    case op::dynamic_update:
    case op::gather:
    case op::scatter:
    case op::update_slice:
      if (pass.in_place[static_cast<std::size_t>(id)] == piece_place::elsewhere) lower_movement(pass, id);
      return;
    case op::control: return lower_control(pass, members);
    case op::all_reduce:
    case op::all_gather:
    case op::reduce_scatter:
    case op::all_to_all:
    case op::permute: return lower_collective(pass, members);
    default: return pass.own_step(number, members);
  }
}

constexpr void lower_units(lowering& pass) {
  pass.mark_needed();
  pass.place_pieces();
  for (int number : schedule(pass.g, pass.f, pass.in_place)) lower_unit(pass, number);
}

}  // namespace tessera::transform
