// SPDX-License-Identifier: Apache-2.0
// Contractions by lists of dimensions.
#pragma once

#include <tessera/ops/convert.hpp>
#include <tessera/ops/options.hpp>

namespace tessera {

/// A list of dimensions, counted from 0, or from -1 backwards.
template <int... D>
struct dims {};

namespace ops {

/// The list with dimensions counted from 0; one that is not there becomes none.
template <int... D>
constexpr sharding::dim_list list_of(dims<D...>, int rank) {
  sharding::dim_list list = 0;
  ((list = D < rank && D >= -rank ? sharding::dim_append(list, D < 0 ? D + rank : D) : list), ...);
  return list;
}
template <int... D>
constexpr int length_of(dims<D...>) {
  return sizeof...(D);
}

/// Lists as given: contracting ones of a and b, batch ones of a and b.
template <class A, class B, class ABatch, class BBatch>
struct listed_contraction {
  static constexpr sharding::dot_dims dims(int lhs_rank, int rhs_rank) {
    return {list_of(A{}, lhs_rank), list_of(B{}, rhs_rank), list_of(ABatch{}, lhs_rank), list_of(BBatch{}, rhs_rank)};
  }
  static constexpr bool fits(int lhs_rank, int rhs_rank) {
    const sharding::dot_dims d = dims(lhs_rank, rhs_rank);
    if (length_of(A{}) != length_of(B{}) || length_of(ABatch{}) != length_of(BBatch{})) return false;
    return named_once(d.lhs_contracting, d.lhs_batch, length_of(A{}) + length_of(ABatch{})) &&
           named_once(d.rhs_contracting, d.rhs_batch, length_of(B{}) + length_of(BBatch{}));
  }
  static constexpr bool named_once(sharding::dim_list contracting, sharding::dim_list batch, int named) {
    if (sharding::dim_count(contracting) + sharding::dim_count(batch) != named) return false;
    std::uint32_t seen = 0;
    for (sharding::dim_list list : {contracting, batch})
      for (int i = 0; i < sharding::dim_count(list); ++i) {
        const std::uint32_t bit = 1U << sharding::dim_at(list, i);
        if (seen & bit) return false;
        seen |= bit;
      }
    return true;
  }
};

/// The last N dimensions of a with the first N of b.
template <int N>
struct neighbours_contraction {
  static constexpr sharding::dot_dims dims(int lhs_rank, int) {
    return {graph::dims_in_order(N, lhs_rank - N), graph::dims_in_order(N), 0, 0};
  }
  static constexpr bool fits(int lhs_rank, int rhs_rank) { return N >= 0 && N <= lhs_rank && N <= rhs_rank; }
};

/// The last dimension of a with the last but one of b, or its only one.
struct product_contraction {
  static constexpr sharding::dot_dims dims(int lhs_rank, int rhs_rank) {
    return {sharding::dim_append(0, lhs_rank - 1), sharding::dim_append(0, rhs_rank == 1 ? 0 : rhs_rank - 2), 0, 0};
  }
  static constexpr bool fits(int lhs_rank, int rhs_rank) { return lhs_rank > 0 && rhs_rank > 0; }
};

template <class Contraction, class OutSpec>
inline constexpr auto contraction_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  if (!Contraction::fits(x[0].rank, x[1].rank)) return refuse(message::dot_general_dims);
  const sharding::dot_dims d = Contraction::dims(x[0].rank, x[1].rank);
  if (sharding::dot_result_rank(x[0], x[1], d) > max_rank) return refuse(message::shape_rank);
  return sharding::dot_general(x[0], x[1], d, chosen_spec<OutSpec>(mesh).get(), mesh);
}};

template <class Contraction>
inline constexpr auto write_contraction = [](const std::array<graph::value, 2>& x, const aval& type) {
  return graph::dot(x[0], x[1], Contraction::dims(x[0].type().rank, x[1].type().rank), type);
};

template <text Name, class Contraction, class OutSpec, class A, class B>
constexpr auto contract(const A& a, const B& b, const call_site& where) {
  return apply<Name, contraction_rule<Contraction, OutSpec>>(written_at{where, write_contraction<Contraction>}, a, b);
}

}  // namespace ops

/// `dot_general<dims<2>, dims<1>, dims<0>, dims<0>>(a, b)`: sums products over the dimensions of the first two lists
/// (of a, of b) and pairs those of the last two, the batch dimensions. Result: batch, then what is left of a, then of
/// b, each as it was cut. Rules, gradient and collectives as for matmul; `out_sharding<P<...>>` chooses the cut of the
/// result.
/// Source: jax.lax.dot_general.
template <class AContracting, class BContracting, class ABatch = dims<>, class BBatch = dims<>>
constexpr auto dot_general(const ArrayLike auto& a, const ArrayLike auto& b, call_site where = call_site::current()) {
  return ops::contract<"dot_general", ops::listed_contraction<AContracting, BContracting, ABatch, BBatch>, void>(a, b,
                                                                                                                 where);
}
template <class AContracting, class BContracting, class ABatch = dims<>, class BBatch = dims<>, class Spec>
constexpr auto dot_general(const ArrayLike auto& a, const ArrayLike auto& b, out_sharding_t<Spec>,
                           call_site where = call_site::current()) {
  return ops::contract<"dot_general", ops::listed_contraction<AContracting, BContracting, ABatch, BBatch>, Spec>(a, b,
                                                                                                                 where);
}
template <class AContracting, class BContracting, class ABatch = dims<>, class BBatch = dims<>, dtype D,
          OutSharding... Options>
constexpr auto dot_general(const ArrayLike auto& a, const ArrayLike auto& b, preferred_element_type_t<D>,
                           Options... options) {
  const auto contracted = [&](const auto& x, const auto& y) {
    return dot_general<AContracting, BContracting, ABatch, BBatch>(x, y, options...);
  };
  return ops::preferring<D>(contracted, a, b);
}

/// Vectors and matrices as `matmul`; of more dimensions, which are not batched: the sum over the last one of a and the
/// last but one of b. Otherwise as dot_general. Source: jax.numpy.dot.
constexpr auto dot(const ArrayLike auto& a, const ArrayLike auto& b, call_site where = call_site::current()) {
  return ops::contract<"dot", ops::product_contraction, void>(a, b, where);
}
template <class Spec>
constexpr auto dot(const ArrayLike auto& a, const ArrayLike auto& b, out_sharding_t<Spec>,
                   call_site where = call_site::current()) {
  return ops::contract<"dot", ops::product_contraction, Spec>(a, b, where);
}
template <dtype D, OutSharding... Options>
constexpr auto dot(const ArrayLike auto& a, const ArrayLike auto& b, preferred_element_type_t<D>, Options... options) {
  return ops::preferring<D>([&](const auto& x, const auto& y) { return dot(x, y, options...); }, a, b);
}

/// `tensordot<N>(a, b)` sums over the last N dimensions of a with the first N of b; N = 0 is the product of each
/// element with each. Otherwise as dot_general. Source: jax.numpy.tensordot.
template <int N = 2>
constexpr auto tensordot(const ArrayLike auto& a, const ArrayLike auto& b, call_site where = call_site::current()) {
  return ops::contract<"tensordot", ops::neighbours_contraction<N>, void>(a, b, where);
}
template <int N = 2, class Spec>
constexpr auto tensordot(const ArrayLike auto& a, const ArrayLike auto& b, out_sharding_t<Spec>,
                         call_site where = call_site::current()) {
  return ops::contract<"tensordot", ops::neighbours_contraction<N>, Spec>(a, b, where);
}

/// `outer(a, b)[..., ...] = a[...] b[...]`: every element of a with every one of b; cut as both are, or as
/// `out_sharding<P<...>>` says. Source: jax.numpy.outer, but for arrays of higher rank, which keep their dimensions.
constexpr auto outer(const ArrayLike auto& a, const ArrayLike auto& b, call_site where = call_site::current()) {
  return ops::contract<"outer", ops::neighbours_contraction<0>, void>(a, b, where);
}
template <class Spec>
constexpr auto outer(const ArrayLike auto& a, const ArrayLike auto& b, out_sharding_t<Spec>,
                     call_site where = call_site::current()) {
  return ops::contract<"outer", ops::neighbours_contraction<0>, Spec>(a, b, where);
}

/// Sums over the last dimension of both: `inner(a, b)[i, j] = sum over k of a[i, k] b[j, k]`. Source: jax.numpy.inner.
constexpr auto inner(const ArrayLike auto& a, const ArrayLike auto& b, call_site where = call_site::current()) {
  return ops::contract<"inner", ops::listed_contraction<dims<-1>, dims<-1>, dims<>, dims<>>, void>(a, b, where);
}
template <class Spec>
constexpr auto inner(const ArrayLike auto& a, const ArrayLike auto& b, out_sharding_t<Spec>,
                     call_site where = call_site::current()) {
  return ops::contract<"inner", ops::listed_contraction<dims<-1>, dims<-1>, dims<>, dims<>>, Spec>(a, b, where);
}

}  // namespace tessera
