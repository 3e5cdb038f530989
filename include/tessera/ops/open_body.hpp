// SPDX-License-Identifier: Apache-2.0
// A body of a loop or branch while it is traced, and the control node that bodies become.
#pragma once

#include <tessera/graph/control.hpp>
#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/tree.hpp>

#include <span>

namespace tessera::ops {

/// A body while it is traced: operations are written there until it is closed.
class open_body {
 public:
  /// A variable from around the body that it changed, what that stood for before, and the node it stands for here.
  struct change {
    trace_handle* variable = nullptr;
    graph::graph* owner = nullptr;
    int before = -1;
    int after = -1;
  };

  graph::graph body{};
  graph::list<change> changes{};  ///< once it is closed; the variables stand for what they stood for before

  constexpr explicit open_body(graph::graph& here) : outermost_(here.outermost()), previous_(outermost_.innermost) {
    body.mesh = here.mesh;
    body.parent = &here;
    outermost_.innermost = &body;
    trip_ = body.add_parameter(scalar_aval(dtype::i32));
  }

  /// The number of the trip.
  template <class M>
  constexpr expr<scalar_aval(dtype::i32), M> trip() {
    return {{&body, trip_}};
  }

  /// A tree whose leaves are new parameters. Bodies within this one hand on what they change in it, wherever it is
  /// moved.
  template <class Form, class M>
  constexpr Form bind(Form form) {
    graph::list<int> nodes;
    for (const aval& type : leaf_types<Form, M>())
      nodes.push_back(body.add_parameter(rebind(type, M::value, body.mesh)));
    std::size_t next = 0;
    set_nodes(form, body, nodes, next);
    for_each_leaf(form, [](auto& leaf) {
      if constexpr (Variable<decltype(leaf)>) leaf.handle.watched = true;
    });
    return form;
  }

  /// The leaves of a tree are outputs.
  template <class Tree>
  constexpr void put_out(const Tree& tree) {
    graph::list<int> nodes;
    append_nodes(tree, body, nodes);
    for (int node : nodes) body.outputs.push_back({node, -1});
  }

  /// Variables from around the body stand for new parameters; what they stand for in the end is among the changes.
  constexpr void carry(const graph::list<change>& variables) {
    for (const change& c : variables) {
      body.assigned.push_back({c.variable, c.variable->owner, c.variable->id});
      const int before = body.parent->import_node(c.variable->owner, c.variable->id);
      c.variable->owner = &body;
      c.variable->id = body.add_parameter(body.parent->type(before));
    }
  }

  /// The end of what the body computes: changed variables stand for what they stood for before.
  constexpr void settle() {
    for (const graph::assignment& a : body.assigned) {
      const bool known = body.sees(a.variable->owner);
      if (!known) outermost_.report({message::scan_escape, -1, a.owner->type(a.id)});
      const int after = body.import_node(known ? a.variable->owner : a.owner, known ? a.variable->id : a.id);
      changes.push_back({a.variable, a.owner, a.id, after});
      a.variable->owner = a.owner;
      a.variable->id = a.id;
    }
    body.assigned.clear();
  }

  /// What changed is an output.
  constexpr void put_out_changes() {
    for (const change& c : changes) body.outputs.push_back({c.after, -1});
  }

  /// What a variable stands for in the end, in a closed body of `here`; `c` is how another body changed it.
  constexpr int last(graph::graph& here, const change& c) {
    for (const change& own : changes)
      if (own.variable == c.variable) return own.after;
    body.parent = &here;
    const int node = body.import_node(c.owner, c.before);
    body.parent = nullptr;
    return node;
  }

  constexpr void close() {
    settle();
    outermost_.innermost = previous_;
    body.parent = nullptr;
  }

  /// Gives the body one parameter behind those that were bound for each node of `here` in `captured`.
  constexpr void capture(const graph::graph& here, const graph::list<int>& captured) {
    graph::list<int> parameters{trip_};
    for (int p : body.parameters) {
      bool is_captured = p == trip_;
      for (const graph::capture& c : body.captures) is_captured |= c.parameter == p;
      if (!is_captured) parameters.push_back(p);
    }
    for (int outer : captured) {
      int found = -1;
      for (const graph::capture& c : body.captures)
        if (c.outer == outer) found = c.parameter;
      parameters.push_back(found >= 0 ? found : body.add_parameter(here.type(outer)));
    }
    body.parameters = parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) body.at(parameters[i]).attribute[0] = i;
    body.captures.clear();
  }

 private:
  graph::graph& outermost_;
  graph::graph* previous_;
  int trip_ = -1;
};

/// Ends the tracing of the bodies of a control node and writes it; `arguments` are those before the captured ones.
constexpr int finish(graph::graph& here, graph::control c, graph::list<int> arguments,
                     std::span<open_body* const> bodies) {
  graph::list<int> captured;
  for (const open_body* b : bodies)
    for (const graph::capture& one : b->body.captures) {
      bool known = false;
      for (int outer : captured) known |= outer == one.outer;
      if (!known) captured.push_back(one.outer);
    }
  c.body = static_cast<int>(here.bodies.size());
  for (open_body* b : bodies) {
    b->capture(here, captured);
    here.bodies.push_back(std::move(b->body));
  }
  arguments.insert(arguments.end(), captured.begin(), captured.end());
  return graph::add_control(here, c, arguments);
}

/// Variables that bodies changed stand for the results of the control node from number `first` on.
constexpr void hand_on(const graph::list<open_body::change>& changes, graph::graph& here, const graph::control& c,
                       int node, int body, int first) {
  for (const open_body::change& changed : changes) {
    const aval type = graph::result_type(c, here.bodies[static_cast<std::size_t>(body)], first);
    changed.variable->become(&here, graph::add_result(here, node, first++, type));
  }
}

/// A tree whose leaves are the results of a control node from number `first` on.
template <class Form>
constexpr Form results_of(Form form, graph::graph& here, const graph::control& c, int node, int body, int first) {
  graph::list<int> nodes;
  for_each_leaf(form, [&](auto&) {
    const aval type = graph::result_type(c, here.bodies[static_cast<std::size_t>(body)], first);
    nodes.push_back(graph::add_result(here, node, first++, type));
  });
  std::size_t next = 0;
  set_nodes(form, here, nodes, next);
  return form;
}

/// `carry float32[4] becomes float32[4@x]`.
template <text What, class From, class To, class M>
constexpr text_buffer change_details() {
  text_buffer out;
  out << What.view() << " ";
  write_leaves<From, M>(out);
  out << " becomes ";
  write_leaves<To, M>(out);
  return out;
}

/// A condition that is a bool scalar.
template <class T>
constexpr bool is_condition() {
  if constexpr (Expr<T>) return T::type == scalar_aval(dtype::bool_);
  else return std::same_as<T, bool>;
}

}  // namespace tessera::ops
