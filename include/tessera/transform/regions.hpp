// SPDX-License-Identifier: Apache-2.0
// Regions in which some axes are left to the compiler, or taken back from it.
#pragma once

#include <tessera/graph/manual.hpp>
#include <tessera/ops/leaves.hpp>

#include <type_traits>
#include <utility>

namespace tessera {

/// How an argument of explicit_axes lies in the region: `in_sharding<P<"x">>`.
template <class Spec>
struct in_sharding_t {};
template <class Spec>
inline constexpr in_sharding_t<Spec> in_sharding{};

namespace transform {

/// The axes whose kind changes: those named, or all of a kind; and what is wrong with them.
struct region_choice {
  axis_set axes = 0;
  message failure = message::none;
  std::string_view axis{};
};
template <axis_kind From, text... Names>
constexpr region_choice region_axes(const mesh_value& mesh) {
  if constexpr (sizeof...(Names) == 0) return {mesh.axes_of(From)};
  region_choice chosen;
  for (std::string_view name : std::initializer_list<std::string_view>{Names.view()...}) {
    const int axis = mesh.find(name);
    if (axis < 0) return {0, message::region_axis, name};
    if (mesh.kind(axis) != From) return {0, message::region_axis_kind, name};
    chosen.axes = static_cast<axis_set>(chosen.axes | bit_of(axis));
  }
  return chosen;
}

/// Arrays on their way from Outside to Inside, two meshes that differ in the kind of the axes Axes: into an automatic
/// region their types lose the axes, out of it they are given a spec.
template <class Outside, class Inside, axis_set Axes>
struct crossing {
  template <class X>
  static constexpr auto forget(const X& x) {
    if constexpr (Number<X>) {
      return x;
    } else {
      constexpr ruling lies = ops::operand_on<X, Outside, dtype::f32>();
      constexpr aval type = sharding::without_axes(lies.result, Axes);
      const graph::value v = ops::node_of(x);
      const mesh_value& mesh = v.owner->mesh;
      const graph::value inside =
          graph::to_auto(v, rebind(type, Outside::value, mesh), sharding::list_over(Axes, Outside::value, mesh));
      return expr<type, Inside>{{v.owner, inside.id}};
    }
  }

  template <class Spec, class X>
  static constexpr ruling specified() {
    const ruling lies = ops::operand_on<X, Outside, dtype::f32>();
    return lies.ok() ? with_spec(lies.result, read_spec<Spec>(Inside::value), Inside::value) : lies;
  }

  template <text Role, std::size_t Place, class Spec, class X>
  static constexpr text_buffer details() {
    text_buffer out;
    out << Role.view() << " " << static_cast<int>(Place) + 1 << " is ";
    write_aval(out, ops::operand_on<X, Outside, dtype::f32>().result, Outside::value);
    const ruling why = specified<Spec, X>();
    if (why.dimension >= 0) out << ", dimension " << why.dimension;
    if (!why.axis.empty()) out << ", axis " << why.axis;
    return out;
  }

  template <text Role, std::size_t Place, class Spec, class X>
  static constexpr auto specify(const X& x) {
    if constexpr (Number<X>) {
      return x;
    } else if constexpr (constexpr ruling lies = specified<Spec, X>(); !lies.ok()) {
      diagnose(report<lies.failure, [] { return details<Role, Place, Spec, X>(); }>);
      return poison{};
    } else {
      const graph::value v = ops::node_of(x);
      const mesh_value& mesh = v.owner->mesh;
      const graph::value made = graph::to_explicit(v, rebind(lies.result, Inside::value, mesh),
                                                   sharding::list_over(Axes, Inside::value, mesh));
      return expr<lies.result, Inside>{{v.owner, made.id}};
    }
  }
};

/// What is wrong with a call, whatever its specs say.
template <axis_kind From, text... Names, class... Args>
constexpr message region_fault(std::type_identity<Args>...) {
  using Mesh = typename join_meshes<typename ops::mesh_of_tree<Args>::type...>::type;
  if constexpr (!(ops::is_mapped_argument<Args>() && ...)) return message::region_argument;
  else if constexpr (Mesh::open) return message::region_mesh;
  else if constexpr (!(meshes_agree<typename ops::mesh_of_tree<Args>::type, Mesh> && ...))
    return message::mesh_mismatch;
  else return region_axes<From, Names...>(Mesh::value).failure;
}
template <axis_kind From, text... Names, class... Args>
constexpr text_buffer region_details(std::type_identity<Args>...) {
  using Mesh = typename join_meshes<typename ops::mesh_of_tree<Args>::type...>::type;
  text_buffer out;
  if (const auto axis = region_axes<From, Names...>(Mesh::value).axis; !axis.empty()) out << "axis " << axis;
  return out;
}
constexpr text_buffer counted(std::size_t specs, std::size_t values) {
  return text_buffer{} << static_cast<int>(specs) << " specs, " << static_cast<int>(values);
}

/// Whether a result can leave a region, and as many specs as results are given; reports the first fault.
template <class Result, class Specs>
constexpr bool leaves_region() {
  if constexpr (ops::holds_poison<Result>()) return false;
  else if constexpr (!ops::is_mapped_result<Result>())
    return !diagnose(report<message::region_result, no_details<Result>>);
  else if constexpr (Specs::size != 1 && Specs::size != ops::results_in<Result>())
    return !diagnose(report<message::auto_axes_out_count,
                            [] { return counted(Specs::size, ops::results_in<Result>()) << " results"; }>);
  else return true;
}

template <class F, class Specs, text... Names>
struct automatic {
  F function;

  template <class... Args>
  constexpr auto operator()(const Args&... args) const {
    constexpr message fault = Specs::size == 0
                                  ? message::auto_axes_out_sharding
                                  : region_fault<axis_kind::explicit_, Names...>(std::type_identity<Args>{}...);
    if constexpr ((ops::holds_poison<Args>() || ...)) {
      return poison{};
    } else if constexpr (fault != message::none) {
      diagnose(
          report<fault, [] { return region_details<axis_kind::explicit_, Names...>(std::type_identity<Args>{}...); }>);
      return poison{};
    } else {
      using Mesh = typename join_meshes<typename ops::mesh_of_tree<Args>::type...>::type;
      constexpr axis_set axes = region_axes<axis_kind::explicit_, Names...>(Mesh::value).axes;
      using Inside = region<Mesh, axis_kind::auto_, axes>;
      using enter = crossing<Mesh, Inside, axes>;
      using leave = crossing<Inside, Mesh, axes>;
      const auto result = function(ops::map_leaves(args, [](const auto& leaf) { return enter::forget(leaf); })...);
      if constexpr (!leaves_region<std::remove_cvref_t<decltype(result)>, Specs>()) return poison{};
      else
        return ops::map_with_specs<Specs>(result, []<std::size_t I, class Spec>(const auto& leaf) {
          return leave::template specify<"result", I, Spec>(leaf);
        });
    }
  }
};

template <class F, class Specs, text... Names>
struct taken_back {
  F function;

  template <class... Args>
  constexpr auto operator()(const Args&... args) const {
    constexpr message fault = fault_of<Args...>();
    if constexpr ((ops::holds_poison<Args>() || ...)) {
      return poison{};
    } else if constexpr (fault != message::none) {
      diagnose(report<fault, [] { return fault_details<Args...>(); }>);
      return poison{};
    } else {
      using Mesh = typename join_meshes<typename ops::mesh_of_tree<Args>::type...>::type;
      constexpr axis_set axes = region_axes<axis_kind::auto_, Names...>(Mesh::value).axes;
      using Inside = region<Mesh, axis_kind::explicit_, axes>;
      using enter = crossing<Mesh, Inside, axes>;
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return leave<crossing<Inside, Mesh, axes>>(ops::map_leaves(args, [](const auto& leaf) {
          return enter::template specify<"argument", I, typename Specs::template at<I>>(leaf);
        })...);
      }
      (std::index_sequence_for<Args...>{});
    }
  }

 private:
  template <class... Args>
  static constexpr message fault_of() {
    if constexpr (Specs::size == 0) return message::explicit_axes_in_sharding;
    else if constexpr (Specs::size != sizeof...(Args)) return message::explicit_axes_in_count;
    else return region_fault<axis_kind::auto_, Names...>(std::type_identity<Args>{}...);
  }
  template <class... Args>
  static constexpr text_buffer fault_details() {
    if constexpr (Specs::size != 0 && Specs::size != sizeof...(Args))
      return counted(Specs::size, sizeof...(Args)) << " arguments";
    else return region_details<axis_kind::auto_, Names...>(std::type_identity<Args>{}...);
  }

  template <class Leave, class... Locals>
  constexpr auto leave(const Locals&... locals) const {
    if constexpr ((ops::holds_poison<Locals>() || ...)) {
      return poison{};
    } else {
      const auto result = function(locals...);
      if constexpr (!leaves_region<std::remove_cvref_t<decltype(result)>, ops::spec_list<P<>>>()) return poison{};
      else return ops::map_leaves(result, [](const auto& leaf) { return Leave::forget(leaf); });
    }
  }
};

/// with_sharding_constraint where no axis is automatic: the array lies so, or it does not compile.
template <class Spec>
inline constexpr auto constraint_rule = ops::handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  const spec_value spec = read_spec<Spec>(mesh);
  if (mesh.axes_of(axis_kind::auto_) == 0) {
    ruling wanted = with_spec(x[0], spec, mesh);
    if (wanted.ok() && !(wanted.result == x[0])) wanted.failure = message::constraint_differs;
    return wanted;
  }
  mesh_value steered = mesh;
  for (int d = 0; d < spec.rank && d < max_rank; ++d)
    for (int i = 0; i < axis_count(spec.dims[d]); ++i)
      if (const int axis = axis_at(spec.dims[d], i); mesh.kind(axis) != axis_kind::auto_)
        return refuse(message::constraint_axis, d, mesh.name(axis));
  for (axis_kind& kind : steered.kinds) kind = axis_kind::explicit_;
  const ruling lies = with_spec(without_marks(x[0]), spec, steered);
  return lies.ok() ? ruling{x[0]} : lies;
}};

}  // namespace transform

/// `auto_axes<"x">(f, out_sharding<P<"x">>)(a, b)` runs f where the axes (all Explicit ones unless told) are left to
/// the compiler: types do not name them, so none of their rules can be broken, and propagation finds how arrays lie
/// along them: as they came in, on through elementwise operations, products, reductions and moves, gathered where an
/// operation knows no better. Results lie as out_sharding says, one spec a result or one for all. The values are those
/// of any other way to lie. Arrays that lie along the axes come in as arguments only. Collectives: as found;
/// collectives() counts them. Gradients go through it, in the same way. Source: jax.sharding.auto_axes.
template <text... Names, class F, class... Specs>
constexpr auto auto_axes(F f, out_sharding_t<Specs>...) {
  return transform::automatic<F, ops::spec_list<Specs...>, Names...>{f};
}

/// `explicit_axes<"x">(f, in_sharding<P<"x">>)(a)` is the way back: arguments lie as in_sharding says, one spec each, f
/// is checked by the rules of its types, and results are again without the axes. Source: jax.sharding.explicit_axes.
template <text... Names, class F, class... Specs>
constexpr auto explicit_axes(F f, in_sharding_t<Specs>...) {
  return transform::taken_back<F, ops::spec_list<Specs...>, Names...>{f};
}

/// `with_sharding_constraint<P<"x">>(v)`: v. Along Explicit axes it is checked to lie so; along Auto axes, which are
/// then the only ones the spec may name, it says how v is to lie. Gradient: the same of the cotangent. Source:
/// jax.lax.with_sharding_constraint.
template <class Spec>
constexpr auto with_sharding_constraint(const ArrayLike auto& x) {
  return ops::apply<"with_sharding_constraint", transform::constraint_rule<Spec>>(
      [](const std::array<graph::value, 1>& v, const aval&) {
        return graph::constrain(v[0], read_spec<Spec>(v[0].mesh()));
      },
      x);
}

}  // namespace tessera
