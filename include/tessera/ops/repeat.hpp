// SPDX-License-Identifier: Apache-2.0
// Elements that come several times or come round again: repeat, tile, roll.
#pragma once

#include <tessera/graph/gather.hpp>
#include <tessera/graph/position.hpp>
#include <tessera/ops/slice.hpp>

namespace tessera {

namespace ops {

/// `x` with its elements, or with all of it, `count` times along dimension `d`, where it is uncut or the elements of a
/// block stay together.
constexpr graph::value write_copies(graph::value x, int d, std::int64_t count, bool each) {
  if (count == 1) return x;
  const aval from = x.type();
  aval wide = from;
  const int added = each ? d + 1 : d;
  for (int i = wide.rank++; i > added; --i) wide.dims[i] = wide.dims[i - 1];
  wide.dims[added] = {count, 0};
  sharding::dim_list places = 0;
  for (int i = 0; i < from.rank; ++i) places = sharding::dim_append(places, i < added ? i : i + 1);
  aval type = from;
  type.dims[d].extent *= count;
  return graph::reshape(graph::broadcast(x, wide, places), type);
}

template <std::int64_t Count, int Axis, class OutSpec>
inline constexpr auto repeat_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  aval result = x[0];
  const int d = sharding::place_of(Axis, result.rank);
  if (d < 0) return refuse(message::shape_no_dimension);
  if (Count < 0) return refuse(message::shape_extent, d);
  if (Count != 1 && result.rank == max_rank) return refuse(message::shape_rank);
  const chosen_spec<OutSpec> chosen(mesh);
  if (Count != 1 && chosen.get() == nullptr)
    if (const ruling kept = sharding::keep_cut(result, d, mesh); !kept.ok()) return kept;
  result.dims[d].extent *= Count;
  return chosen.get() != nullptr ? with_cuts(result, *chosen.get(), mesh) : ruling{result};
}};

/// A dimension that is cut before and after as asked is repeated block by block.
template <std::int64_t Count, int Axis>
inline constexpr auto write_repeat = [](const std::array<graph::value, 1>& x, const aval& type) {
  const int d = sharding::place_of(Axis, type.rank);
  aval from = x[0].type();
  for (int i = 0; i < from.rank; ++i) from.dims[i].axes = type.dims[i].axes;
  if (from.dims[d].extent % devices_along(from.dims[d].axes, x[0].mesh()) != 0) from.dims[d].axes = 0;
  return graph::reshard(write_copies(graph::reshard(x[0], from), d, Count, true), type);
};

/// `x` as tile sees it, with leading dimensions of extent 1 if there are more repetitions than dimensions.
template <std::int64_t... Repetitions>
constexpr aval tiled(const aval& x) {
  constexpr int count = sizeof...(Repetitions);
  return count > x.rank ? sharding::pad_rank(x, count) : x;
}
/// How often dimension `d` of an array of that rank is repeated.
template <std::int64_t... Repetitions>
constexpr std::int64_t repetitions_of(int d, int rank) {
  constexpr std::int64_t all[] = {1, Repetitions...};
  const int at = d - rank + static_cast<int>(sizeof...(Repetitions));
  return all[at < 0 ? 0 : at + 1];
}

template <class OutSpec, std::int64_t... Repetitions>
inline constexpr auto tile_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  if (sizeof...(Repetitions) > max_rank) return refuse(message::shape_rank);
  aval result = tiled<Repetitions...>(x[0]);
  const chosen_spec<OutSpec> chosen(mesh);
  for (int d = 0; d < result.rank; ++d) {
    const std::int64_t count = repetitions_of<Repetitions...>(d, result.rank);
    if (count < 0) return refuse(message::shape_extent, d);
    if (count == 1) continue;
    if (result.rank == max_rank) return refuse(message::shape_rank);
    if (chosen.get() == nullptr)
      if (const ruling kept = sharding::keep_cut(result, d, mesh); !kept.ok()) return kept;
    result.dims[d] = {result.dims[d].extent * count, 0};
  }
  return chosen.get() != nullptr ? with_cuts(result, *chosen.get(), mesh) : ruling{result};
}};

template <std::int64_t... Repetitions>
inline constexpr auto write_tile = [](const std::array<graph::value, 1>& x, const aval& type) {
  const int added = type.rank - x[0].type().rank;
  aval from = x[0].type();
  for (int i = 0; i < from.rank; ++i)
    from.dims[i].axes = repetitions_of<Repetitions...>(i + added, type.rank) == 1 ? type.dims[i + added].axes : 0;
  graph::value copies = graph::reshard(x[0], from);
  copies = graph::reshape(copies, tiled<Repetitions...>(from));
  for (int d = 0; d < type.rank; ++d)
    copies = write_copies(copies, d, repetitions_of<Repetitions...>(d, type.rank), false);
  return graph::reshard(copies, type);
};

/// Element i goes to place i + shift; what leaves at the end comes back at the start.
template <std::int64_t Shift>
constexpr std::int64_t rolled_start(std::int64_t extent) {
  return extent == 0 ? 0 : ((-Shift) % extent + extent) % extent;
}

template <std::int64_t Shift, int Axis, class OutSpec>
inline constexpr auto roll_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  const int d = sharding::place_of(Axis, x[0].rank);
  if (d < 0) return refuse(message::shape_no_dimension);
  const chosen_spec<OutSpec> chosen(mesh);
  if (chosen.get() != nullptr) return with_cuts(x[0], *chosen.get(), mesh);
  return rolled_start<Shift>(x[0].dims[d].extent) == 0 ? ruling{x[0]} : sharding::keep_cut(x[0], d, mesh);
}};

template <std::int64_t Shift, int Axis>
inline constexpr auto write_roll = [](const std::array<graph::value, 1>& x, const aval& type) {
  const int d = sharding::place_of(Axis, type.rank);
  const std::int64_t extent = type.dims[d].extent;
  const std::int64_t start = rolled_start<Shift>(extent);
  if (start == 0) return graph::reshard(x[0], type);
  const graph::value gathered = graph::reshard(x[0], uncut(type, d));
  sharding::slices front = sharding::everything(type);
  sharding::slices back = front;
  front.of[d] = {start, extent - start, 1};
  back.of[d] = {0, start, 1};
  const graph::value parts[] = {graph::slice(gathered, front), graph::slice(gathered, back)};
  return graph::reshard(graph::concatenate(parts, d), type);
};

/// Operands: the array, how far it is rolled.
template <int Axis, class OutSpec>
inline constexpr auto roll_by_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  const int d = sharding::place_of(Axis, x[0].rank);
  if (d < 0) return refuse(message::shape_no_dimension);
  if (x[0].pending != combine::sum) return refuse(message::unreduced_operand);
  if (const message why = check_unmarked(x[1]); why != message::none) return refuse(why);
  if (x[1].rank != 0 || x[1].type != dtype::i32) return refuse(message::roll_shift);
  const chosen_spec<OutSpec> chosen(mesh);
  return chosen.get() != nullptr ? with_cuts(x[0], *chosen.get(), mesh) : sharding::keep_cut(x[0], d, mesh);
}};

/// Element i comes from place i - shift, once more round.
template <int Axis>
inline constexpr auto write_roll_by = [](const std::array<graph::value, 2>& x, const aval& type) {
  const int d = sharding::place_of(Axis, type.rank);
  const std::int64_t extent = type.dims[d].extent;
  if (extent == 0) return graph::reshard(x[0], type);
  const graph::value within = graph::binary(op::mod, x[1], graph::number_like(x[1], static_cast<double>(extent)));
  aval line = scalar_aval(dtype::i32);
  line.dims[line.rank++].extent = extent;
  const graph::value places = graph::position(x[0].owner, line, 0, dtype::i32) - within;
  const aval around = uncut(type, d);
  return graph::reshard(
      graph::gather(graph::reshard(x[0], around), places, {d, 0, false, sharding::index_mode::wrap}, around), type);
};

}  // namespace ops

/// `repeat<3, 1>(x)`: each element three times along a dimension (the first unless told). A cut one needs
/// `out_sharding<...>`; cut as before, every device repeats what it has. Gradient: the sum over the copies. Source:
/// jax.numpy.repeat.
template <std::int64_t Count, int Axis = 0>
constexpr auto repeat(const ArrayLike auto& x, OutSharding auto... options) {
  using spec = typename ops::spec_among<decltype(options)...>::type;
  return ops::apply<"repeat", ops::repeat_rule<Count, Axis, spec>>(ops::write_repeat<Count, Axis>, x);
}

/// `tile<2, 1>(x)`: x as a whole, so many times along each of the last dimensions; more numbers than dimensions add
/// leading ones. Repeated dimensions are uncut unless `out_sharding<...>` is given. Gradient: the sum over the copies.
/// Source: jax.numpy.tile.
template <std::int64_t... Repetitions>
constexpr auto tile(const ArrayLike auto& x, OutSharding auto... options) {
  using spec = typename ops::spec_among<decltype(options)...>::type;
  return ops::apply<"tile", ops::tile_rule<spec, Repetitions...>>(ops::write_tile<Repetitions...>, x);
}

/// `roll<1, 0>(x)`: element i goes to place i + 1 along a dimension, the last one to the first place; negative shifts
/// go the other way. The dimension is uncut unless `out_sharding<...>` is given. Gradient: rolled back. Source:
/// jax.numpy.roll.
template <std::int64_t Shift, int Axis>
constexpr auto roll(const ArrayLike auto& x, OutSharding auto... options) {
  using spec = typename ops::spec_among<decltype(options)...>::type;
  return ops::apply<"roll", ops::roll_rule<Shift, Axis, spec>>(ops::write_roll<Shift, Axis>, x);
}

/// `roll<0>(x, shift)`: the same by an int32 scalar that is known at run time. Gradient: each element's goes back to
/// where it came from. Saved: the shift.
template <int Axis>
constexpr auto roll(const ArrayLike auto& x, const ArrayLike auto& shift, OutSharding auto... options) {
  using spec = typename ops::spec_among<decltype(options)...>::type;
  return ops::apply<"roll", ops::roll_by_rule<Axis, spec>>(ops::write_roll_by<Axis>, x, shift);
}

}  // namespace tessera
