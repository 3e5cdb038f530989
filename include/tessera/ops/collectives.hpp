// SPDX-License-Identifier: Apache-2.0
// Collectives as the body of a shard_map calls them: each device has a block, and they say which axes it meets others
// over.
#pragma once

#include <tessera/graph/manual.hpp>
#include <tessera/ops/apply.hpp>

namespace tessera {

/// The dimension that blocks are laid along; 0 unless told.
template <int Dim>
struct along_t {};
template <int Dim>
inline constexpr along_t<Dim> along{};

/// Blocks lie side by side along the dimension; without it they are one each along a new one.
struct tiled_t {};
inline constexpr tiled_t tiled{};

/// What a result is to be along the axes: `to_varying`, `to_invarying`, `to_reduced`, `to_unreduced`.
template <manual_state State>
struct to_state {};
inline constexpr to_state<manual_state::varying> to_varying{};
inline constexpr to_state<manual_state::invarying> to_invarying{};
inline constexpr to_state<manual_state::reduced> to_reduced{};
inline constexpr to_state<manual_state::unreduced> to_unreduced{};

/// The dimensions that all_to_all cuts and lays side by side; 0 unless told.
template <int Dim>
struct split_along_t {};
template <int Dim>
inline constexpr split_along_t<Dim> split_along{};
template <int Dim>
struct concat_along_t {};
template <int Dim>
inline constexpr concat_along_t<Dim> concat_along{};

/// Who sends to whom in a ppermute: one pair; device i to (i + Offset) mod n; device i to i + Offset where that exists.
template <int From, int To>
struct send {};
template <int Offset>
struct ring_t {};
template <int Offset>
inline constexpr ring_t<Offset> ring{};
template <int Offset>
struct shift_t {};
template <int Offset>
inline constexpr shift_t<Offset> shift{};

/// Names of their own: rules of other families are called alike.
namespace ops::manual {

/// The options of a collective.
struct collective_options {
  int dim = 0;
  int concat = 0;
  bool tiled = false;
  manual_state to = manual_state::varying;

  template <int Dim>
  constexpr void set(along_t<Dim>) {
    dim = Dim;
  }
  template <int Dim>
  constexpr void set(split_along_t<Dim>) {
    dim = Dim;
  }
  template <int Dim>
  constexpr void set(concat_along_t<Dim>) {
    concat = Dim;
  }
  constexpr void set(tiled_t) { tiled = true; }
  template <manual_state State>
  constexpr void set(to_state<State>) {
    to = State;
  }
};

template <class... Options>
inline constexpr collective_options collective_options_of = [] {
  collective_options options;
  (options.set(Options{}), ...);
  return options;
}();

template <text... Axes>
constexpr axis_list axes_named(const mesh_value& mesh) {
  axis_list axes = 0;
  ((axes = axis_append(axes, mesh.find(Axes.view()))), ...);
  return axes;
}

/// A rule over named axes: they are looked up first.
template <auto Rule, text... Axes>
struct rule_over_axes {
  static constexpr bool rules_variation = true;

  constexpr ruling operator()(std::span<const aval> x, const mesh_value& mesh) const {
    const sharding::axes_ruling named = sharding::manual_axes({Axes.view()...}, mesh);
    if (named.failure == message::none) return Rule(x[0], named.axes, mesh);
    return refuse(named.failure, -1, named.axis);
  }
};
template <auto Rule, text... Axes>
inline constexpr rule_over_axes<Rule, Axes...> over_axes{};

/// `a` with a dimension of extent 1 before dimension `d`.
constexpr aval with_new_dim(aval a, int d) {
  for (int i = a.rank++; i > d; --i) a.dims[i] = a.dims[i - 1];
  a.dims[d] = {1, 0};
  return a;
}
constexpr aval without_dim(aval a, int d) {
  for (int i = d; i + 1 < a.rank; ++i) a.dims[i] = a.dims[i + 1];
  a.dims[--a.rank] = {};
  return a;
}

template <op Combine, bool Mean>
inline constexpr auto psum_rule = [](const aval& a, axis_list axes, const mesh_value&) {
  if (Mean && !is_floating(a.type)) return refuse(message::collective_mean_float);
  return sharding::psum(a, axes, Combine == op::reduce_sum);
};

template <text Name, op Combine, bool Mean, text... Axes>
struct combining {
  constexpr auto operator()(const ArrayLike auto& x) const {
    return apply<Name, over_axes<psum_rule<Combine, Mean>, Axes...>>(
        [](const std::array<graph::value, 1>& v, const aval&) {
          const axis_list axes = axes_named<Axes...>(v[0].mesh());
          const std::uint64_t kind = Combine == op::reduce_sum ? 0 : Combine == op::reduce_max ? 1 : 2;
          const graph::value combined = graph::psum(v[0], axes, kind);
          if constexpr (Mean) return combined / static_cast<double>(devices_along(axes, v[0].mesh()));
          else return combined;
        },
        x);
  }
};

template <collective_options Options>
inline constexpr auto all_gather_rule = [](const aval& a, axis_list axes, const mesh_value& mesh) {
  if (Options.tiled)
    return sharding::gather_blocks(a, axes, sharding::dim_place(Options.dim, a.rank), Options.to, mesh);
  if (a.rank == max_rank) return refuse(message::collective_rank);
  const int d = sharding::dim_place(Options.dim, a.rank + 1);
  if (d < 0) return refuse(message::collective_dim);
  return sharding::gather_blocks(with_new_dim(a, d), axes, d, Options.to, mesh);
};

template <collective_options Options, text... Axes>
inline constexpr auto write_all_gather = [](const std::array<graph::value, 1>& v, const aval&) {
  const aval type = v[0].type();
  const int d = sharding::dim_place(Options.dim, type.rank + (Options.tiled ? 0 : 1));
  const graph::value blocks = Options.tiled ? v[0] : graph::reshape(v[0], with_new_dim(type, d));
  return graph::gather_blocks(blocks, axes_named<Axes...>(v[0].mesh()), d, Options.to);
};

template <collective_options Options>
inline constexpr auto psum_scatter_rule = [](const aval& a, axis_list axes, const mesh_value& mesh) {
  const int d = sharding::dim_place(Options.dim, a.rank);
  ruling ruled = sharding::scatter_blocks(a, axes, d, mesh);
  if (Options.tiled || !ruled.ok()) return ruled;
  if (ruled.result.dims[d].extent != 1) return refuse(message::collective_untiled, d);
  ruled.result = without_dim(ruled.result, d);
  return ruled;
};

template <collective_options Options, text... Axes>
inline constexpr auto write_psum_scatter = [](const std::array<graph::value, 1>& v, const aval& type) {
  const int d = sharding::dim_place(Options.dim, v[0].type().rank);
  return graph::reshape(graph::scatter_blocks(v[0], axes_named<Axes...>(v[0].mesh()), d), type);
};

/// all_to_all without `tiled`: the dimension that is split goes, a new one of the devices comes where blocks are laid.
/// It is one over tiles: with the new dimension, of extent 1 until then, at `concat`, and the old one at `split`.
struct exchange_dims {
  int split = -1;
  int concat = -1;
  bool added = false;  ///< whether a dimension is added before it and one taken away after it
};
template <collective_options Options>
constexpr exchange_dims dims_exchanged(int rank) {
  const int split = sharding::dim_place(Options.dim, rank);
  const int concat = sharding::dim_place(Options.concat, rank);
  if (Options.tiled || split < 0 || concat < 0) return {split, concat, false};
  return concat <= split ? exchange_dims{split + 1, concat, true} : exchange_dims{split, concat + 1, true};
}

template <collective_options Options>
inline constexpr auto exchange_rule = [](const aval& a, axis_list axes, const mesh_value& mesh) {
  const exchange_dims dims = dims_exchanged<Options>(a.rank);
  if (!dims.added) return sharding::exchange_blocks(a, axes, dims.split, dims.concat, mesh);
  if (a.rank == max_rank) return refuse(message::collective_rank);
  ruling ruled = sharding::exchange_blocks(with_new_dim(a, dims.concat), axes, dims.split, dims.concat, mesh);
  if (!ruled.ok()) return ruled;
  if (ruled.result.dims[dims.split].extent != 1)
    return refuse(message::collective_untiled, sharding::dim_place(Options.dim, a.rank));
  ruled.result = without_dim(ruled.result, dims.split);
  return ruled;
};

template <collective_options Options, text... Axes>
inline constexpr auto write_exchange = [](const std::array<graph::value, 1>& v, const aval& type) {
  const exchange_dims dims = dims_exchanged<Options>(v[0].type().rank);
  const graph::value blocks = dims.added ? graph::reshape(v[0], with_new_dim(v[0].type(), dims.concat)) : v[0];
  return graph::reshape(graph::exchange_blocks(blocks, axes_named<Axes...>(v[0].mesh()), dims.split, dims.concat),
                        type);
};

/// The permutation of some pairs or of a pattern along an axis of `n` devices.
struct permutation_ruling {
  graph::permutation sends{};
  message failure = message::none;
};
template <class... Sends>
struct sends_of;
template <int... From, int... To>
struct sends_of<send<From, To>...> {
  static constexpr permutation_ruling over(std::int64_t n) {
    permutation_ruling ruled;
    if (n > graph::permutation::max_places) return {{}, message::ppermute_devices};
    std::uint32_t senders = 0;
    std::uint32_t receivers = 0;
    const auto add = [&](int from, int to) {
      const bool known = from >= 0 && to >= 0 && from < n && to < n;
      if (!known || ((senders >> from) & 1U) || ((receivers >> to) & 1U)) {
        ruled.failure = message::ppermute_pairs;
        return;
      }
      senders |= 1U << from;
      receivers |= 1U << to;
      ruled.sends.connect(from, to);
    };
    (add(From, To), ...);
    return ruled;
  }
};
template <int Offset>
struct sends_of<ring_t<Offset>> {
  static constexpr permutation_ruling over(std::int64_t) {
    return {graph::permutation::regular(graph::permutation::form::ring, Offset)};
  }
};
template <int Offset>
struct sends_of<shift_t<Offset>> {
  static constexpr permutation_ruling over(std::int64_t) {
    return {graph::permutation::regular(graph::permutation::form::shift, Offset)};
  }
};

template <class... Sends>
inline constexpr auto permute_rule = [](const aval& a, axis_list axes, const mesh_value& mesh) {
  const message fault = sends_of<Sends...>::over(devices_along(axes, mesh)).failure;
  return fault == message::none ? sharding::permute_blocks(a, axes) : refuse(fault, -1, mesh.name(axis_at(axes, 0)));
};

template <text Axis, class... Sends>
inline constexpr auto write_permute = [](const std::array<graph::value, 1>& v, const aval&) {
  const axis_list axes = axes_named<Axis>(v[0].mesh());
  return graph::permute_blocks(v[0], axes, sends_of<Sends...>::over(devices_along(axes, v[0].mesh())).sends);
};

template <manual_state To>
inline constexpr auto pcast_rule =
    [](const aval& a, axis_list axes, const mesh_value&) { return sharding::pcast(a, axes, To); };

inline constexpr auto index_rule = [](const aval&, axis_list axes, const mesh_value&) {
  return ruling{sharding::with_state(scalar_aval(dtype::i32), set_of(axes), manual_state::varying)};
};

}  // namespace ops::manual

/// `psum<"x">(v)`: the sum of the blocks of all devices along one or several axes: varying or unreduced -> invarying.
/// An invarying operand counts once a device. Collective: an all-reduce. Gradient: the cotangent, cast back to varying,
/// or for an unreduced operand to reduced; no collective. Source: jax.lax.psum.
template <text... Axes>
inline constexpr ops::manual::combining<"psum", graph::op::reduce_sum, false, Axes...> psum{};

/// The sum divided by the number of devices; floating-point only. Source: jax.lax.pmean.
template <text... Axes>
inline constexpr ops::manual::combining<"pmean", graph::op::reduce_sum, true, Axes...> pmean{};

/// The largest and the smallest of the blocks, element by element; NaN where one is. No gradient: it does not compile.
/// Source: jax.lax.pmax, pmin.
template <text... Axes>
inline constexpr ops::manual::combining<"pmax", graph::op::reduce_max, false, Axes...> pmax{};
template <text... Axes>
inline constexpr ops::manual::combining<"pmin", graph::op::reduce_min, false, Axes...> pmin{};

/// `all_gather<"x">(v, along<1>, tiled, to_invarying)`: the blocks of all devices, in the order of the axes, side by
/// side along a dimension if `tiled`, else along a new one: varying -> varying (`to_invarying`, `to_reduced`).
/// Collective: an all-gather. Gradient: a psum_scatter; of an invarying result each device takes its block, without a
/// collective.
/// Source: jax.lax.all_gather.
template <text... Axes, class... Options>
constexpr auto all_gather(const ArrayLike auto& x, Options...) {
  return ops::apply<
      "all_gather",
      ops::manual::over_axes<ops::manual::all_gather_rule<ops::manual::collective_options_of<Options...>>, Axes...>>(
      ops::manual::write_all_gather<ops::manual::collective_options_of<Options...>, Axes...>, x);
}

/// `psum_scatter<"x">(v, along<1>, tiled)`: the sum over all devices, of which each keeps its block along a dimension:
/// varying or unreduced -> varying. The extent is divisible by the number of devices; without `tiled` it equals it, and
/// the dimension goes. Collective: a reduce-scatter. Gradient: an all_gather (of an unreduced operand to reduced).
/// Source: jax.lax.psum_scatter.
template <text... Axes, class... Options>
constexpr auto psum_scatter(const ArrayLike auto& x, Options...) {
  return ops::apply<
      "psum_scatter",
      ops::manual::over_axes<ops::manual::psum_scatter_rule<ops::manual::collective_options_of<Options...>>, Axes...>>(
      ops::manual::write_psum_scatter<ops::manual::collective_options_of<Options...>, Axes...>, x);
}

/// `all_to_all<"x">(v, split_along<1>, concat_along<0>, tiled)`: block i along one dimension goes to device i, which
/// lays what it receives side by side along the other: varying -> varying. The extent that is split is divisible by the
/// number of devices; without `tiled` it equals it, the dimension goes, and the blocks lie along a new one. Collective:
/// an all-to-all. Gradient: the same with the dimensions swapped. Source: jax.lax.all_to_all.
template <text... Axes, class... Options>
constexpr auto all_to_all(const ArrayLike auto& x, Options...) {
  return ops::apply<
      "all_to_all",
      ops::manual::over_axes<ops::manual::exchange_rule<ops::manual::collective_options_of<Options...>>, Axes...>>(
      ops::manual::write_exchange<ops::manual::collective_options_of<Options...>, Axes...>, x);
}

/// `ppermute<"x", send<0, 1>, send<1, 2>>(v)`, `ppermute<"x">(v, ring<1>)`, `ppermute<"x">(v, shift<-1>)`: each device
/// has what the one that sends to it had, or 0 where nobody sends: varying -> varying. A device sends and receives at
/// most once; pairs can be written for up to 24 devices. Collective: a permutation. Gradient: the inverse one. Source:
/// jax.lax.ppermute.
template <text Axis, class... Sends>
constexpr auto ppermute(const ArrayLike auto& x) {
  return ops::apply<"ppermute", ops::manual::over_axes<ops::manual::permute_rule<Sends...>, Axis>>(
      ops::manual::write_permute<Axis, Sends...>, x);
}
template <text Axis, class Pattern>
constexpr auto ppermute(const ArrayLike auto& x, Pattern) {
  return ops::apply<"ppermute", ops::manual::over_axes<ops::manual::permute_rule<Pattern>, Axis>>(
      ops::manual::write_permute<Axis, Pattern>, x);
}

/// `pcast<"x">(v, to_varying)`: the same values as another state: invarying -> varying (gradient: psum), invarying ->
/// reduced (psum of the unreduced cotangent), varying -> unreduced and reduced -> varying (each other's gradient).
/// Others do not compile. Elementwise operations and collectives cast invarying and reduced operands to varying
/// themselves. Moves nothing. Source: jax.lax.pcast.
template <text... Axes, manual_state State>
constexpr auto pcast(const ArrayLike auto& x, to_state<State>) {
  return ops::apply<"pcast", ops::manual::over_axes<ops::manual::pcast_rule<State>, Axes...>>(
      [](const std::array<graph::value, 1>& v, const aval& type) { return graph::pcast(v[0], type); }, x);
}

/// `axis_index<"x">(v)`: int32[], this device's place along the axes, major first: varying. `v` is any value of the
/// body; only its mesh is asked for. Source: jax.lax.axis_index.
template <text... Axes>
constexpr auto axis_index(const ArrayLike auto& x) {
  return ops::apply<"axis_index", ops::manual::over_axes<ops::manual::index_rule, Axes...>>(
      [](const std::array<graph::value, 1>& v, const aval& type) {
        const graph::value index = graph::write(v[0].owner, graph::op::axis_index, type, {});
        v[0].owner->at(index.id).attribute[0] = ops::manual::axes_named<Axes...>(v[0].mesh());
        return index;
      },
      x);
}

/// The number of devices along the axes, as a constant. Source: jax.lax.axis_size.
template <text... Axes, Expr X>
constexpr std::int64_t axis_size(const X&) {
  constexpr const mesh_value& mesh = X::mesh_type::value;
  constexpr sharding::axes_ruling named = sharding::manual_axes({Axes.view()...}, mesh);
  if constexpr (named.failure != message::none)
    diagnose(report<named.failure, [] { return text_buffer{} << "axis_size of axis " << named.axis; }>);
  return devices_along(named.axes, mesh);
}

}  // namespace tessera
