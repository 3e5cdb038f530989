// SPDX-License-Identifier: Apache-2.0
// Scans whose body holds several trips.
#pragma once

#include <tessera/graph/layout.hpp>
#include <tessera/ops/control.hpp>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

namespace tessera {

/// So many trips in one body: `scan(f, init, xs, unroll<4>)`.
template <std::int64_t K>
struct unroll_t {};
template <std::int64_t K>
inline constexpr unroll_t<K> unroll{};

namespace ops {

template <class T, class M>
inline constexpr std::size_t leaf_count = leaf_types<T, M>().size();
template <class T, class M, std::size_t I>
inline constexpr aval leaf_type = leaf_types<T, M>()[I];

/// `float32[12,8]` in groups of 4: `float32[3,4,8]`.
constexpr aval in_groups(const aval& whole, std::int64_t k) {
  return graph::stacked(graph::stacked(graph::slice_of(whole), k), whole.dims[0].extent / k);
}

template <class T, class M, std::int64_t K, class Order = std::make_index_sequence<leaf_count<T, M>>>
struct groups_of;
template <class T, class M, std::int64_t K, std::size_t... I>
struct groups_of<T, M, K, std::index_sequence<I...>>
    : std::type_identity<std::tuple<expr<in_groups(leaf_type<T, M, I>, K), M>...>> {};

/// Element `i` of each of these arrays.
constexpr graph::list<int> elements_at(graph::graph& here, const graph::list<int>& arrays, std::int64_t i) {
  graph::list<int> elements;
  for (int array : arrays) {
    const graph::value v{&here, array};
    sharding::slices taken = sharding::everything(v.type());
    taken.of[0] = {i, 1, 1};
    elements.push_back(graph::reshape(graph::slice(v, taken), graph::slice_of(v.type())).id);
  }
  return elements;
}

/// Arrays side by side along a new leading dimension.
constexpr graph::value side_by_side(graph::graph& here, std::span<const int> arrays) {
  graph::list<graph::value> parts;
  for (int array : arrays) {
    const graph::value v{&here, array};
    parts.push_back(graph::reshape(v, graph::stacked(v.type(), 1)));
  }
  return graph::concatenate({parts.data(), parts.size()}, 0);
}

/// The body of K trips; `group` are K slices of every array.
template <std::int64_t K, bool Reverse, class Slices, class M, class F>
struct trips_in_a_row {
  F f;
  const Slices& form;

  template <class Carry, class Group>
  constexpr auto operator()(Carry carry, const Group& group) const {
    using result = decltype(f(carry, form));
    if constexpr (!requires(result r) { r.first, r.second; }) {
      return f(carry, form);
    } else if constexpr (!std::same_as<std::remove_cvref_t<decltype(std::declval<result>().first)>, Carry>) {
      return std::pair(f(carry, form).first, none);
    } else {
      using outputs = body_form<std::remove_cvref_t<decltype(std::declval<result>().second)>, M>;
      graph::graph& here = owner_of_tree(group)->active();
      graph::list<int> arrays;
      append_nodes(group, here, arrays);
      graph::list<graph::list<int>> made(static_cast<std::size_t>(K));
      for (std::int64_t trip = 0; trip < K; ++trip) {
        const std::int64_t i = Reverse ? K - 1 - trip : trip;
        Slices slices = form;
        std::size_t next = 0;
        set_nodes(slices, here, elements_at(here, arrays, i), next);
        const auto one = f(carry, slices);
        carry = one.first;
        append_nodes(one.second, here, made[static_cast<std::size_t>(i)]);
      }
      using stacks = typename map_tree<outputs, stacked_over<K>::template leaf>::type;
      stacks all{};
      graph::list<int> nodes;
      for (std::size_t leaf = 0; leaf < made[0].size(); ++leaf) {
        graph::list<int> parts;
        for (const graph::list<int>& trip : made) parts.push_back(trip[leaf]);
        nodes.push_back(side_by_side(here, {parts.data(), parts.size()}).id);
      }
      std::size_t next = 0;
      set_nodes(all, here, nodes, next);
      return std::pair(carry, all);
    }
  }
};

/// `float32[3,4,8]` without its groups: `float32[12,8]`.
struct ungrouped {
  template <class T>
  struct leaf : std::type_identity<T> {};
  template <aval Type, class M>
  struct leaf<expr<Type, M>>
      : std::type_identity<
            expr<graph::stacked(graph::slice_of(graph::slice_of(Type)), Type.dims[0].extent* Type.dims[1].extent), M>> {
  };
};

template <std::int64_t K, bool Reverse, class F, class Init, class Xs>
constexpr auto scan_unrolled(F f, const Init& init, const Xs& xs) {
  using M = typename join_meshes<typename mesh_of_tree<Init>::type, typename mesh_of_tree<Xs>::type>::type;
  constexpr std::int64_t trips = leading_extent<Xs, M>();
  if constexpr (K < 1 || trips % (K < 1 ? 1 : K) != 0) {
    diagnose(report<message::scan_unroll, [] { return text_buffer{} << trips << " trips by " << K; }>);
    return nothing_scanned();
  } else if constexpr (has_poison<Init> || has_poison<Xs> || !stacked_ruling<Xs, M>(trips).ok() ||
                       holds_unstacked<Xs> || K == 1) {
    return scan_stacked<Reverse>(f, init, xs);
  } else {
    using slices = typename map_tree<body_form<Xs, M>, slice_leaf>::type;
    using groups = typename groups_of<Xs, M, K>::type;
    graph::graph& here = owner_of_tree(xs)->active();
    const slices form = shaped_like<slices>(xs);
    const auto out = scan_stacked<Reverse>(trips_in_a_row<K, Reverse, slices, M, F>{f, form}, init,
                                           reshaped_leaves<groups, M>(groups{}, xs, here));
    if constexpr (Poison<std::remove_cvref_t<decltype(out.first)>>) {
      return out;
    } else {
      using whole = typename map_tree<std::remove_cvref_t<decltype(out.second)>, ungrouped::leaf>::type;
      return std::pair(out.first, reshaped_leaves<whole, M>(whole{}, out.second, here));
    }
  }
}

}  // namespace ops

/// A scan with K trips in one body: fewer, longer trips, and what a trip hands to the next one may be fused. K divides
/// the number of trips. Values are those of scan, bit for bit. Source: jax.lax.scan, `unroll`.
template <class F, class Init, class Xs, std::int64_t K>
constexpr auto scan(F f, const Init& init, const Xs& xs, unroll_t<K>) {
  return ops::scan_unrolled<K, false>(f, init, xs);
}
template <class F, class Init, class Xs, std::int64_t K>
constexpr auto scan(F f, const Init& init, const Xs& xs, reverse_t, unroll_t<K>) {
  return ops::scan_unrolled<K, true>(f, init, xs);
}

}  // namespace tessera
