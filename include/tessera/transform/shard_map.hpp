// SPDX-License-Identifier: Apache-2.0
// Running a function on the blocks of its arguments, as one device does: the body calls its collectives itself.
#pragma once

#include <tessera/graph/manual.hpp>
#include <tessera/ops/leaves.hpp>

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tessera {

/// Stands for a module in in_specs: its variables lie as their own specs say.
struct own_specs {};

/// Options of shard_map: how arguments lie (one spec each, checked), how results lie, which axes it runs over.
template <class... Specs>
struct in_specs {};
template <class... Specs>
struct out_specs {};
template <text... Names>
struct axis_names {};

namespace transform {

using ops::is_tuple;

/// One shard_map over Mesh along the axes of Manual.
template <class Mesh, axis_set Manual>
struct boundary {
  using inside = region<Mesh, axis_kind::manual, Manual>;

  /// The axes that are left to the compiler outside: types do not name them there, specs may.
  static constexpr axis_set automatic = static_cast<axis_set>(Manual & Mesh::value.axes_of(axis_kind::auto_));

  /// The mesh with all axes Explicit.
  static constexpr mesh_value plain = [] {
    mesh_value all = Mesh::value;
    for (axis_kind& kind : all.kinds) kind = axis_kind::explicit_;
    return all;
  }();

  /// An argument as it lies outside; it has to lie as Spec says where there is one, and is made to lie so along Auto
  /// axes.
  template <class Spec, class X>
  static constexpr ruling outside() {
    const ruling lies = ops::operand_on<X, Mesh, dtype::f32>();
    if constexpr (std::is_void_v<Spec> || std::is_same_v<Spec, own_specs>) {
      return lies;
    } else {
      if (!lies.ok()) return lies;
      ruling wanted = with_spec(lies.result, read_spec<Spec>(Mesh::value), plain);
      const bool fits = sharding::without_axes(wanted.result, automatic) == lies.result;
      if (wanted.ok() && !fits) wanted.failure = message::shard_map_in_spec;
      return wanted;
    }
  }

  /// What the body sees of it.
  template <class Spec, class X>
  static constexpr ruling entering() {
    const ruling lies = outside<Spec, X>();
    return lies.ok() ? sharding::to_local(lies.result, Manual, Mesh::value) : lies;
  }

  template <std::size_t Place, class Spec, class X>
  static constexpr text_buffer argument_details() {
    text_buffer out;
    out << "argument " << static_cast<int>(Place) + 1 << " is ";
    write_aval(out, ops::operand_on<X, Mesh, dtype::f32>().result, Mesh::value);
    const ruling why = entering<Spec, X>();
    if (why.failure == message::shard_map_in_spec) out << ", in_specs says ", write_aval(out, why.result, Mesh::value);
    if (!why.axis.empty()) out << ", axis " << why.axis;
    return out;
  }

  /// A module whose variables stand for their blocks.
  template <std::size_t Place, class X>
  static constexpr X localise_module(const X& x) {
    X blocks = x;
    visit_variables(blocks, [&](auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      if constexpr (constexpr ruling local = ops::operand_on<V, inside, dtype::f32>(); !local.ok()) {
        diagnose(report<local.failure, [] { return argument_details<Place, void, V>(); }>);
      } else {
        const graph::value whole = ops::node_of(v);
        v.handle.stand_for(whole.owner,
                           graph::to_local(whole, rebind(local.result, inside::value, whole.owner->mesh)).id);
      }
    });
    return blocks;
  }

  template <std::size_t Place, class Spec, class X>
  static constexpr auto localise(const X& x) {
    if constexpr (ops::Walked<X>) {
      return localise_module<Place>(x);
    } else if constexpr (Number<X>) {
      return x;
    } else if constexpr (constexpr ruling local = entering<Spec, X>(); !local.ok()) {
      diagnose(report<local.failure, [] { return argument_details<Place, Spec, X>(); }>);
      return poison{};
    } else {
      const graph::value v = ops::node_of(x);
      graph::graph* owner = v.owner;
      const aval lies = rebind(outside<Spec, X>().result, Mesh::value, owner->mesh);
      const aval seen = rebind(local.result, Mesh::value, owner->mesh);
      return expr<local.result, inside>{{owner, graph::to_local(graph::reshard(v, lies), seen).id}};
    }
  }

  /// A result of the body as an array that lies as Spec says.
  template <class Spec, class X>
  static constexpr ruling leaving() {
    const ruling made = ops::operand_on<X, inside, dtype::f32>();
    return made.ok() ? sharding::to_global(made.result, read_spec<Spec>(Mesh::value), Manual, Mesh::value) : made;
  }

  template <std::size_t Place, class Spec, class X>
  static constexpr text_buffer result_details() {
    text_buffer out;
    out << "result " << static_cast<int>(Place) + 1 << " is ";
    ops::write_operands<inside, X>(out);
    if (const ruling why = leaving<Spec, X>(); !why.axis.empty()) out << ", axis " << why.axis;
    return out;
  }

  template <std::size_t Place, class Spec, class X>
  static constexpr auto globalise(const X& x) {
    if constexpr (constexpr ruling global = leaving<Spec, X>(); !global.ok()) {
      diagnose(report<global.failure, [] { return result_details<Place, Spec, X>(); }>);
      return poison{};
    } else {
      const graph::value made_here = ops::node_of(x);
      graph::graph* owner = made_here.owner;
      const aval made = rebind(global.result, Mesh::value, owner->mesh);
      const auto cut = static_cast<axis_set>(made.cut() & rebind_set(Manual, Mesh::value, owner->mesh));
      const graph::value v = graph::vary(made_here, cut);
      const graph::value whole = graph::to_global(v, made);
      if constexpr (automatic == 0) {
        return expr<global.result, Mesh>{{owner, whole.id}};
      } else {
        constexpr aval type = sharding::without_axes(global.result, automatic);
        const axis_list axes = sharding::list_over(automatic, Mesh::value, owner->mesh);
        return expr<type, Mesh>{{owner, graph::to_auto(whole, rebind(type, Mesh::value, owner->mesh), axes).id}};
      }
    }
  }
};

/// The options a user gave, taken apart.
template <class In, class Out, class Names, class... Rest>
struct map_options {
  using in = In;
  using out = Out;
  using names = Names;
};
template <class In, class Out, class Names, class... Specs, class... Rest>
struct map_options<In, Out, Names, in_specs<Specs...>, Rest...>
    : map_options<ops::spec_list<Specs...>, Out, Names, Rest...> {};
template <class In, class Out, class Names, class... Specs, class... Rest>
struct map_options<In, Out, Names, out_specs<Specs...>, Rest...>
    : map_options<In, ops::spec_list<Specs...>, Names, Rest...> {};
template <class In, class Out, class Names, text... Given, class... Rest>
struct map_options<In, Out, Names, axis_names<Given...>, Rest...>
    : map_options<In, Out, axis_names<Given...>, Rest...> {};

/// The axes that are run by hand: those named, or all; and what is wrong with them.
struct manual_choice {
  axis_set axes = 0;
  message failure = message::none;
  std::string_view axis{};
};
template <class Names>
struct chosen_axes;
template <>
struct chosen_axes<void> {
  static constexpr manual_choice over(const mesh_value& mesh) {
    manual_choice all;
    for (int i = 0; i < mesh.rank; ++i) {
      if (mesh.kind(i) == axis_kind::manual) return {0, message::shard_map_nested, mesh.name(i)};
      all.axes = static_cast<axis_set>(all.axes | bit_of(i));
    }
    return all;
  }
};
template <text... Names>
struct chosen_axes<axis_names<Names...>> {
  static constexpr manual_choice over(const mesh_value& mesh) {
    manual_choice chosen;
    for (std::string_view name : {Names.view()...}) {
      const int axis = mesh.find(name);
      if (axis < 0) return {0, message::shard_map_axis_names, name};
      if (mesh.kind(axis) == axis_kind::manual) return {0, message::shard_map_nested, name};
      chosen.axes = static_cast<axis_set>(chosen.axes | bit_of(axis));
    }
    return chosen;
  }
};

/// What a body may be given and may return.
template <class T>
constexpr bool is_block_argument() {
  return ops::every_leaf<T>(
      []<class L>(std::type_identity<L>) { return Expr<L> || Variable<L> || Number<L> || ops::Walked<L>; });
}
template <class T>
constexpr bool is_block_result() {
  return ops::every_leaf<T>([]<class L>(std::type_identity<L>) { return Expr<L> || Variable<L>; });
}

template <class F, class Options>
struct mapped {
  F function;

  template <class... Args>
  constexpr auto operator()(const Args&... args) const {
    using Mesh = typename join_meshes<typename ops::mesh_of_tree<Args>::type...>::type;
    constexpr message fault = fault_of<Mesh, Args...>();
    if constexpr ((ops::holds_poison<Args>() || ...)) {
      return poison{};
    } else if constexpr (fault != message::none) {
      diagnose(report<fault, [] { return fault_details<Mesh, Args...>(); }>);
      return poison{};
    } else {
      using edge = boundary<Mesh, chosen_axes<typename Options::names>::over(Mesh::value).axes>;
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return call<edge>(
            ops::map_leaves(args, [](const auto& leaf) { return edge::template localise<I, in_spec<I>>(leaf); })...);
      }
      (std::index_sequence_for<Args...>{});
    }
  }

 private:
  template <std::size_t I>
  static constexpr auto in_spec_of() {
    if constexpr (std::is_void_v<typename Options::in>) return std::type_identity<void>{};
    else return std::type_identity<typename Options::in::template at<I>>{};
  }
  template <std::size_t I>
  using in_spec = typename decltype(in_spec_of<I>())::type;

  template <class Mesh, class... Args>
  static constexpr message fault_of() {
    if constexpr (!(is_block_argument<Args>() && ...)) return message::shard_map_argument;
    else if constexpr (Mesh::open) return message::shard_map_mesh;
    else if constexpr (!(meshes_agree<typename ops::mesh_of_tree<Args>::type, Mesh> && ...))
      return message::mesh_mismatch;
    else if constexpr (std::is_void_v<typename Options::out>) return message::shard_map_out_specs;
    else if constexpr (constexpr message chosen = chosen_axes<typename Options::names>::over(Mesh::value).failure;
                       chosen != message::none)
      return chosen;
    else if constexpr (std::is_void_v<typename Options::in>) return message::none;
    else if constexpr (Options::in::size != sizeof...(Args)) return message::shard_map_in_count;
    else
      return specs_of_modules<Args...>(std::index_sequence_for<Args...>{}) ? message::none
                                                                           : message::shard_map_own_specs;
  }
  /// Whether each module has own_specs for a spec.
  template <class... Args, std::size_t... I>
  static constexpr bool specs_of_modules(std::index_sequence<I...>) {
    return ((!ops::Walked<Args> || std::is_same_v<in_spec<I>, own_specs>)&&...);
  }

  template <class Mesh, class... Args>
  static constexpr text_buffer fault_details() {
    text_buffer out;
    if constexpr (fault_of<Mesh, Args...>() == message::shard_map_in_count)
      out << static_cast<int>(Options::in::size) << " specs, " << static_cast<int>(sizeof...(Args)) << " arguments";
    if constexpr (fault_of<Mesh, Args...>() == message::shard_map_nested ||
                  fault_of<Mesh, Args...>() == message::shard_map_axis_names)
      out << "axis " << chosen_axes<typename Options::names>::over(Mesh::value).axis;
    return out;
  }

  template <class Edge, class... Locals>
  constexpr auto call(Locals... locals) const {
    if constexpr ((ops::holds_poison<Locals>() || ...)) return poison{};
    else return finish<Edge>(function(locals...));
  }

  template <class Edge, class Result>
  static constexpr auto finish(const Result& result) {
    using Out = typename Options::out;
    if constexpr (ops::holds_poison<Result>()) {
      return poison{};
    } else if constexpr (!is_block_result<Result>()) {
      diagnose(report<message::shard_map_result, no_details<Result>>);
      return poison{};
    } else if constexpr (Out::size != 1 && ops::results_in<Result>() != Out::size) {
      diagnose(report<message::shard_map_out_count, [] {
        return text_buffer{} << static_cast<int>(Out::size) << " specs, " << static_cast<int>(ops::results_in<Result>())
                             << " results";
      }>);
      return poison{};
    } else {
      return ops::map_with_specs<Out>(
          result, []<std::size_t I, class Spec>(const auto& leaf) { return Edge::template globalise<I, Spec>(leaf); });
    }
  }
};

}  // namespace transform

/// `shard_map<in_specs<P<"x">, P<>>, out_specs<P<"x">>>(f)(x, w)` calls f once, with the block of each argument that
/// one device holds, and lays the blocks it returns side by side as out_specs says. Inside, extents are those of a
/// block and no dimension is cut; a value says over which axes it varies from device to device (`float32[4]{V:x}`), and
/// the collectives of ops/collectives.hpp are the only way for blocks to meet. An argument that does not lie along an
/// axis is the same on all devices, and so is a result that out_specs does not name the axis for; that one may vary
/// over it is an error. in_specs are checked against the arguments and may be left out; a spec belongs to one argument
/// or result, which may be a tuple. An argument may be a module: its variables are blocks in the body, as their own
/// specs say (in in_specs `own_specs` stands for it), and its layers compute with those. `axis_names<"x">` leaves the
/// other axes as they are. Arrays that lie along axes of the body come in as arguments only. No collective of its own;
/// gradients go through it and may be taken within it. Source: jax.shard_map with check_vma.
template <class... Options, class F>
constexpr auto shard_map(F f) {
  return transform::mapped<F, transform::map_options<void, void, void, Options...>>{f};
}

}  // namespace tessera
