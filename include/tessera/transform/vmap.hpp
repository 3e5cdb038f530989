// SPDX-License-Identifier: Apache-2.0
// A function of one example as a function of many.
#pragma once

#include <tessera/ops/control.hpp>
#include <tessera/ops/leaves.hpp>
#include <tessera/transform/batch.hpp>

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tessera {

/// Options of vmap: the dimension of each argument that goes over the examples, `none` for an argument that is the same
/// for all; where the examples stand in each result. One entry is that of all.
template <auto... Axes>
struct in_axes {};
template <auto... Axes>
struct out_axes {};

namespace transform {

/// An entry of in_axes or out_axes as a value.
struct map_axis {
  bool mapped = false;
  int dimension = 0;

  constexpr map_axis() = default;
  constexpr map_axis(none_t) {}
  constexpr map_axis(int d) : mapped(true), dimension(d) {}
};

template <auto... Axes>
struct axis_entries {
  static constexpr std::size_t size = sizeof...(Axes);
  static constexpr std::array<map_axis, size> entries{map_axis(Axes)...};
  static constexpr map_axis at(std::size_t i) { return entries[size == 1 ? 0 : i]; }
};

template <class In, class Out, class... Rest>
struct vmap_options {
  using in = In;
  using out = Out;
};
template <class In, class Out, auto... Axes, class... Rest>
struct vmap_options<In, Out, in_axes<Axes...>, Rest...> : vmap_options<axis_entries<Axes...>, Out, Rest...> {};
template <class In, class Out, auto... Axes, class... Rest>
struct vmap_options<In, Out, out_axes<Axes...>, Rest...> : vmap_options<In, axis_entries<Axes...>, Rest...> {};

/// `whole` without dimension `d`, counted from either end.
constexpr aval one_example(const aval& whole, int d) {
  aval one = whole;
  const int place = sharding::place_of(d, whole.rank);
  if (place < 0 || whole.rank == 0) return whole;
  for (int i = place; i + 1 < whole.rank; ++i) one.dims[i] = whole.dims[i + 1];
  one.dims[--one.rank] = {};
  return one;
}
/// `one` with the examples at place `d` of the result.
constexpr aval with_examples(const aval& one, int d, dim examples) {
  aval whole = one;
  const int place = sharding::place_of(d, one.rank + 1);
  for (int i = one.rank; i > place; --i) whole.dims[i] = one.dims[i - 1];
  whole.dims[place] = examples;
  ++whole.rank;
  return whole;
}

template <int D>
struct without_dim {
  template <class T>
  struct leaf : std::type_identity<T> {};
  template <aval Type, class M>
  struct leaf<expr<Type, M>> : std::type_identity<expr<one_example(Type, D), M>> {};
};

/// How many examples there are and how they are cut, or why arguments cannot be mapped together.
struct examples_ruling {
  dim examples{};
  bool found = false;
  message failure = message::none;
  aval about{};
};

/// Looks at one more argument.
constexpr void join_argument(examples_ruling& so_far, const graph::list<aval>& leaves, map_axis axis) {
  for (const aval& type : leaves) {
    if (so_far.failure != message::none || !axis.mapped) return;
    const int d = type.rank == 0 ? -1 : sharding::place_of(axis.dimension, type.rank);
    so_far.about = type;
    if (d < 0) so_far.failure = message::vmap_dimension;
    else if (so_far.found && type.dims[d].extent != so_far.examples.extent) so_far.failure = message::vmap_extent;
    else if (so_far.found && type.dims[d].axes != so_far.examples.axes) so_far.failure = message::vmap_sharding;
    else so_far.examples = type.dims[d], so_far.found = true;
  }
}
/// An argument that is the same for all examples lies along none of the axes that cut them.
constexpr void check_shared(examples_ruling& so_far, const graph::list<aval>& leaves) {
  for (const aval& type : leaves)
    if (so_far.failure == message::none &&
        ((type.cut() | type.unreduced | type.reduced) & set_of(so_far.examples.axes)) != 0)
      so_far.failure = message::vmap_axis, so_far.about = type;
}

template <class F, class Options>
struct vmapped {
  using In = typename Options::in;
  using Out = typename Options::out;
  F function;

  template <class... Args>
  constexpr auto operator()(Args&&... args) const {
    constexpr message fault = fault_of<std::remove_cvref_t<Args>...>();
    if constexpr ((poisoned<std::remove_cvref_t<Args>>() || ...)) {
      return poison{};
    } else if constexpr (fault != message::none) {
      diagnose(report<fault, [] { return fault_details<std::remove_cvref_t<Args>...>(); }>);
      return poison{};
    } else {
      return call<mesh_of_all<std::remove_cvref_t<Args>...>>(std::index_sequence_for<Args...>{},
                                                             std::forward<Args>(args)...);
    }
  }

 private:
  template <class... Args>
  using mesh_of_all = typename join_meshes<typename ops::mesh_of_tree<Args>::type...>::type;

  template <class Arg>
  static constexpr bool poisoned() {
    if constexpr (ArrayLike<Arg> || ops::is_tuple<Arg>) return ops::holds_poison<Arg>();
    else return false;
  }
  /// Whether a mapped argument is made of arrays.
  template <class Arg>
  static constexpr bool can_be_mapped() {
    return ops::every_leaf<Arg>([]<class L>(std::type_identity<L>) { return Expr<L> || Variable<L>; });
  }
  template <class Arg, class M>
  static constexpr graph::list<aval> types_of() {
    if constexpr (ops::is_plain<Arg> && !Number<Arg>) return ops::leaf_types<Arg, M>();
    else return {};
  }

  template <class... Args>
  static constexpr examples_ruling examples_of() {
    using M = mesh_of_all<Args...>;
    examples_ruling ruled;
    std::size_t next = 0;
    (join_argument(ruled, types_of<Args, M>(), In::at(next++)), ...);
    next = 0;
    const auto shared = [&](const graph::list<aval>& leaves) {
      if (!In::at(next++).mapped) check_shared(ruled, leaves);
    };
    (shared(types_of<Args, M>()), ...);
    if (!ruled.found && ruled.failure == message::none) ruled.failure = message::vmap_nothing;
    return ruled;
  }

  template <class... Args>
  static constexpr message fault_of() {
    if constexpr (In::size != 1 && In::size != sizeof...(Args)) {
      return message::vmap_in_axes;
    } else {
      std::size_t next = 0;
      if (!((!In::at(next++).mapped || can_be_mapped<Args>()) && ...)) return message::vmap_argument;
      if (!(meshes_agree<typename ops::mesh_of_tree<Args>::type, mesh_of_all<Args...>> && ...))
        return message::mesh_mismatch;
      return examples_of<Args...>().failure;
    }
  }
  template <class... Args>
  static constexpr text_buffer fault_details() {
    text_buffer out;
    constexpr message fault = fault_of<Args...>();
    if constexpr (fault == message::vmap_in_axes) {
      out << static_cast<int>(In::size) << " entries, " << static_cast<int>(sizeof...(Args)) << " arguments";
    } else if constexpr (fault != message::vmap_argument && fault != message::mesh_mismatch) {
      const examples_ruling ruled = examples_of<Args...>();
      if (!(ruled.about == aval{})) write_aval(out, ruled.about, mesh_of_all<Args...>::value);
    }
    return out;
  }

  /// What the function is called with for argument number I: one example, or the argument as it is.
  template <class M, std::size_t I, class Arg>
  static constexpr auto form_of() {
    if constexpr (In::at(I).mapped)
      return std::type_identity<typename map_tree_of<ops::body_form<Arg, M>, In::at(I).dimension>::type>{};
    else return std::type_identity<none_t>{};
  }
  template <class Tree, int D>
  using map_tree_of = ops::map_tree<Tree, without_dim<D>::template leaf>;

  /// Gives an argument's form one parameter a leaf; `mapped` gets the nodes, their examples in front.
  template <class M, class Form, class Arg>
  static constexpr Form bind(ops::open_body& traced, graph::graph& here, const Arg& arg, map_axis axis,
                             graph::list<int>& mapped) {
    if constexpr (std::same_as<Form, none_t>) {
      return {};
    } else {
      graph::list<int> nodes;
      ops::append_nodes(arg, here, nodes);
      for (int node : nodes)
        mapped.push_back(move_dim({&here, node}, sharding::place_of(axis.dimension, here.type(node).rank), 0).id);
      return traced.template bind<Form, M>(Form{});
    }
  }

  template <class Form, class Arg>
  static constexpr decltype(auto) passed(Form& form, Arg& arg) {
    if constexpr (std::same_as<Form, none_t>) return (arg);
    else return (form);
  }

  template <class M, std::size_t... I, class... Args>
  constexpr auto call(std::index_sequence<I...>, Args&&... args) const {
    using forms = std::tuple<typename decltype(form_of<M, I, std::remove_cvref_t<Args>>())::type...>;
    using result =
        std::remove_cvref_t<decltype(function(passed(std::declval<std::tuple_element_t<I, forms>&>(), args)...))>;
    using joined = typename join_meshes<M, typename ops::mesh_of_tree<result>::type>::type;
    if constexpr (ops::holds_poison<result>()) {
      return poison{};
    } else if constexpr (!ops::is_mapped_result<result>()) {
      diagnose(report<message::vmap_result, no_details<result>>);
      return poison{};
    } else if constexpr (!std::same_as<joined, M>) {
      return call<joined>(std::index_sequence<I...>{}, std::forward<Args>(args)...);
    } else if constexpr (constexpr dim examples = examples_of<std::remove_cvref_t<Args>...>().examples;
                         fault_of_results<result, M, examples>().what != message::none) {
      diagnose(report<fault_of_results<result, M, examples>().what, [] {
        return result_details<result, M, examples_of<std::remove_cvref_t<Args>...>().examples>();
      }>);
      return poison{};
    } else {
      graph::graph& here = owner_of_all(args...)->active();
      ops::open_body traced(here);
      graph::list<int> mapped;
      forms bound{bind<M, std::tuple_element_t<I, forms>>(traced, here, args, In::at(I), mapped)...};
      const auto one = function(passed(std::get<I>(bound), args)...);
      traced.put_out(one);
      traced.close();
      for (const ops::open_body::change& c : traced.changes)
        here.outermost().report({message::vmap_state, -1, c.owner->type(c.before)});
      const dim there{examples.extent, rebind(examples.axes, M::value, here.mesh)};
      return finish<M, examples>(batcher(here, traced.body, there), mapped, one);
    }
  }

  template <class... Args>
  static constexpr graph::graph* owner_of_all(const Args&... args) {
    graph::graph* found = nullptr;
    std::size_t next = 0;
    const auto look = [&](const auto& arg) {
      if (In::at(next++).mapped && found == nullptr) found = ops::owner_of_tree(arg);
    };
    (look(args), ...);
    return found;
  }

  /// Runs the body for all examples and takes its outputs for the leaves of the result.
  template <class M, dim Examples, class Result>
  static constexpr auto finish(batcher pass, const graph::list<int>& mapped, const Result& one) {
    const graph::graph& body = pass.from;
    for (std::size_t p = 0; p < mapped.size(); ++p) pass.image(body.parameters[p + 1]) = {mapped[p], true};
    pass.image(body.parameters[0]) = {graph::constant(&pass.into, dtype::i32, 0).id, false};
    for (const graph::capture& c : body.captures) {
      const aval& type = pass.into.type(c.outer);
      if (((type.cut() | type.unreduced | type.reduced) & set_of(pass.examples.axes)) != 0)
        pass.fail({message::vmap_axis, -1, type});
      pass.image(c.parameter) = {c.outer, false};
    }
    pass.run();
    std::size_t next = 0;
    return map_with_axes(one, [&]<std::size_t I>(const auto& leaf) {
      using Leaf = std::remove_cvref_t<decltype(leaf)>;
      constexpr map_axis place = Out::at(I);
      const batch_image made = pass.image(body.outputs[next++].node);
      if constexpr (!place.mapped) {
        if (made.batched) pass.fail({message::vmap_out_none, -1, leaf.type});
        return Leaf{{&pass.into, pass.failed ? nothing(pass, leaf.type, M::value) : made.id}};
      } else {
        constexpr aval type = with_examples(Leaf::type, place.dimension, Examples);
        int id = -1;
        if (!pass.failed) {
          const value all = pass.all(made);
          if (!pass.failed) id = move_dim(all, 0, sharding::place_of(place.dimension, type.rank)).id;
        }
        return expr<type, M>{{&pass.into, pass.failed ? nothing(pass, type, M::value) : id}};
      }
    });
  }
  /// Stands for a result after something was reported.
  static constexpr int nothing(batcher& pass, const aval& type, const mesh_value& mesh) {
    return graph::zeros(&pass.into, rebind(type, mesh, pass.into.mesh)).id;
  }

  /// Calls f<number of the result>(leaf) for all leaves of a result.
  template <class Result, class G>
  static constexpr auto map_with_axes(const Result& result, G f) {
    if constexpr (ops::is_tuple<Result>) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return std::tuple{
            ops::map_leaves(std::get<I>(result), [&](const auto& leaf) { return f.template operator()<I>(leaf); })...};
      }
      (std::make_index_sequence<std::tuple_size_v<Result>>{});
    } else {
      return f.template operator()<0>(result);
    }
  }

  struct result_fault {
    message what = message::none;
    aval about{};
  };
  /// Whether the examples have a place in every result.
  template <class Result, class M, dim Examples>
  static constexpr result_fault fault_of_results() {
    if (Out::size != 1 && Out::size != ops::results_in<Result>()) return {message::vmap_out_axes};
    result_fault found;
    const auto look = [&](const graph::list<aval>& leaves, map_axis place) {
      for (const aval& type : leaves) {
        if (found.what != message::none || !place.mapped) return;
        found.about = type;
        const auto lies = static_cast<axis_set>(type.cut() | type.unreduced | type.reduced | type.varying);
        if (type.rank == max_rank) found.what = message::shape_rank;
        else if (sharding::place_of(place.dimension, type.rank + 1) < 0) found.what = message::vmap_dimension;
        else if ((lies & set_of(Examples.axes)) != 0) found.what = message::vmap_axis;
      }
    };
    if constexpr (ops::is_tuple<Result>) {
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (look(ops::leaf_types<std::tuple_element_t<I, Result>, M>(), Out::at(I)), ...);
      }
      (std::make_index_sequence<std::tuple_size_v<Result>>{});
    } else {
      look(ops::leaf_types<Result, M>(), Out::at(0));
    }
    return found;
  }
  template <class Result, class M, dim Examples>
  static constexpr text_buffer result_details() {
    text_buffer out;
    if constexpr (fault_of_results<Result, M, Examples>().what == message::vmap_out_axes)
      out << static_cast<int>(Out::size) << " entries, " << static_cast<int>(ops::results_in<Result>()) << " results";
    else write_aval(out, fault_of_results<Result, M, Examples>().about, M::value);
    return out;
  }
};

}  // namespace transform

/// `vmap(f)(x, y)` calls f once, with one example of each argument (x[i], y[i]), and computes what it returns for all i
/// at once: results have the examples along a new first dimension. `vmap<in_axes<0, none, 1>, out_axes<-1>>(f)` says
/// which dimension of each argument goes over the examples (`none`: the argument, which may be a module, is the same
/// for all) and where the examples stand in each result (`none`: it does not depend on them). Mapped arguments are
/// arrays and tuples of them; arrays that f captures are the same for all. Types: f is checked with the types of one
/// example. Mapped dimensions have one extent and one sharding, which results get; arrays that are the same for all,
/// and values within f, do not lie along its axes. What f does becomes the same operation with one more dimension: no
/// loop, and no collective but those of f. A product of two mapped arrays gets a batch dimension, of which checkpoint
/// policies know. Loops and branches are mapped inside; a cond whose predicate is mapped runs both branches. Calls
/// nest; gradients go through it and may be taken within it. Errors: among them, at the call, an operation that cannot
/// be mapped (custom_op on what is mapped). Source: jax.vmap.
template <class... Options, class F>
constexpr auto vmap(F f) {
  return transform::vmapped<
      F, transform::vmap_options<transform::axis_entries<0>, transform::axis_entries<0>, Options...>>{f};
}

}  // namespace tessera
