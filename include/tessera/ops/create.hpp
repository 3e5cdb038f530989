// SPDX-License-Identifier: Apache-2.0
// Arrays that are made of nothing: zeros, ones, full, iota, arange, eye; and triangles of matrices.
#pragma once

#include <tessera/ops/options.hpp>
#include <tessera/sharding/slice.hpp>

namespace tessera {

namespace ops {

/// `plain` cut as asked, uncut if nothing is.
template <class OutSpec>
constexpr ruling creation(const aval& plain, int rank, const mesh_value& mesh) {
  if (rank > max_rank) return refuse(message::shape_rank);
  if (const ruling checked = sharding::check_extents(plain); !checked.ok()) return checked;
  const chosen_spec<OutSpec> chosen(mesh);
  return chosen.get() != nullptr ? with_spec(plain, *chosen.get(), mesh) : ruling{plain};
}

template <class Shape, dtype D, class OutSpec>
inline constexpr auto creation_rule = [](std::span<const aval>, const mesh_value& mesh) {
  return creation<OutSpec>(plain_aval<D, Shape>(), Shape::rank, mesh);
};

/// Position numbers along dimension `d` of `type`.
constexpr graph::value positions(graph::graph* owner, const aval& type, int d) {
  const graph::value made = graph::write(owner, op::iota, without_marks(type), {});
  owner->at(made.id).attribute[0] = static_cast<std::uint64_t>(d);
  return graph::reshard(made, type);
}

template <class Shape, int Dimension, dtype D, class OutSpec>
inline constexpr auto iota_rule = [](std::span<const aval>, const mesh_value& mesh) {
  if (sharding::place_of(Dimension, Shape::rank) < 0) return refuse(message::shape_no_dimension);
  if (D == dtype::bool_) return refuse(message::elementwise_needs_number);
  return creation<OutSpec>(plain_aval<D, Shape>(), Shape::rank, mesh);
};

template <std::int64_t Start, std::int64_t Stop, std::int64_t Step>
constexpr aval arange_type() {
  aval type = scalar_aval(dtype::i32);
  const std::int64_t span = Step > 0 ? Stop - Start : Start - Stop;
  const std::int64_t width = Step > 0 ? Step : -Step;
  type.dims[type.rank++].extent = Step == 0 || span <= 0 ? 0 : (span + width - 1) / width;
  return type;
}
template <std::int64_t Start, std::int64_t Stop, std::int64_t Step, class OutSpec>
inline constexpr auto arange_rule = [](std::span<const aval>, const mesh_value& mesh) {
  if (Step == 0) return refuse(message::slice_stride);
  return creation<OutSpec>(arange_type<Start, Stop, Step>(), 1, mesh);
};

/// For a matrix of `type` (its last two dimensions): column number minus row number, as int32, cut like it.
constexpr graph::value diagonals(graph::graph* owner, const aval& type) {
  aval row = scalar_aval(dtype::i32);
  row.rank = type.rank;
  for (int d = 0; d < type.rank; ++d) row.dims[d] = {1, 0};
  aval column = row;
  row.dims[type.rank - 2] = type.dims[type.rank - 2];
  column.dims[type.rank - 1] = type.dims[type.rank - 1];
  return positions(owner, column, type.rank - 1) - positions(owner, row, type.rank - 2);
}

inline constexpr auto triangle_rule = handles_marks{[](std::span<const aval> x, const mesh_value&) {
  if (x[0].pending != combine::sum) return refuse(message::unreduced_operand);
  if (x[0].rank < 2) return refuse(message::triangle_rank);
  return ruling{x[0]};
}};

template <op Keep, int K>
inline constexpr auto write_triangle = [](const std::array<graph::value, 1>& x, const aval& type) {
  const graph::value diagonal = diagonals(x[0].owner, type);
  const graph::value kept = graph::binary(Keep, diagonal, graph::number_like(diagonal, K));
  return graph::select(kept, x[0], graph::number_like(x[0], 0));
};

/// The write step of an array with `number` everywhere, converted to its dtype.
template <class Number>
constexpr auto write_full(Number number) {
  return [number]<std::size_t N>(const std::array<graph::value, N>& x, const aval& type) {
    return graph::full(x[0].owner, type, static_cast<double>(number));
  };
}

inline constexpr auto same_type_rule =
    handles_marks{[](std::span<const aval> x, const mesh_value&) { return ruling{x[0]}; }};

}  // namespace ops

/// `zeros<shape<4, 8>>(x)`, `ones<shape<4, 8>, i32>(x, out_sharding<P<"data">>)`, `full<shape<>>(x, 0.5)`: an array
/// with one number everywhere, uncut unless `out_sharding<...>` is given. x is any array of the step: it says which
/// trace and mesh the new one belongs to (a constant expression has no current trace), its elements are not looked at.
/// No memory is filled where elementwise operations read it. `out_sharding<P<unreduced<"x">>>` makes a pending sum: the
/// first device along x holds the number, the others zeros. No gradient. Source: jax.numpy.zeros, ones, full.
template <class Shape, dtype D = dtype::f32>
constexpr auto full(const ArrayLike auto& x, Number auto number, OutSharding auto... options) {
  using spec = typename ops::spec_among<decltype(options)...>::type;
  return ops::apply<"full", ops::of_mesh<ops::creation_rule<Shape, D, spec>>>(ops::write_full(number), x);
}
template <class Shape, dtype D = dtype::f32>
constexpr auto zeros(const ArrayLike auto& x, OutSharding auto... options) {
  using spec = typename ops::spec_among<decltype(options)...>::type;
  return ops::apply<"zeros", ops::of_mesh<ops::creation_rule<Shape, D, spec>>>(ops::write_full(0), x);
}
template <class Shape, dtype D = dtype::f32>
constexpr auto ones(const ArrayLike auto& x, OutSharding auto... options) {
  using spec = typename ops::spec_among<decltype(options)...>::type;
  return ops::apply<"ones", ops::of_mesh<ops::creation_rule<Shape, D, spec>>>(ops::write_full(1), x);
}

/// Arrays of the dtype, extents and cuts of x. Source: jax.numpy.zeros_like, ones_like, full_like.
constexpr auto full_like(const ArrayLike auto& x, Number auto number) {
  return ops::apply<"full_like", ops::same_type_rule>(ops::write_full(number), x);
}
constexpr auto zeros_like(const ArrayLike auto& x) {
  return ops::apply<"zeros_like", ops::same_type_rule>(ops::write_full(0), x);
}
constexpr auto ones_like(const ArrayLike auto& x) {
  return ops::apply<"ones_like", ops::same_type_rule>(ops::write_full(1), x);
}

/// `iota<shape<4, 8>, 1>(x)`: the position along one dimension, in every element; x and cuts as for zeros. Source:
/// jax.lax.broadcasted_iota.
template <class Shape, int Dimension = 0, dtype D = dtype::i32>
constexpr auto iota(const ArrayLike auto& x, OutSharding auto... options) {
  using spec = typename ops::spec_among<decltype(options)...>::type;
  return ops::apply<"iota", ops::of_mesh<ops::iota_rule<Shape, Dimension, D, spec>>>(
      [](const std::array<graph::value, 1>& v, const aval& type) {
        return ops::positions(v[0].owner, type, sharding::place_of(Dimension, type.rank));
      },
      x);
}

/// `arange<2, 10, 3>(x)`: int32 numbers start, start + step, ... before stop; x and cuts as for zeros. Source:
/// jax.numpy.arange.
template <std::int64_t Start, std::int64_t Stop, std::int64_t Step = 1>
constexpr auto arange(const ArrayLike auto& x, OutSharding auto... options) {
  using spec = typename ops::spec_among<decltype(options)...>::type;
  return ops::apply<"arange", ops::of_mesh<ops::arange_rule<Start, Stop, Step, spec>>>(
      [](const std::array<graph::value, 1>& v, const aval& type) {
        const graph::value count = ops::positions(v[0].owner, without_marks(type), 0);
        const graph::value scaled = Step == 1 ? count : count * static_cast<double>(Step);
        return graph::reshard(Start == 0 ? scaled : scaled + static_cast<double>(Start), type);
      },
      x);
}
template <std::int64_t Stop>
constexpr auto arange(const ArrayLike auto& x, OutSharding auto... options) {
  return tessera::arange<0, Stop, 1>(x, options...);
}

/// `eye<4>(x)`, `eye<4, 6, 1>(x)`: ones on diagonal K, zeros elsewhere; x and cuts as for zeros. Source: jax.numpy.eye.
template <std::int64_t Rows, std::int64_t Columns = Rows, int K = 0, dtype D = dtype::f32>
constexpr auto eye(const ArrayLike auto& x, OutSharding auto... options) {
  using spec = typename ops::spec_among<decltype(options)...>::type;
  return ops::apply<"eye", ops::of_mesh<ops::creation_rule<shape<Rows, Columns>, D, spec>>>(
      [](const std::array<graph::value, 1>& v, const aval& type) {
        const graph::value diagonal = ops::diagonals(v[0].owner, type);
        const graph::value ones = graph::binary(graph::op::eq, diagonal, graph::number_like(diagonal, K));
        return graph::reshard(graph::convert(ones, D), type);
      },
      x);
}

/// x with zeros above (`tril`) or below (`triu`) diagonal K of its last two dimensions; the type is x's. Gradient: the
/// same triangle of the cotangent. Source: jax.numpy.tril, triu.
template <int K = 0>
constexpr auto tril(const ArrayLike auto& x) {
  return ops::apply<"tril", ops::triangle_rule>(ops::write_triangle<graph::op::le, K>, x);
}
template <int K = 0>
constexpr auto triu(const ArrayLike auto& x) {
  return ops::apply<"triu", ops::triangle_rule>(ops::write_triangle<graph::op::ge, K>, x);
}

}  // namespace tessera
