// SPDX-License-Identifier: Apache-2.0
// Loops and branches whose bodies are traced once: scan, fori_loop, while_loop, cond.
#pragma once

#include <tessera/graph/control.hpp>
#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/reverse.hpp>
#include <tessera/ops/tree.hpp>

#include <span>

namespace tessera {

namespace ops {

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

/// A slice of an array along its leading dimension, and Trips arrays side by side.
template <class T>
struct slice_leaf : std::type_identity<T> {};
template <aval Type, class M>
struct slice_leaf<expr<Type, M>> : std::type_identity<expr<graph::slice_of(Type), M>> {};
template <Stacked T>
struct slice_leaf<T> : std::type_identity<typename T::block_type> {};
template <std::int64_t Trips>
struct stacked_over {
  template <class T>
  struct leaf : std::type_identity<T> {};
  template <aval Type, class M>
  struct leaf<expr<Type, M>> : std::type_identity<expr<graph::stacked(Type, Trips), M>> {};
};

/// What is wrong with the arrays that a scan goes over.
template <class Xs, class M>
constexpr ruling stacked_ruling(std::int64_t trips) {
  for (const aval& type : leaf_types<Xs, M>()) {
    if (type.rank == 0 || type.dims[0].extent != trips) return refuse(message::scan_length);
    if (type.dims[0].axes != 0) return refuse(message::scan_leading, 0, M::value.name(axis_at(type.dims[0].axes, 0)));
  }
  return {};
}

/// The leading extent of the first array of a tree over mesh M.
template <class Xs, class M>
constexpr std::int64_t leading_extent() {
  const graph::list<aval> types = leaf_types<Xs, M>();
  return types.empty() || types[0].rank == 0 ? 0 : types[0].dims[0].extent;
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

constexpr auto nothing_scanned() { return std::pair(poison{}, poison{}); }

/// A tree whose leaves are those of another one, reshaped to the types of the form.
template <class Form, class M>
constexpr Form reshaped_leaves(Form form, const auto& tree, graph::graph& here) {
  graph::list<int> nodes;
  append_nodes(tree, here, nodes);
  const graph::list<aval> types = leaf_types<Form, M>();
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i] = graph::reshape(graph::value{&here, nodes[i]}, types[i]).id;
  std::size_t next = 0;
  set_nodes(form, here, nodes, next);
  return form;
}

/// A loop of one trip is its body.
template <class M, class Call, class Init, class Xs>
constexpr auto one_trip(Call call, const Init& init, const Xs& xs) {
  using carry = body_form<Init, M>;
  using slices = typename map_tree<body_form<Xs, M>, slice_leaf>::type;
  graph::graph* owner = owner_of_tree(init);
  if (owner == nullptr) owner = owner_of_tree(xs);
  graph::graph& here = owner->active();
  expr<scalar_aval(dtype::i32), M> trip;
  trip.handle = {&here, graph::constant(&here, dtype::i32, 0).id};
  const auto out = call(trip, reshaped_leaves<carry, M>(shaped_like<carry>(init), init, here),
                        reshaped_leaves<slices, M>(shaped_like<slices>(xs), xs, here));
  using output = std::remove_cvref_t<decltype(out.second)>;
  using made = body_form<std::remove_cvref_t<decltype(out.first)>, M>;
  using outputs = typename map_tree<body_form<output, M>, stacked_over<1>::template leaf>::type;
  return std::pair(reshaped_leaves<made, M>(shaped_like<made>(out.first), out.first, here),
                   reshaped_leaves<outputs, M>(outputs{}, out.second, here));
}

/// A scan over mesh M, whose body is `call(trip, carry, slices) -> pair(carry, outputs)`. The mesh is joined with that
/// of the body's result, which may bring in a mesh that was captured.
template <class M, std::int64_t Trips, bool Reverse, class Call, class Init, class Xs>
constexpr auto scan_over(Call call, const Init& init, const Xs& xs) {
  using carry = body_form<Init, M>;
  using slices = typename map_tree<body_form<Xs, M>, slice_leaf>::type;
  using result =
      decltype(call(std::declval<expr<scalar_aval(dtype::i32), M>>(), std::declval<carry>(), std::declval<slices>()));
  if constexpr (Poison<result>) {
    return nothing_scanned();
  } else if constexpr (!requires(result r) { r.first, r.second; }) {
    diagnose(report<message::scan_result, no_details<result>>);
    return nothing_scanned();
  } else {
    using made = std::remove_cvref_t<decltype(std::declval<result>().first)>;
    using output = std::remove_cvref_t<decltype(std::declval<result>().second)>;
    using joined =
        typename join_meshes<M, typename mesh_of_tree<made>::type, typename mesh_of_tree<output>::type>::type;
    if constexpr (has_poison<made> || has_poison<output>) {
      return nothing_scanned();
    } else if constexpr (!is_plain<output>) {
      diagnose(report<message::scan_output, no_details<output>>);
      return nothing_scanned();
    } else if constexpr (!std::same_as<joined, M>) {
      return scan_over<joined, Trips, Reverse>(call, init, xs);
    } else if constexpr (!std::same_as<body_form<made, M>, carry>) {
      diagnose(report<message::scan_carry, [] { return change_details<"carry", carry, made, M>(); }>);
      return nothing_scanned();
    } else if constexpr (Trips == 1) {
      return one_trip<M>(call, init, xs);
    } else {
      graph::graph* owner = owner_of_tree(init);
      if (owner == nullptr) owner = owner_of_tree(xs);
      graph::graph& here = owner->active();
      const auto trace = [&](open_body& traced, const graph::list<open_body::change>& state) {
        carry carried = traced.template bind<carry, M>(shaped_like<carry>(init));
        traced.carry(state);
        const auto out = call(traced.template trip<M>(), std::move(carried),
                              traced.template bind<slices, M>(shaped_like<slices>(xs)));
        traced.settle();
        traced.put_out(out.first);
        traced.put_out_changes();
        traced.put_out(out.second);
        traced.close();
      };
      using outputs = typename map_tree<body_form<output, M>, stacked_over<Trips>::template leaf>::type;
      const auto write = [&](open_body& traced) {
        const auto states = static_cast<int>(traced.changes.size());
        graph::list<int> arguments;
        append_nodes(init, here, arguments);
        const auto carries = static_cast<int>(arguments.size());
        for (const open_body::change& c : traced.changes) arguments.push_back(here.import_node(c.owner, c.before));
        append_nodes(xs, here, arguments);
        const graph::control c{graph::control_kind::scan,
                               0,
                               Trips,
                               carries + states,
                               static_cast<int>(arguments.size()) - carries - states,
                               Reverse};
        open_body* const bodies[] = {&traced};
        const graph::list<open_body::change> changes = traced.changes;
        const auto body = static_cast<int>(here.bodies.size());
        const int node = finish(here, c, arguments, bodies);
        hand_on(changes, here, c, node, body, carries);
        return std::pair(results_of(shaped_like<carry>(init), here, c, node, body, 0),
                         results_of(outputs{}, here, c, node, body, carries + states));
      };
      open_body traced(here);
      trace(traced, {});
      if (traced.changes.empty()) return write(traced);
      open_body again(here);
      trace(again, traced.changes);
      return write(again);
    }
  }
}

/// The checks of a scan before its body is looked at.
template <std::int64_t Trips, bool Reverse, class Call, class Init, class Xs>
constexpr auto scan_checked(Call call, const Init& init, const Xs& xs) {
  using M = typename join_meshes<typename mesh_of_tree<Init>::type, typename mesh_of_tree<Xs>::type>::type;
  if constexpr (has_poison<Init> || has_poison<Xs>) {
    return nothing_scanned();
  } else if constexpr (!has_array<Init> && !has_array<Xs>) {
    diagnose(report<message::scan_nothing, no_details<Init>>);
    return nothing_scanned();
  } else if constexpr (holds_unstacked<Xs>) {
    diagnose(report<message::scan_module, no_details<Xs>>);
    return nothing_scanned();
  } else if constexpr (constexpr ruling ruled = stacked_ruling<Xs, M>(Trips); !ruled.ok()) {
    diagnose(report<ruled.failure, [] {
      text_buffer out;
      write_leaves<Xs, M>(out);
      return out;
    }>);
    return nothing_scanned();
  } else {
    return scan_over<M, Trips, Reverse>(call, init, xs);
  }
}

template <bool Reverse, class F, class Init, class Xs>
constexpr auto scan_stacked(F f, const Init& init, const Xs& xs) {
  using M = typename join_meshes<typename mesh_of_tree<Init>::type, typename mesh_of_tree<Xs>::type>::type;
  const auto call = [&](const auto&, auto carry, auto slice) { return f(std::move(carry), std::move(slice)); };
  return scan_checked<leading_extent<Xs, M>(), Reverse>(call, init, xs);
}

/// A condition that is a bool scalar.
template <class T>
constexpr bool is_condition() {
  if constexpr (Expr<T>) return T::type == scalar_aval(dtype::bool_);
  else return std::same_as<T, bool>;
}

/// A while loop over mesh M.
template <class M, class Condition, class F, class Init>
constexpr auto while_over(Condition condition, F f, const Init& init) {
  using carry = body_form<Init, M>;
  using choice = std::remove_cvref_t<decltype(condition(std::declval<carry>()))>;
  using made = std::remove_cvref_t<decltype(f(std::declval<carry>()))>;
  using joined = typename join_meshes<M, typename mesh_of_tree<made>::type>::type;
  if constexpr (has_poison<made> || Poison<choice>) {
    return poison{};
  } else if constexpr (!std::same_as<joined, M>) {
    return while_over<joined>(condition, f, init);
  } else if constexpr (!is_condition<choice>()) {
    diagnose(report<message::while_condition, [] {
      text_buffer out;
      write_leaves<choice, M>(out);
      return out;
    }>);
    return poison{};
  } else if constexpr (!std::same_as<body_form<made, M>, carry>) {
    diagnose(report<message::scan_carry, [] { return change_details<"carry", carry, made, M>(); }>);
    return poison{};
  } else {
    graph::graph& here = owner_of_tree(init)->active();
    const auto trace = [&](open_body& traced, const graph::list<open_body::change>& state, const auto& function) {
      carry carried = traced.template bind<carry, M>(shaped_like<carry>(init));
      traced.carry(state);
      const auto out = function(std::move(carried));
      traced.settle();
      traced.put_out(out);
    };
    open_body trial(here);
    trace(trial, {}, f);
    trial.close();
    open_body asked(here);
    trace(asked, trial.changes, condition);
    if (asked.changes.size() != trial.changes.size()) here.outermost().report({message::while_state, -1, {}});
    asked.close();
    open_body traced(here);
    trace(traced, trial.changes, f);
    traced.put_out_changes();
    traced.close();
    graph::list<int> arguments;
    append_nodes(init, here, arguments);
    const auto carries = static_cast<int>(arguments.size());
    for (const open_body::change& c : traced.changes) arguments.push_back(here.import_node(c.owner, c.before));
    const graph::control c{graph::control_kind::while_loop, 0, 1, static_cast<int>(arguments.size())};
    open_body* const bodies[] = {&asked, &traced};
    const graph::list<open_body::change> changes = traced.changes;
    const auto body = static_cast<int>(here.bodies.size());
    const int node = finish(here, c, arguments, bodies);
    hand_on(changes, here, c, node, body + 1, carries);
    return results_of(shaped_like<carry>(init), here, c, node, body + 1, 0);
  }
}

/// The variables that one of two closed branches changed; both put out what they stand for in the end.
constexpr graph::list<open_body::change> changes_of_either(graph::graph& here, open_body& yes, open_body& no) {
  graph::list<open_body::change> changes = yes.changes;
  for (const open_body::change& c : no.changes) {
    bool known = false;
    for (const open_body::change& other : yes.changes) known |= other.variable == c.variable;
    if (!known) changes.push_back(c);
  }
  for (const open_body::change& c : changes) {
    yes.body.outputs.push_back({yes.last(here, c), -1});
    no.body.outputs.push_back({no.last(here, c), -1});
  }
  return changes;
}

/// A branch over mesh M.
template <class M, class Predicate, class OnTrue, class OnFalse, class... Operands>
constexpr auto branch_over(const Predicate& predicate, OnTrue on_true, OnFalse on_false, const Operands&... operands) {
  using first = std::remove_cvref_t<decltype(on_true(operands...))>;
  using second = std::remove_cvref_t<decltype(on_false(operands...))>;
  using joined = typename join_meshes<M, typename mesh_of_tree<first>::type, typename mesh_of_tree<second>::type>::type;
  if constexpr (has_poison<first> || has_poison<second>) {
    return poison{};
  } else if constexpr (!std::same_as<joined, M>) {
    return branch_over<joined>(predicate, on_true, on_false, operands...);
  } else if constexpr (!std::same_as<body_form<first, M>, body_form<second, M>>) {
    diagnose(report<message::cond_results, [] { return change_details<"result", first, second, M>(); }>);
    return poison{};
  } else {
    graph::graph& here = predicate.handle.owner->active();
    const graph::list<int> arguments{operand_value(&here, predicate, dtype::bool_).id};
    const auto trace = [&](open_body& traced, const auto& f) {
      auto result = f(operands...);
      traced.put_out(result);
      traced.close();
      return shaped_like<body_form<first, M>>(result);
    };
    open_body yes(here);
    const auto form = trace(yes, on_true);
    open_body no(here);
    trace(no, on_false);
    const graph::list<open_body::change> changes = changes_of_either(here, yes, no);
    const graph::control c{graph::control_kind::branch};
    open_body* const bodies[] = {&yes, &no};
    const auto body = static_cast<int>(here.bodies.size());
    const auto results = static_cast<int>(yes.body.outputs.size() - changes.size());
    const int node = finish(here, c, arguments, bodies);
    hand_on(changes, here, c, node, body, results);
    return results_of(form, here, c, node, body, 0);
  }
}

}  // namespace ops

/// `auto [carry, ys] = scan(f, init, xs)`: f(carry, x) -> pair(carry, y) for each slice x of xs along its leading
/// dimension; ys are the y's side by side. f is traced, differentiated and planned once, whatever the length. init, xs
/// and y are arrays, tuples and pairs of them, or `none`; a carry may be a module or an optimizer too. f may use arrays
/// from around it. The carry keeps its type, sharding included; the leading dimension of xs is uncut, that of ys too.
/// Gradient: a scan in the other direction; saved for it: a stack of what the transpose of f uses, without what is
/// elementwise in kept values. Collectives: those of f, each trip. Errors: another carry, no pair, leading extents that
/// differ or are cut. Source: jax.lax.scan.
template <class F, class Init, class Xs>
constexpr auto scan(F f, const Init& init, const Xs& xs) {
  return ops::scan_stacked<false>(f, init, xs);
}
template <class F, class Init, class Xs>
constexpr auto scan(F f, const Init& init, const Xs& xs, reverse_t) {
  return ops::scan_stacked<true>(f, init, xs);
}

/// `scan<16>(f, init)`: 16 trips of f(carry) -> pair(carry, y).
template <std::int64_t Trips, class F, class Init>
constexpr auto scan(F f, const Init& init) {
  const auto call = [&](const auto&, auto carry, none_t) { return f(std::move(carry)); };
  return ops::scan_checked<Trips, false>(call, init, none);
}

/// `fori_loop<0, 10>(f, init)`: carry = f(i, carry) for i = 0, ..., 9; i is an int32 scalar. Types, gradient and errors
/// as for scan. Source: jax.lax.fori_loop.
template <std::int64_t Lower, std::int64_t Upper, class F, class Init>
constexpr auto fori_loop(F f, const Init& init) {
  constexpr std::int64_t trips = Upper > Lower ? Upper - Lower : 0;
  const auto call = [&](const auto& trip, auto carry, none_t) {
    if constexpr (Lower == 0) return std::pair(f(trip, std::move(carry)), none);
    else return std::pair(f(trip + Lower, std::move(carry)), none);
  };
  return ops::scan_checked<trips, false>(call, init, none).first;
}

/// `while_loop(condition, f, init)`: carry = f(carry) as long as condition(carry), a bool scalar, is true. It has no
/// gradient. Source: jax.lax.while_loop.
template <class Condition, class F, class Init>
constexpr auto while_loop(Condition condition, F f, const Init& init) {
  if constexpr (ops::has_poison<Init>) {
    return poison{};
  } else if constexpr (!ops::has_array<Init>) {
    diagnose(report<message::scan_nothing, no_details<Init>>);
    return poison{};
  } else {
    return ops::while_over<typename ops::mesh_of_tree<Init>::type>(condition, f, init);
  }
}

/// `cond(predicate, on_true, on_false, operands...)`: what on_true(operands...) gives if the predicate, a bool scalar,
/// is true, else what on_false gives; only that one runs. Both give arrays, or trees of them, of the same types.
/// Gradient: a branch that computes its values again. Source: jax.lax.cond.
template <class Predicate, class OnTrue, class OnFalse, class... Operands>
constexpr auto cond(const Predicate& predicate, OnTrue on_true, OnFalse on_false, const Operands&... operands) {
  if constexpr (Poison<Predicate> || (Poison<Operands> || ...)) {
    return poison{};
  } else if constexpr (!Expr<Predicate> || !ops::is_condition<Predicate>()) {
    diagnose(report<message::cond_predicate, [] {
      text_buffer out;
      ops::write_leaves<Predicate, typename ops::mesh_of_tree<Predicate>::type>(out);
      return out;
    }>);
    return poison{};
  } else {
    using M = typename join_meshes<typename ops::mesh_of<Predicate>::type,
                                   typename ops::mesh_of_tree<Operands>::type...>::type;
    return ops::branch_over<M>(predicate, on_true, on_false, operands...);
  }
}

}  // namespace tessera
