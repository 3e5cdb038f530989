// SPDX-License-Identifier: Apache-2.0
// Loops of a known number of trips whose body is traced once: scan, fori_loop.
#pragma once

#include <tessera/ops/open_body.hpp>
#include <tessera/ops/reverse.hpp>

namespace tessera {

namespace ops {

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

}  // namespace tessera
