// SPDX-License-Identifier: Apache-2.0
// Convolutions and pooling over one or two spatial dimensions between batch and channels.
#pragma once

#include <tessera/graph/layout.hpp>
#include <tessera/graph/windows.hpp>
#include <tessera/ops/options.hpp>

#include <limits>

namespace tessera {

/// An argument of conv and pools: with `same` the array is padded so that there is a window for every stride elements
/// (with one more behind than before if the number is odd), with `valid` windows stay inside.
enum class window_padding : std::uint8_t { valid, same };
template <window_padding Padding>
struct window_padding_t {};
inline constexpr window_padding_t<window_padding::same> same{};
inline constexpr window_padding_t<window_padding::valid> valid{};

/// How far it is from window to window, and from element to element within one: a number a spatial dimension.
template <std::int64_t... Sizes>
struct strides_t {};
template <std::int64_t... Sizes>
inline constexpr strides_t<Sizes...> strides{};
template <std::int64_t... Sizes>
struct dilation_t {};
template <std::int64_t... Sizes>
inline constexpr dilation_t<Sizes...> dilation{};

/// Channels and outputs in so many groups, each a convolution of its own: `feature_group_count<2>`.
template <std::int64_t Count>
struct feature_group_count_t {};
template <std::int64_t Count>
inline constexpr feature_group_count_t<Count> feature_group_count{};

namespace ops {

/// What options of a convolution say; numbers that are not given are 1.
struct window_options {
  window_padding padding = window_padding::valid;
  std::int64_t strides[2] = {1, 1};
  std::int64_t dilation[2] = {1, 1};
  int given[2] = {0, 0};  ///< how many of each
  std::int64_t groups = 1;
};

template <class T>
inline constexpr bool is_window_option = is_out_sharding<T>;
template <window_padding Padding>
inline constexpr bool is_window_option<window_padding_t<Padding>> = true;
template <std::int64_t... Sizes>
inline constexpr bool is_window_option<strides_t<Sizes...>> = true;
template <std::int64_t... Sizes>
inline constexpr bool is_window_option<dilation_t<Sizes...>> = true;

template <std::int64_t Count>
inline constexpr bool is_window_option<feature_group_count_t<Count>> = true;

constexpr void read_window_option(window_options&, const auto&) {}
template <std::int64_t Count>
constexpr void read_window_option(window_options& options, const feature_group_count_t<Count>&) {
  options.groups = Count;
}
template <window_padding Padding>
constexpr void read_window_option(window_options& options, const window_padding_t<Padding>&) {
  options.padding = Padding;
}
template <std::int64_t... Sizes>
constexpr void read_sizes(std::int64_t (&to)[2], int& given) {
  const auto add = [&](std::int64_t size) {
    if (given < 2) to[given] = size;
    ++given;
  };
  (add(Sizes), ...);
}
template <std::int64_t... Sizes>
constexpr void read_window_option(window_options& options, const strides_t<Sizes...>&) {
  read_sizes<Sizes...>(options.strides, options.given[0]);
}
template <std::int64_t... Sizes>
constexpr void read_window_option(window_options& options, const dilation_t<Sizes...>&) {
  read_sizes<Sizes...>(options.dilation, options.given[1]);
}

template <class... Options>
constexpr window_options window_options_of(window_padding padding) {
  window_options options{padding};
  (read_window_option(options, Options{}), ...);
  return options;
}

/// Windows of these extents over the spatial dimensions of `x`, what is padded, and the extents that result.
struct window_plan {
  graph::windowing how{};
  sharding::paddings padded{};
  aval result{};  ///< of x's rank; spatial dimensions keep their cuts
  message failure = message::none;
  int dimension = -1;

  constexpr bool pads() const {
    for (int d = 0; d < result.rank; ++d)
      if (!padded.of[d].nothing()) return true;
    return false;
  }
};

constexpr window_plan plan_windows(const aval& x, std::span<const std::int64_t> extents,
                                   const window_options& options) {
  window_plan plan{{}, {}, x};
  const int spatial = x.rank - 2;
  if (spatial < 1 || spatial > 2) return {{}, {}, x, message::conv_rank};
  for (int given : options.given)
    if (given != 0 && given != spatial) return {{}, {}, x, message::conv_options};
  if (static_cast<int>(extents.size()) != spatial) return {{}, {}, x, message::conv_options};
  plan.how.count = spatial;
  for (int i = 0; i < spatial; ++i) {
    graph::window& w = plan.how.of[i];
    w = {i + 1, extents[static_cast<std::size_t>(i)], options.strides[i], options.dilation[i]};
    if (w.extent < 1 || w.stride < 1 || w.dilation < 1) return {{}, {}, x, message::conv_options, i + 1};
    const std::int64_t whole = x.dims[i + 1].extent;
    std::int64_t count = w.count(whole);
    if (options.padding == window_padding::same) {
      count = (whole + w.stride - 1) / w.stride;
      const std::int64_t needed = (count - 1) * w.stride + w.span() - whole;
      if (needed > 0) plan.padded.of[i + 1] = {needed / 2, needed - needed / 2};
    }
    if (count < 1) return {{}, {}, x, message::conv_window, i + 1};
    plan.result.dims[i + 1].extent = count;
  }
  return plan;
}

/// Whether dimension `d`, cut as it is, has every window within one block.
constexpr bool windows_stay_in_blocks(const aval& x, const window_plan& plan, int d, const mesh_value& mesh) {
  const graph::window& w = plan.how.of[d - 1];
  const std::int64_t devices = devices_along(x.dims[d].axes, mesh);
  return plan.padded.of[d].nothing() && w.span() <= w.stride && devices > 0 && x.dims[d].extent % devices == 0 &&
         x.dims[d].extent / devices % w.stride == 0;
}

/// `x` cut as `like` along batch and spatial dimensions, those uncut where a window reaches over the end of a block.
constexpr aval under_windows(aval x, const window_plan& plan, const aval& like, const mesh_value& mesh) {
  x.dims[0].axes = like.dims[0].axes;
  for (int d = 1; d + 1 < x.rank; ++d) {
    x.dims[d].axes = like.dims[d].axes;
    if (!windows_stay_in_blocks(x, plan, d, mesh)) x.dims[d].axes = 0;
  }
  return x;
}

/// The windows of `x`, padded with `fill`: batch, windows, positions within, channels.
constexpr graph::value write_windows(graph::value x, double fill, const window_plan& plan) {
  return graph::windows(plan.pads() ? graph::pad(x, graph::number_like(x, fill), plan.padded) : x, plan.how);
}

/// As of a product: the result may stay unreduced over exactly the axes that cut the channels of both operands.
constexpr message check_conv_marks(const aval& x, const aval& taps, const aval& result) {
  if (result.reduced != 0) return message::marks_changed;
  if (result.unreduced == 0) return message::none;
  const axis_list both = x.dims[x.rank - 1].axes;
  const bool exact = both == taps.dims[taps.rank - 2].axes && set_of(both) == result.unreduced;
  return exact && result.pending == combine::sum ? message::none : message::matmul_unreduced;
}

template <class... Options>
inline constexpr auto conv_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  const aval& taps = x[1];
  if (x[0].type != taps.type || taps.type == dtype::bool_) return refuse(message::conv_dtype);
  if (x[0].rank < 3 || x[0].rank > 4) return refuse(message::conv_rank);
  if (taps.rank != x[0].rank) return refuse(message::conv_kernel);
  const int channels = x[0].rank - 1;
  constexpr std::int64_t groups = window_options_of<Options...>(window_padding::same).groups;
  if (groups < 1 || taps.dims[channels].extent % groups != 0) return refuse(message::conv_groups, channels);
  if (taps.dims[channels - 1].extent * groups != x[0].dims[channels].extent)
    return refuse(groups == 1 ? message::conv_kernel : message::conv_groups, channels);
  std::int64_t extents[2] = {taps.dims[0].extent, taps.dims[1].extent};
  const window_plan plan = plan_windows(x[0], std::span(extents).first(static_cast<std::size_t>(channels - 1)),
                                        window_options_of<Options...>(window_padding::same));
  if (plan.failure != message::none) return refuse(plan.failure, plan.dimension);
  if (x[0].unreduced != 0 || taps.unreduced != 0) return refuse(message::unreduced_operand);
  aval result = without_marks(plan.result);
  result.dims[channels] = {taps.dims[channels].extent, 0};
  using spec = typename spec_among<Options...>::type;
  const chosen_spec<spec> chosen(mesh);
  if (chosen.get() != nullptr) {
    for (int d = 0; d < result.rank; ++d) result.dims[d].axes = 0;
    const ruling ruled = with_spec(result, *chosen.get(), mesh);
    message why = ruled.ok() ? check_conv_marks(x[0], taps, ruled.result) : message::none;
    if (groups > 1 && ruled.result.unreduced != 0) why = message::matmul_unreduced;
    return why == message::none ? ruled : ruling{ruled.result, why};
  }
  if (taps.cut() != 0 || x[0].dims[channels].axes != 0) return refuse(message::conv_sharding);
  const ruling checked = check_cuts(result, mesh);
  return checked.ok() ? ruling{result} : checked;
}};

/// Dimension `d` of `v`, which no axis cuts, as two: `count` and the rest.
constexpr graph::value split_dim(graph::value v, int d, std::int64_t count) {
  aval type = v.type();
  for (int i = type.rank++; i > d; --i) type.dims[i] = type.dims[i - 1];
  type.dims[d].extent = count;
  type.dims[d + 1].extent /= count;
  return graph::reshape(v, type);
}

/// One product with the groups as a batch dimension, over windows whose channels, like the kernel, are not cut.
constexpr graph::value write_grouped(graph::value patches, graph::value taps, std::int64_t groups, const aval& type) {
  const int spatial = type.rank - 2;
  const graph::value left = split_dim(patches, 2 * spatial + 1, groups);
  const graph::value right = split_dim(taps, spatial + 1, groups);
  sharding::dot_dims dims;
  for (int i = 0; i <= spatial; ++i) {
    dims.lhs_contracting = sharding::dim_append(dims.lhs_contracting, spatial + 1 + i + (i == spatial ? 1 : 0));
    dims.rhs_contracting = sharding::dim_append(dims.rhs_contracting, i);
  }
  dims.lhs_batch = sharding::dim_append(0, 2 * spatial + 1);
  dims.rhs_batch = sharding::dim_append(0, spatial + 1);
  const graph::value product = graph::dot(left, right, dims, sharding::dot_result(left.type(), right.type(), dims));
  // Groups come first: they go before the outputs of each.
  sharding::dim_list order = 0;
  for (int d = 1; d <= spatial + 1; ++d) order = sharding::dim_append(order, d);
  order = sharding::dim_append(sharding::dim_append(order, 0), spatial + 2);
  const graph::value turned = graph::transpose(product, order);
  aval joined = turned.type();
  const int last = --joined.rank;
  joined.dims[last - 1].extent *= joined.dims[last].extent;
  joined.dims[last] = {};
  return graph::reshape(turned, joined);
}

/// One matrix product over all windows. Channels that both operands have cut alike stay cut, if the result leaves their
/// axes free: the sum over them is pending then.
template <class... Options>
inline constexpr auto write_conv = [](const std::array<graph::value, 2>& x, const aval& type) {
  const int channels = type.rank - 1;
  const int spatial = channels - 1;
  aval taps = x[1].type();
  const axis_list both = taps.dims[spatial].axes;
  constexpr std::int64_t groups = window_options_of<Options...>(window_padding::same).groups;
  const bool summed = groups == 1 && x[0].type().dims[channels].axes == both && (set_of(both) & type.cut()) == 0;
  const std::int64_t extents[2] = {taps.dims[0].extent, taps.dims[1].extent};
  const window_plan plan = plan_windows(x[0].type(), std::span(extents).first(static_cast<std::size_t>(spatial)),
                                        window_options_of<Options...>(window_padding::same));
  aval input = under_windows(x[0].type(), plan, type, x[0].mesh());
  for (int d = 0; d < taps.rank; ++d) taps.dims[d].axes = 0;
  input.dims[channels].axes = taps.dims[spatial].axes = summed ? both : 0;
  taps.dims[channels].axes = groups == 1 ? type.dims[channels].axes : 0;
  const graph::value patches = write_windows(graph::reshard(x[0], input), 0, plan);
  const graph::value weights = graph::reshard(x[1], taps);
  if (groups > 1) return graph::reshard(write_grouped(patches, weights, groups, type), type);
  sharding::dot_dims dims;
  for (int i = 0; i <= spatial; ++i) {
    dims.lhs_contracting = sharding::dim_append(dims.lhs_contracting, spatial + 1 + i);
    dims.rhs_contracting = sharding::dim_append(dims.rhs_contracting, i);
  }
  aval natural = type;
  for (int d = 1; d < channels; ++d) natural.dims[d].axes = input.dims[d].axes;
  return graph::reshard(graph::dot(patches, weights, dims, natural), type);
};

template <class... Options>
constexpr window_plan plan_pool(const aval& x, std::span<const std::int64_t> window) {
  return plan_windows(x, window, window_options_of<Options...>(window_padding::valid));
}

template <bool Mean, class Window, class... Options>
inline constexpr auto pool_rule = keeps_reduced{[](std::span<const aval> x, const mesh_value& mesh) {
  if (x[0].type == dtype::bool_ || (Mean && !is_floating(x[0].type))) return refuse(message::pool_dtype);
  const window_plan plan = plan_pool<Options...>(x[0], Window::extents);
  if (plan.failure != message::none) return refuse(plan.failure, plan.dimension);
  using spec = typename spec_among<Options...>::type;
  const chosen_spec<spec> chosen(mesh);
  if (chosen.get() != nullptr) return with_cuts(plan.result, *chosen.get(), mesh);
  const ruling checked = check_cuts(plan.result, mesh);
  return checked.ok() ? ruling{plan.result} : checked;
}};

/// The lowest number of a dtype; where it is -infinity, that.
constexpr double lowest(dtype type) {
  if (is_floating(type)) return -std::numeric_limits<double>::infinity();
  return type == dtype::i32 ? static_cast<double>(std::numeric_limits<std::int32_t>::min()) : 0.0;
}

template <bool Mean, class Window, class... Options>
inline constexpr auto write_pool = [](const std::array<graph::value, 1>& x, const aval& type) {
  const window_plan plan = plan_pool<Options...>(x[0].type(), Window::extents);
  aval input = under_windows(x[0].type(), plan, type, x[0].mesh());
  input.dims[type.rank - 1].axes = type.dims[type.rank - 1].axes;
  const graph::value patches = write_windows(graph::reshard(x[0], input), Mean ? 0 : lowest(type.type), plan);
  sharding::dim_set within = 0;
  double size = 1;
  for (int i = 0; i < plan.how.count; ++i) {
    within |= 1U << (plan.how.count + 1 + i);
    size *= static_cast<double>(plan.how.of[i].extent);
  }
  const graph::value pooled = graph::reduce(Mean ? op::reduce_sum : op::reduce_max, patches, within, false);
  return graph::reshard(Mean ? pooled / size : pooled, type);
};

}  // namespace ops

/// What may stand behind the arrays of conv and pools.
template <class T>
concept WindowOption = ops::is_window_option<std::remove_cvref_t<T>>;

/// `conv(x, kernel)`, `conv(x, kernel, valid, strides<2, 2>, dilation<1, 1>)`: y[n, i, j, o] = sum over k, l, c of
/// x[n, i s + k d, j s + l d, c] kernel[k, l, c, o], x padded with zeros (`same`, unless `valid` is given). x is
/// (batch, height, width, channels), the kernel (height, width, channels, outputs); with one spatial dimension both
/// have one dimension less. One matrix product over a copy of all windows. With `feature_group_count<G>` channels and
/// outputs are G groups, each a convolution of its own: the kernel is (height, width, channels / G, outputs), and what
/// cuts channels or outputs is gathered or sliced around it. Cuts: batch and spatial dimensions keep those of x; the
/// kernel and the channels are uncut. With `out_sharding<...>` all may be cut: outputs as asked, channels of both alike
/// end in an all-reduce, or nowhere if the result is to stay unreduced over their axes. Unreduced operands are refused,
/// that one is reduced is forgotten. Collectives: an all-gather where a spatial dimension is cut (windows reach into
/// neighbouring blocks), unless no window reaches over the end of a block. Gradient: a product for the kernel, one for
/// the windows, which are added up where they overlap. Saved: x and the kernel. Source: jax.lax.conv_general_dilated,
/// flax.nnx.Conv.
template <ArrayLike X, ArrayLike Kernel, WindowOption... Options>
constexpr auto conv(const X& x, const Kernel& kernel, Options...) {
  return ops::apply<"conv", ops::conv_rule<Options...>>(ops::write_conv<Options...>, x, kernel);
}

/// `max_pool<shape<2, 2>>(x, strides<2, 2>)`: the largest element of each window, channel by channel; windows are 1
/// apart unless strides are given, and stay inside unless `same` is. Equal largest elements share the gradient. Types,
/// cuts and collectives as of conv; channels may be cut. Source: flax.linen.max_pool, avg_pool.
template <class Window, ArrayLike X, WindowOption... Options>
constexpr auto max_pool(const X& x, Options...) {
  return ops::apply<"max_pool", ops::pool_rule<false, Window, Options...>>(ops::write_pool<false, Window, Options...>,
                                                                           x);
}

/// The mean of each window; padding counts as zeros.
template <class Window, ArrayLike X, WindowOption... Options>
constexpr auto avg_pool(const X& x, Options...) {
  return ops::apply<"avg_pool", ops::pool_rule<true, Window, Options...>>(ops::write_pool<true, Window, Options...>, x);
}

}  // namespace tessera
