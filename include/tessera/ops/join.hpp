// SPDX-License-Identifier: Apache-2.0
// Larger arrays from smaller ones: pad, concatenate, stack.
#pragma once

#include <tessera/graph/layout.hpp>
#include <tessera/ops/dims.hpp>
#include <tessera/ops/options.hpp>

#include <vector>

namespace tessera {

/// What stands around and between the elements of one dimension: `padding{1, 1}`; a negative side is cropped.
struct padding {
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::int64_t interior = 0;
};

namespace ops {

template <padding... Entries>
constexpr sharding::paddings paddings_of() {
  sharding::paddings by;
  int d = 0;
  [[maybe_unused]] const auto add = [&](const padding& p) {
    if (d < max_rank) by.of[d++] = {p.low, p.high, p.interior};
  };
  (add(Entries), ...);
  return by;
}

template <class OutSpec, padding... Entries>
inline constexpr auto pad_rule = keeps_reduced{[](std::span<const aval> x, const mesh_value& mesh) {
  if (static_cast<int>(sizeof...(Entries)) > x[0].rank) return refuse(message::pad_entries);
  if (x[1].rank != 0) return refuse(message::pad_scalar);
  if (x[1].type != x[0].type) return refuse(message::pad_dtype);
  return sharding::pad(x[0], paddings_of<Entries...>(), chosen_spec<OutSpec>(mesh).get(), mesh);
}};

template <padding... Entries>
inline constexpr auto write_pad = [](const std::array<graph::value, 2>& x, const aval& type) {
  constexpr sharding::paddings by = paddings_of<Entries...>();
  aval from = x[0].type();
  for (int d = 0; d < from.rank; ++d) from.dims[d].axes = by.of[d].nothing() ? type.dims[d].axes : 0;
  return graph::reshard(graph::pad(graph::reshard(x[0], from), x[1], by), type);
};

/// Operands of a stack, each with a dimension of extent 1 at `place`.
constexpr aval with_one(aval type, int place) {
  for (int d = type.rank++; d > place; --d) type.dims[d] = type.dims[d - 1];
  type.dims[place] = {1, 0};
  return type;
}

template <int Axis, bool Stack, class OutSpec>
inline constexpr auto concatenate_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  const int place = sharding::place_of(Axis, x[0].rank + Stack);
  std::vector<aval> operands(x.begin(), x.end());
  if (Stack && place >= 0) {
    if (x[0].rank == max_rank) return refuse(message::shape_rank);
    for (aval& a : operands) {
      if (a.rank != x[0].rank) return refuse(message::concatenate_shape);
      a = with_one(a, place);
    }
  }
  return sharding::concatenate(operands, place, chosen_spec<OutSpec>(mesh).get(), mesh);
}};

template <int Axis, bool Stack>
struct write_concatenate {
  template <std::size_t N>
  constexpr graph::value operator()(const std::array<graph::value, N>& x, const aval& type) const {
    const int place = sharding::place_of(Axis, type.rank);
    std::array<graph::value, N> parts = x;
    for (graph::value& part : parts) {
      if constexpr (Stack) part = graph::reshape(part, with_one(part.type(), place));
      aval alike = uncut(type, place);
      alike.dims[place].extent = part.type().dims[place].extent;
      part = graph::reshard(part, alike);
    }
    return graph::reshard(graph::concatenate(parts, place), type);
  }
};

template <text Name, int Axis, bool Stack, class... Arguments>
constexpr auto join(const Arguments&... arguments) {
  using spec = typename spec_among<Arguments...>::type;
  return with_operands(
      [](const auto&... xs) {
        return apply<Name, concatenate_rule<Axis, Stack, spec>>(write_concatenate<Axis, Stack>{}, xs...);
      },
      arguments...);
}

}  // namespace ops

/// An argument of concatenate and stack: an array, or last an `out_sharding<...>`.
template <class T>
concept JoinArgument = ArrayLike<T> || OutSharding<T>;

/// `pad<padding{1, 2}, padding{}, padding{0, 0, 1}>(x, 0)`: by dimension so many copies of a scalar before, behind and
/// between neighbours; negative ones before and behind crop. x and a number or scalar of its dtype -> that dtype.
/// Padded dimensions are uncut, or `out_sharding<...>` says how the result is cut and gathers what must be. Gradient:
/// the slice of the cotangent where x stands, the sum of the rest to the scalar. Source: jax.lax.pad.
template <padding... Entries>
constexpr auto pad(const ArrayLike auto& x, const Operand auto& fill, OutSharding auto... options) {
  using spec = typename ops::spec_among<decltype(options)...>::type;
  return ops::apply<"pad", ops::pad_rule<spec, Entries...>>(ops::write_pad<Entries...>, x, fill);
}
template <padding... Entries>
constexpr auto pad(const ArrayLike auto& x, OutSharding auto... options) {
  return tessera::pad<Entries...>(x, 0, options...);
}

/// `concatenate<1>(a, b, c)`: one after another along a dimension. Operands of one dtype, equal extents elsewhere and
/// one spec, uncut along the dimension; with `out_sharding<...>` last they may be cut in any way and are moved to where
/// the result has them. Gradient: the slices of the cotangent. Source: jax.numpy.concatenate.
template <int Axis = 0, ArrayLike First, JoinArgument... Rest>
constexpr auto concatenate(const First& first, const Rest&... rest) {
  return ops::join<"concatenate", Axis, false>(first, rest...);
}

/// `stack<0>(a, b)`: arrays of one type side by side along a new dimension at this place of the result. Source:
/// jax.numpy.stack.
template <int Axis = 0, ArrayLike First, JoinArgument... Rest>
constexpr auto stack(const First& first, const Rest&... rest) {
  return ops::join<"stack", Axis, true>(first, rest...);
}

}  // namespace tessera
