// SPDX-License-Identifier: Apache-2.0
// Parts of arrays whose place is known at run time: dynamic_slice, dynamic_update_slice.
#pragma once

#include <tessera/graph/layout.hpp>
#include <tessera/ops/create.hpp>
#include <tessera/ops/join.hpp>
#include <tessera/ops/options.hpp>

namespace tessera {

/// Where a part starts: a traced integer scalar, or a number.
template <class T>
concept Start = ArrayLike<T> || std::integral<std::remove_cvref_t<T>>;

namespace ops {

/// A start as a traced scalar beside `x`.
constexpr auto start_beside(const auto& x, const Start auto& start) {
  if constexpr (ArrayLike<decltype(start)>) return start;
  else return full<shape<>, dtype::i32>(x, start);
}

constexpr message start_fault(std::span<const aval> starts) {
  for (const aval& s : starts)
    if (s.rank != 0 || (s.type != dtype::i32 && s.type != dtype::u32)) return message::dynamic_start;
  for (const aval& s : starts)
    if (const message why = check_unmarked(s); why != message::none) return why;
  return message::none;
}

/// `whole` with the extents of `part`; where they differ it is uncut, or must be without `out_spec`.
constexpr ruling dynamic_part(const aval& whole, const aval& part, const spec_value* out_spec, const mesh_value& mesh) {
  aval result = whole;
  for (int d = 0; d < whole.rank; ++d) {
    if (part.dims[d].extent < 0 || part.dims[d].extent > whole.dims[d].extent) return refuse(message::dynamic_size, d);
    if (part.dims[d].extent == whole.dims[d].extent) continue;
    if (out_spec == nullptr)
      if (const ruling kept = sharding::keep_cut(whole, d, mesh); !kept.ok()) return kept;
    result.dims[d] = {part.dims[d].extent, 0};
  }
  return {result};
}

/// Operands: the array, then a start for each dimension.
template <class OutSpec, std::int64_t... Sizes>
inline constexpr auto dynamic_slice_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  if (static_cast<int>(sizeof...(Sizes)) != x[0].rank || x.size() != sizeof...(Sizes) + 1)
    return refuse(message::dynamic_starts);
  if (const message why = start_fault(x.subspan(1)); why != message::none) return refuse(why);
  const chosen_spec<OutSpec> chosen(mesh);
  const ruling part = dynamic_part(x[0], plain_aval<dtype::f32, shape<Sizes...>>(), chosen.get(), mesh);
  return part.ok() && chosen.get() != nullptr ? with_cuts(part.result, *chosen.get(), mesh) : part;
}};

/// `whole` cut as `as`, but uncut where `part` is less of it.
constexpr aval uncut_where_less(aval whole, const aval& part, const aval& as) {
  for (int d = 0; d < whole.rank; ++d)
    whole.dims[d].axes = part.dims[d].extent == whole.dims[d].extent ? as.dims[d].axes : 0;
  return whole;
}

template <std::size_t N>
constexpr graph::value write_dynamic_slice(const std::array<graph::value, N>& x, const aval& type) {
  graph::value part = graph::reshard(x[0], uncut_where_less(x[0].type(), type, type));
  for (int d = 0; d < type.rank; ++d)
    part = graph::dynamic_slice(part, x[static_cast<std::size_t>(d) + 1], d, type.dims[d].extent);
  return graph::reshard(part, type);
}

/// Operands: the array, the update, then a start for each dimension.
template <class OutSpec>
inline constexpr auto dynamic_update_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  if (static_cast<int>(x.size()) != x[0].rank + 2) return refuse(message::dynamic_starts);
  if (const message why = start_fault(x.subspan(2)); why != message::none) return refuse(why);
  if (x[1].type != x[0].type) return refuse(message::dynamic_update_dtype);
  if (x[1].rank != x[0].rank) return refuse(message::dynamic_update_shape);
  for (int d = 0; d < x[0].rank; ++d)
    if (x[1].dims[d].extent > x[0].dims[d].extent) return refuse(message::dynamic_update_shape, d);
  const chosen_spec<OutSpec> chosen(mesh);
  if (!(with_marks(x[0], x[1]) == x[0])) return refuse(message::dynamic_update_sharding);
  if (chosen.get() != nullptr) return with_cuts(x[0], *chosen.get(), mesh);
  if (!x[0].same_spec(x[1])) return refuse(message::dynamic_update_sharding);
  const ruling part = dynamic_part(x[0], x[1], nullptr, mesh);
  return part.ok() ? ruling{x[0]} : part;
}};

/// Along several dimensions: the part of `base` along the first of them, updated along the others, goes back to it.
constexpr graph::value update_along(graph::value base, graph::value piece, std::span<const graph::value> starts,
                                    int d) {
  if (d == base.type().rank) return piece;
  const std::int64_t extent = piece.type().dims[d].extent;
  if (extent == base.type().dims[d].extent) return update_along(base, piece, starts, d + 1);
  const graph::value start = starts[static_cast<std::size_t>(d)];
  bool last = true;
  for (int e = d + 1; e < base.type().rank; ++e)
    last = last && piece.type().dims[e].extent == base.type().dims[e].extent;
  if (last) return graph::dynamic_update_slice(base, piece, start, d);
  return graph::dynamic_update_slice(
      base, update_along(graph::dynamic_slice(base, start, d, extent), piece, starts, d + 1), start, d);
}

template <std::size_t N>
constexpr graph::value write_dynamic_update(const std::array<graph::value, N>& x, const aval& type) {
  const aval base = uncut_where_less(type, x[1].type(), type);
  const graph::value piece = graph::reshard(x[1], uncut_where_less(x[1].type(), type, type));
  return graph::reshard(update_along(graph::reshard(x[0], base), piece, std::span(x).subspan(2), 0), type);
}

/// `x` with `Size` elements along one dimension, or without it.
template <int Axis, std::int64_t Size>
constexpr aval part_in_dim(aval x) {
  x.dims[sharding::place_of(Axis, x.rank)].extent = Size;
  return x;
}
constexpr aval dropped_dim(const aval& x, int d) {
  aval less = with_marks(scalar_aval(x.type), x);
  for (int i = 0; i < x.rank; ++i)
    if (i != d) less.dims[less.rank++] = x.dims[i];
  return less;
}

/// Operands: the array, one start. With `Drop` the dimension, of which one element is taken, vanishes.
template <int Axis, std::int64_t Size, bool Drop, class OutSpec>
inline constexpr auto in_dim_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  const int d = sharding::place_of(Axis, x[0].rank);
  if (d < 0) return refuse(message::shape_no_dimension);
  if (const message why = start_fault(x.subspan(1)); why != message::none) return refuse(why);
  const chosen_spec<OutSpec> chosen(mesh);
  const ruling part = dynamic_part(x[0], part_in_dim<Axis, Size>(x[0]), chosen.get(), mesh);
  if (!part.ok()) return part;
  aval result = Drop ? dropped_dim(part.result, d) : part.result;
  if (Drop && chosen.get() == nullptr && x[0].dims[d].axes != 0) return sharding::keep_cut(x[0], d, mesh);
  return chosen.get() != nullptr ? with_cuts(result, *chosen.get(), mesh) : ruling{result};
}};

template <int Axis, std::int64_t Size, bool Drop>
inline constexpr auto write_in_dim = [](const std::array<graph::value, 2>& x, const aval& type) {
  aval from = x[0].type();
  const int d = sharding::place_of(Axis, from.rank);
  for (int i = 0, next = 0; i < from.rank; ++i) {
    from.dims[i].axes = i == d ? 0 : type.dims[next].axes;
    next += !(Drop && i == d);
  }
  const graph::value part = graph::dynamic_slice(graph::reshard(x[0], from), x[1], d, Size);
  return graph::reshard(Drop ? graph::reshape(part, dropped_dim(part.type(), d)) : part, type);
};

/// Operands: the array, the update (with `Drop` without the dimension), one start.
template <int Axis, bool Drop, class OutSpec>
inline constexpr auto update_in_dim_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  const int d = sharding::place_of(Axis, x[0].rank);
  if (d < 0) return refuse(message::shape_no_dimension);
  if (const message why = start_fault(x.subspan(2)); why != message::none) return refuse(why);
  if (x[1].type != x[0].type) return refuse(message::dynamic_update_dtype);
  const aval piece = Drop && x[1].rank < max_rank ? with_one(x[1], d) : x[1];
  if (piece.rank != x[0].rank) return refuse(message::dynamic_update_shape);
  for (int i = 0; i < piece.rank; ++i)
    if (i == d ? piece.dims[i].extent > x[0].dims[i].extent : piece.dims[i].extent != x[0].dims[i].extent)
      return refuse(message::dynamic_update_shape, i);
  const chosen_spec<OutSpec> chosen(mesh);
  if (!(with_marks(x[0], x[1]) == x[0])) return refuse(message::dynamic_update_sharding);
  if (chosen.get() != nullptr) return with_cuts(x[0], *chosen.get(), mesh);
  for (int i = 0; i < piece.rank; ++i)
    if (!(Drop && i == d) && piece.dims[i].axes != x[0].dims[i].axes)
      return refuse(message::dynamic_update_sharding, i);
  if (piece.dims[d].extent != x[0].dims[d].extent || Drop)
    if (const ruling kept = sharding::keep_cut(x[0], d, mesh); !kept.ok()) return kept;
  return ruling{x[0]};
}};

template <int Axis, bool Drop>
inline constexpr auto write_update_in_dim = [](const std::array<graph::value, 3>& x, const aval& type) {
  const int d = sharding::place_of(Axis, type.rank);
  aval piece = Drop ? with_one(x[1].type(), d) : x[1].type();
  const aval base = uncut_where_less(type, piece, type);
  for (int i = 0; i < type.rank; ++i) piece.dims[i].axes = base.dims[i].axes;
  const graph::value new_piece =
      Drop ? graph::reshape(graph::reshard(x[1], dropped_dim(piece, d)), piece) : graph::reshard(x[1], piece);
  return graph::reshard(graph::dynamic_update_slice(graph::reshard(x[0], base), new_piece, x[2], d), type);
};

/// Starts among arguments that may end with options, as traced scalars.
template <text Name, auto Rule, class Write, class X, class... Arguments>
constexpr auto apply_with_starts(Write write, const X& x, const Arguments&... arguments) {
  if constexpr (Poison<X>) {
    return poison{};
  } else {
    return with_operands([&](const auto&... rest) { return apply<Name, Rule>(write, x, start_beside(x, rest)...); },
                         arguments...);
  }
}

inline constexpr auto write_dynamic_slices = [](const auto& x, const aval& type) {
  return write_dynamic_slice(x, type);
};
inline constexpr auto write_dynamic_updates = [](const auto& x, const aval& type) {
  return write_dynamic_update(x, type);
};

}  // namespace ops

/// A start, or last an `out_sharding<...>`.
template <class T>
concept StartOrSharding = Start<T> || OutSharding<T>;

/// `dynamic_slice<1, 8>(x, i, j)`: so many elements along each dimension, from run-time starts on: int32 or uint32
/// scalars, or numbers. A negative start counts from the end; one that leaves too few elements is moved back until the
/// part is inside, as JAX does. Cuts: as slice, dimensions of which not all is taken are uncut unless
/// `out_sharding<...>` is given; unreduced and reduced axes stay. Gradient: zeros with the cotangent in the part's
/// place. Saved: the starts. One copy of the part. Source: jax.lax.dynamic_slice.
template <std::int64_t... Sizes>
constexpr auto dynamic_slice(const ArrayLike auto& x, const StartOrSharding auto&... starts) {
  using spec = typename ops::spec_among<std::remove_cvref_t<decltype(starts)>...>::type;
  return ops::apply_with_starts<"dynamic_slice", ops::dynamic_slice_rule<spec, Sizes...>>(ops::write_dynamic_slices, x,
                                                                                          starts...);
}

/// `dynamic_slice_in_dim<8, 1>(x, start)`: eight elements along one dimension, the first unless told.
template <std::int64_t Size, int Axis = 0>
constexpr auto dynamic_slice_in_dim(const ArrayLike auto& x, const Start auto& start, OutSharding auto... options) {
  using spec = typename ops::spec_among<decltype(options)...>::type;
  return ops::apply_with_starts<"dynamic_slice_in_dim", ops::in_dim_rule<Axis, Size, false, spec>>(
      ops::write_in_dim<Axis, Size, false>, x, start, options...);
}

/// `dynamic_index_in_dim<0>(x, i)`: element i along one dimension, which vanishes.
template <int Axis = 0>
constexpr auto dynamic_index_in_dim(const ArrayLike auto& x, const Start auto& index, OutSharding auto... options) {
  using spec = typename ops::spec_among<decltype(options)...>::type;
  return ops::apply_with_starts<"dynamic_index_in_dim", ops::in_dim_rule<Axis, 1, true, spec>>(
      ops::write_in_dim<Axis, 1, true>, x, index, options...);
}

/// `dynamic_update_slice(x, update, i, j)`: x with the elements of `update` from run-time starts on, clamped as those
/// of dynamic_slice. Both of one dtype and rank and cut alike, uncut where the update is smaller; with
/// `out_sharding<...>` last they may be cut in any way. x's memory is reused where nobody else reads it. Gradient: the
/// cotangent with zeros in the part's place to x, the part to the update. Source: jax.lax.dynamic_update_slice.
template <ArrayLike X, ArrayLike Update>
constexpr auto dynamic_update_slice(const X& x, const Update& update, const StartOrSharding auto&... starts) {
  using spec = typename ops::spec_among<std::remove_cvref_t<decltype(starts)>...>::type;
  return ops::apply_with_starts<"dynamic_update_slice", ops::dynamic_update_rule<spec>>(ops::write_dynamic_updates, x,
                                                                                        update, starts...);
}

/// `dynamic_update_slice_in_dim<1>(x, update, start)`: along one dimension, the first unless told.
template <int Axis = 0>
constexpr auto dynamic_update_slice_in_dim(const ArrayLike auto& x, const ArrayLike auto& update,
                                           const Start auto& start, OutSharding auto... options) {
  using spec = typename ops::spec_among<decltype(options)...>::type;
  return ops::apply_with_starts<"dynamic_update_slice_in_dim", ops::update_in_dim_rule<Axis, false, spec>>(
      ops::write_update_in_dim<Axis, false>, x, update, start, options...);
}

/// `dynamic_update_index_in_dim<0>(x, row, i)`: element i along one dimension, which the update does not have.
template <int Axis = 0>
constexpr auto dynamic_update_index_in_dim(const ArrayLike auto& x, const ArrayLike auto& update,
                                           const Start auto& index, OutSharding auto... options) {
  using spec = typename ops::spec_among<decltype(options)...>::type;
  return ops::apply_with_starts<"dynamic_update_index_in_dim", ops::update_in_dim_rule<Axis, true, spec>>(
      ops::write_update_in_dim<Axis, true>, x, update, index, options...);
}

}  // namespace tessera
