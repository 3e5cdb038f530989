// SPDX-License-Identifier: Apache-2.0
// Collectives as the body of a shard_map calls them: each device has a block, and they say which axes it meets others over.
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

namespace ops {

/// The options of a collective.
struct collective_options {
  int dim = 0;
  bool tiled = false;
  manual_state to = manual_state::varying;

  template <int Dim>
  constexpr void set(along_t<Dim>) {
    dim = Dim;
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

template <manual_state To>
inline constexpr auto pcast_rule =
    [](const aval& a, axis_list axes, const mesh_value&) { return sharding::pcast(a, axes, To); };

inline constexpr auto index_rule = [](const aval&, axis_list axes, const mesh_value&) {
  return ruling{sharding::with_state(scalar_aval(dtype::i32), set_of(axes), manual_state::varying)};
};

}  // namespace ops

/// `psum<"x">(v)`: the sum of the blocks of all devices along one or several axes: varying or unreduced -> invarying.
/// An invarying operand counts once a device. Collective: an all-reduce. Gradient: the cotangent, cast back to varying,
/// or for an unreduced operand to reduced; no collective. Source: jax.lax.psum.
template <text... Axes>
inline constexpr ops::combining<"psum", graph::op::reduce_sum, false, Axes...> psum{};

/// The sum divided by the number of devices; floating-point only. Source: jax.lax.pmean.
template <text... Axes>
inline constexpr ops::combining<"pmean", graph::op::reduce_sum, true, Axes...> pmean{};

/// The largest and the smallest of the blocks, element by element; NaN where one is. No gradient: it does not compile.
/// Source: jax.lax.pmax, pmin.
template <text... Axes>
inline constexpr ops::combining<"pmax", graph::op::reduce_max, false, Axes...> pmax{};
template <text... Axes>
inline constexpr ops::combining<"pmin", graph::op::reduce_min, false, Axes...> pmin{};

/// `all_gather<"x">(v, along<1>, tiled, to_invarying)`: the blocks of all devices, in the order of the axes, side by side
/// along a dimension if `tiled`, else along a new one: varying -> varying (`to_invarying`, `to_reduced`). Collective: an
/// all-gather. Gradient: a psum_scatter; of an invarying result each device takes its block, without a collective.
/// Source: jax.lax.all_gather.
template <text... Axes, class... Options>
constexpr auto all_gather(const ArrayLike auto& x, Options...) {
  return ops::apply<"all_gather",
                    ops::over_axes<ops::all_gather_rule<ops::collective_options_of<Options...>>, Axes...>>(
      ops::write_all_gather<ops::collective_options_of<Options...>, Axes...>, x);
}

/// `psum_scatter<"x">(v, along<1>, tiled)`: the sum over all devices, of which each keeps its block along a dimension:
/// varying or unreduced -> varying. The extent is divisible by the number of devices; without `tiled` it equals it, and
/// the dimension goes. Collective: a reduce-scatter. Gradient: an all_gather (of an unreduced operand to reduced).
/// Source: jax.lax.psum_scatter.
template <text... Axes, class... Options>
constexpr auto psum_scatter(const ArrayLike auto& x, Options...) {
  return ops::apply<"psum_scatter",
                    ops::over_axes<ops::psum_scatter_rule<ops::collective_options_of<Options...>>, Axes...>>(
      ops::write_psum_scatter<ops::collective_options_of<Options...>, Axes...>, x);
}

/// `pcast<"x">(v, to_varying)`: the same values as another state: invarying -> varying (gradient: psum), invarying ->
/// reduced (psum of the unreduced cotangent), varying -> unreduced and reduced -> varying (each other's gradient). Others
/// do not compile. Elementwise operations and collectives cast invarying and reduced operands to varying themselves.
/// Moves nothing. Source: jax.lax.pcast.
template <text... Axes, manual_state State>
constexpr auto pcast(const ArrayLike auto& x, to_state<State>) {
  return ops::apply<"pcast", ops::over_axes<ops::pcast_rule<State>, Axes...>>(
      [](const std::array<graph::value, 1>& v, const aval& type) { return graph::pcast(v[0], type); }, x);
}

/// `axis_index<"x">(v)`: int32[], this device's place along the axes, major first: varying. `v` is any value of the body;
/// only its mesh is asked for. Source: jax.lax.axis_index.
template <text... Axes>
constexpr auto axis_index(const ArrayLike auto& x) {
  return ops::apply<"axis_index", ops::over_axes<ops::index_rule, Axes...>>(
      [](const std::array<graph::value, 1>& v, const aval& type) {
        const graph::value index = graph::write(v[0].owner, graph::op::axis_index, type, {});
        v[0].owner->at(index.id).attribute[0] = ops::axes_named<Axes...>(v[0].mesh());
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
