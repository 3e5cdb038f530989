// SPDX-License-Identifier: Apache-2.0
// Running sums, products and extrema along one dimension.
#pragma once

#include <tessera/graph/along_axis.hpp>
#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/reduction.hpp>
#include <tessera/ops/reverse.hpp>

namespace tessera {

namespace ops {

/// A dimension counted from 0 or from -1 backwards that must be there and uncut.
constexpr ruling whole_axis(const aval& x, int axis, message absent, message cut) {
  const int place = axis < 0 ? axis + x.rank : axis;
  if (place < 0 || place >= x.rank) return refuse(absent);
  return x.dims[place].axes == 0 ? ruling{x} : refuse(cut, place);
}

template <graph::running Kind, int Axis>
inline constexpr auto cumulative_rule = handles_marks{[](std::span<const aval> x, const mesh_value&) {
  const bool linear = Kind == graph::running::sum && x[0].pending == combine::sum;
  if (x[0].unreduced != 0 && !linear) return refuse(message::unreduced_operand);
  if (Kind == graph::running::logsumexp && !is_floating(x[0].type)) return refuse(message::elementwise_needs_float);
  ruling ruled = whole_axis(x[0], Axis, message::cumulative_axis, message::cumulative_cut);
  if (ruled.ok()) ruled.result.type = number_element(x[0].type);
  return ruled;
}};

/// Over all elements in row-major order: an array that no axis cuts.
template <graph::running Kind>
inline constexpr auto flat_cumulative_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  for (int d = 0; d < x[0].rank; ++d)
    if (x[0].dims[d].axes != 0) return refuse(message::cumulative_cut, d);
  aval flat = with_marks(scalar_aval(x[0].type), x[0]);
  flat.dims[flat.rank++].extent = x[0].size();
  return cumulative_rule<Kind, 0>(std::span<const aval>(&flat, 1), mesh);
}};

template <text Name, graph::running Kind>
struct flat_cumulative_operation {
  static constexpr auto write(bool backwards) {
    return [backwards](const std::array<graph::value, 1>& x, const aval& type) {
      return graph::cumulative(graph::reshape(as_number(x[0]), type), Kind, 0, backwards);
    };
  }
  constexpr auto operator()(const ArrayLike auto& x) const {
    return apply<Name, flat_cumulative_rule<Kind>>(write(false), x);
  }
  constexpr auto operator()(const ArrayLike auto& x, reverse_t) const {
    return apply<Name, flat_cumulative_rule<Kind>>(write(true), x);
  }
};

template <text Name, graph::running Kind, int Axis>
struct cumulative_operation {
  static constexpr auto write(bool backwards) {
    return [backwards](const std::array<graph::value, 1>& x, const aval& type) {
      return graph::cumulative(as_number(x[0]), Kind, Axis < 0 ? Axis + type.rank : Axis, backwards);
    };
  }
  constexpr auto operator()(const ArrayLike auto& x) const {
    return apply<Name, cumulative_rule<Kind, Axis>>(write(false), x);
  }
  constexpr auto operator()(const ArrayLike auto& x, reverse_t) const {
    return apply<Name, cumulative_rule<Kind, Axis>>(write(true), x);
  }
};

}  // namespace ops

/// `cumsum<1>(x)[i] = x[0] + ... + x[i]` along a dimension, which must be uncut; `cumsum<1>(x, reverse)` runs from the
/// end. Same extents and cuts as x; bool counts as int32; integers wrap around, float32 is carried in float64.
/// Gradient: the same sum from the other end. `cumsum(x)` runs over all elements in row-major order and gives one
/// dimension; x is uncut. Of these, cumsum and cumprod have that form, as in jax.numpy. A sum of unreduced arrays is
/// unreduced; the other running values refuse them. No collective. Source: jax.lax.cumsum.
template <int Axis>
constexpr auto cumsum(const ArrayLike auto& x, std::same_as<reverse_t> auto... options) {
  return ops::cumulative_operation<"cumsum", graph::running::sum, Axis>{}(x, options...);
}
constexpr auto cumsum(const ArrayLike auto& x, std::same_as<reverse_t> auto... options) {
  return ops::flat_cumulative_operation<"cumsum", graph::running::sum>{}(x, options...);
}

/// Running products. The gradient is right also where elements are 0: nothing is divided. Saved for it: x and the
/// result. Otherwise as cumsum. Source: jax.lax.cumprod.
template <int Axis>
constexpr auto cumprod(const ArrayLike auto& x, std::same_as<reverse_t> auto... options) {
  return ops::cumulative_operation<"cumprod", graph::running::prod, Axis>{}(x, options...);
}
constexpr auto cumprod(const ArrayLike auto& x, std::same_as<reverse_t> auto... options) {
  return ops::flat_cumulative_operation<"cumprod", graph::running::prod>{}(x, options...);
}

/// The largest, the smallest so far; NaN from the first NaN on. The gradient goes to the element that was reached
/// first. Otherwise as cumsum. Source: jax.lax.cummax, cummin.
template <int Axis>
constexpr auto cummax(const ArrayLike auto& x, std::same_as<reverse_t> auto... options) {
  return ops::cumulative_operation<"cummax", graph::running::max, Axis>{}(x, options...);
}
template <int Axis>
constexpr auto cummin(const ArrayLike auto& x, std::same_as<reverse_t> auto... options) {
  return ops::cumulative_operation<"cummin", graph::running::min, Axis>{}(x, options...);
}

/// log(exp(x[0]) + ... + exp(x[i])) without overflow, -inf for nothing but -inf; floating-point only. Otherwise as
/// cumsum. Source: jax.lax.cumlogsumexp.
template <int Axis>
constexpr auto cumlogsumexp(const ArrayLike auto& x, std::same_as<reverse_t> auto... options) {
  return ops::cumulative_operation<"cumlogsumexp", graph::running::logsumexp, Axis>{}(x, options...);
}

}  // namespace tessera
