// SPDX-License-Identifier: Apache-2.0
// Contractions by subscripts.
#pragma once

#include <tessera/ops/convert.hpp>
#include <tessera/ops/reduction.hpp>
#include <tessera/sharding/einsum.hpp>

#include <tuple>

namespace tessera {

namespace ops {

template <text Subscripts, class OutSpec>
constexpr sharding::einsum_plan plan_of_einsum(std::span<const aval> x, const mesh_value& mesh) {
  const sharding::einsum_subscripts written = sharding::write_out_ellipses(Subscripts.view(), x);
  sharding::einsum_text parsed = sharding::parse_einsum(written.view());
  if (written.failure != message::none) parsed.failure = written.failure;
  return sharding::einsum(x, parsed, chosen_spec<OutSpec>(mesh).get(), mesh);
}

template <text Subscripts, class OutSpec>
inline constexpr auto einsum_rule = handles_marks{
    [](std::span<const aval> x, const mesh_value& mesh) { return plan_of_einsum<Subscripts, OutSpec>(x, mesh).ruled; }};

constexpr graph::value summed(graph::value x, sharding::dim_set dims, const aval& type) {
  const spec_value spec = graph::spec_of(type);
  return dims == 0 ? graph::reshard(x, type) : graph::reduce(op::reduce_sum, x, dims, false, &spec);
}

template <std::size_t N>
constexpr graph::value write_einsum(const std::array<graph::value, N>& x, const sharding::einsum_plan& plan) {
  if constexpr (N == 1) {
    return graph::transpose(summed(x[0], plan.step[0].sum_lhs, plan.step[0].type), plan.permutation);
  } else {
    graph::value so_far = x[0];
    for (std::size_t k = 1; k < N; ++k) {
      const sharding::einsum_step& s = plan.step[k - 1];
      so_far = graph::dot(summed(so_far, s.sum_lhs, s.lhs), summed(x[k], s.sum_rhs, s.rhs), s.dims, s.type);
    }
    return graph::transpose(so_far, plan.permutation);
  }
}

/// `einsum<"ab,bc->ac">`, as messages name the operation.
template <text Subscripts>
constexpr auto einsum_name() {
  constexpr std::string_view parts[] = {"einsum<\"", Subscripts.view(), "\">"};
  text<parts[0].size() + parts[1].size() + parts[2].size() + 1> name;
  std::size_t at = 0;
  for (std::string_view part : parts)
    for (char c : part) name.chars[at++] = c;
  return name;
}

template <text Subscripts, class OutSpec, ArrayLike... Xs>
constexpr auto einsum(const Xs&... xs) {
  return apply<einsum_name<Subscripts>(), einsum_rule<Subscripts, OutSpec>>(
      [](const std::array<graph::value, sizeof...(Xs)>& v, const aval&) {
        std::array<aval, sizeof...(Xs)> types;
        for (std::size_t i = 0; i < sizeof...(Xs); ++i) types[i] = v[i].type();
        return write_einsum(v, plan_of_einsum<Subscripts, OutSpec>(types, v[0].mesh()));
      },
      xs...);
}

template <class... Args>
inline constexpr std::size_t count_of_arrays = (std::size_t{0} + ... + (ArrayLike<Args> ? 1 : 0));

template <class T>
inline constexpr bool is_preferred = false;
template <dtype D>
inline constexpr bool is_preferred<preferred_element_type_t<D>> = true;

/// Arrays, then perhaps preferred_element_type<...>, then perhaps out_sharding<P<...>>.
template <class... Args>
constexpr bool arrays_then_options() {
  constexpr std::size_t n = sizeof...(Args);
  constexpr bool array[] = {ArrayLike<Args>..., false};
  constexpr bool preferred[] = {is_preferred<Args>..., false};
  constexpr bool spec[] = {is_out_sharding<Args>..., false};
  std::size_t i = 0;
  while (i < n && array[i]) ++i;
  if (i == 0) return false;
  if (i < n && preferred[i]) ++i;
  if (i < n && spec[i]) ++i;
  return i == n;
}

/// f(xs...), in elements of the type that is preferred if one is.
template <class... Args>
struct preference {
  static constexpr auto apply(auto f, const auto&... xs) { return f(xs...); }
};
template <dtype D, class... Rest>
struct preference<preferred_element_type_t<D>, Rest...> {
  static constexpr auto apply(auto f, const auto&... xs) { return preferring<D>(f, xs...); }
};
template <class First, class... Rest>
requires(!is_preferred<First>) struct preference<First, Rest...> : preference<Rest...> {
};

}  // namespace ops

/// `einsum<"bthd,bshd->bhts">(q, k)`: the sum, over letters that the result does not have, of products of elements; a
/// letter a dimension, `...` the dimensions that an operand has further, counted from their last one; what they have in
/// common has one extent. Without `->` the result has the dimensions of `...` and has the letters that stand once, in
/// alphabetical order. Up to 8 operands of one dtype, contracted from left to right; a letter of one operand alone is
/// summed over first. Each product is ruled and costs as matmul does: batch dimensions are cut alike, contracted ones
/// are uncut, or `out_sharding<P<...>>` (last argument) chooses how the result is cut, in the order of its letters.
/// `preferred_element_type<f32>` behind the arrays keeps the sums of 16-bit operands as they are added up. Gradient:
/// contractions of the same kind. Saved for it: the operands. Source: jax.numpy.einsum, without repeated letters in one
/// operand; `...` does not stretch dimensions of extent 1.
template <text Subscripts, class... Args>
requires(ops::arrays_then_options<Args...>()) constexpr auto einsum(const Args&... args) {
  const std::tuple<const Args&...> all(args...);
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return ops::preference<Args...>::apply(
        [](const auto&... xs) { return ops::einsum<Subscripts, typename ops::spec_among<Args...>::type>(xs...); },
        std::get<I>(all)...);
  }
  (std::make_index_sequence<ops::count_of_arrays<Args...>>{});
}

}  // namespace tessera
