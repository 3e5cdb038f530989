// SPDX-License-Identifier: Apache-2.0
// Multi-head attention with masks, grouped queries and rotary positions.
#pragma once

#include <tessera/nn/linear_general.hpp>
#include <tessera/nn/rotary.hpp>
#include <tessera/ops/create.hpp>
#include <tessera/ops/einsum.hpp>
#include <tessera/ops/shape.hpp>
#include <tessera/ops/softmax.hpp>
#include <tessera/ops/where.hpp>

#include <limits>

namespace tessera {

/// Features of queries, keys and values together, as many as come in unless told.
template <std::int64_t Count>
struct qkv_features {
  static constexpr nn::option about = nn::option::qkv_features;
  static constexpr std::int64_t value = Count;
};

/// Heads of keys and values, each for as many heads of queries; as many as those unless told.
template <std::int64_t Count>
struct num_kv_heads {
  static constexpr nn::option about = nn::option::num_kv_heads;
  static constexpr std::int64_t value = Count;
};

/// Queries and keys are turned by their positions: `rotary<10000.0>`.
template <double Base>
struct rotary {
  static constexpr nn::option about = nn::option::rotary;
  static constexpr double value = Base;
};

/// How the kernel of the last projection of an attention is cut.
template <class Spec>
struct out_kernel : std::type_identity<Spec> {
  static constexpr nn::option about = nn::option::out_kernel;
};

namespace nn {

/// An argument of attention: a query sees keys at its own position and before alone.
struct causal_t {};
inline constexpr causal_t causal{};

/// Whether an argument is an array of bool, a mask.
template <class T>
constexpr bool is_mask() {
  if constexpr (Expr<T>) return std::remove_cvref_t<T>::type.type == dtype::bool_;
  else if constexpr (Variable<T>) return std::remove_cvref_t<T>::element == dtype::bool_;
  else return std::same_as<std::remove_cvref_t<T>, causal_t>;
}

constexpr double square_root(double x) {
  double root = x < 1 ? 1 : x;
  for (int i = 0; i < 64; ++i) root = (root + x / root) / 2;
  return root;
}

/// scores with -infinity where a mask is false.
constexpr auto masked(const auto& scores) { return scores; }
template <class Mask, class... Rest>
constexpr auto masked(const auto& scores, const Mask& mask, const Rest&... rest) {
  if constexpr (std::same_as<Mask, causal_t>) {
    constexpr aval type = std::remove_cvref_t<decltype(scores)>::type;
    constexpr std::int64_t queries = type.dims[type.rank - 2].extent, keys = type.dims[type.rank - 1].extent;
    return masked(scores, tril(ones<shape<queries, keys>, dtype::bool_>(scores)), rest...);
  } else {
    return masked(where(mask, scores, -std::numeric_limits<double>::infinity()), rest...);
  }
}

/// softmax(q k^T / sqrt(D)) v head by head: q[B, T, H, D], k and v[B, S, K, D] -> [B, T, H, D], where K divides H and
/// H/K heads of queries share a head of keys. Masks are bool, of a shape that broadcasts to [B, H, T, S], true where a
/// query may see a key; or `causal`. A query that sees nothing gives zeros and no gradient. B and heads may be cut,
/// alike in all. Source: flax.nnx.dot_product_attention.
template <Expr Q, Expr K, Expr V, class... Masks>
constexpr auto dot_product_attention(const Q& q, const K& k, const V& v, const Masks&... masks) {
  constexpr std::int64_t B = Q::type.dims[0].extent, T = Q::type.dims[1].extent, S = K::type.dims[1].extent;
  constexpr std::int64_t H = Q::type.dims[2].extent, groups = K::type.dims[2].extent, D = Q::type.dims[3].extent;
  const auto scaled = q * (1 / square_root(static_cast<double>(D)));
  if constexpr (H == groups) {
    const auto weights = softmax(masked(einsum<"bthd,bshd->bhts">(scaled, k), masks...));
    return einsum<"bhts,bshd->bthd">(weights, v);
  } else {
    const auto scores = einsum<"btkgd,bskd->bkgts">(reshape<B, T, groups, H / groups, D>(scaled), k);
    const auto weights = softmax(masked(reshape<B, H, T, S>(scores), masks...));
    const auto mixed = einsum<"bkgts,bskd->btkgd">(reshape<B, groups, H / groups, T, S>(weights), v);
    return reshape<B, T, H, D>(mixed);
  }
}

/// Attention of Heads heads over the tokens of x: float32[B, T, Features] -> the same type. `attention(x)`,
/// `attention(x, causal)`, `attention(x, mask)`; with a second array, float32[B, S, Features], keys and values come
/// from it. Masks: as of dot_product_attention, as many as are given. Options: `qkv_features<...>` (Features),
/// `num_kv_heads<...>` (Heads), `rotary<10000.0>` (none), `kernel<P<none, "model">>` for queries, keys and values
/// (Features, head, head dimension), `out_kernel<P<"model">>` (head, head dimension, Features), `use_bias<false>`,
/// `kernel_init<...>`, `bias_init<...>`, `param_dtype<f64>`, `compute_dtype<bf16>`, `precision<...>`. Variables: kernel
/// and bias of `query`, `key`, `value`,
/// `out`. Collectives with heads cut: one all-reduce forward, one backward. Saved for the gradient: x, queries, keys,
/// values, the weights and what goes into `out`. Source: Vaswani et al. 2017; Ainslie et al. 2023;
/// flax.nnx.MultiHeadAttention.
template <std::int64_t Heads, std::int64_t Features, class... Options>
struct multi_head_attention {
  using name = layer_name<"multi_head_attention", Heads, Features>;
  using allowed =
      allows<name, option::qkv_features, option::num_kv_heads, option::rotary, option::kernel, option::out_kernel,
             option::use_bias, option::kernel_init, option::bias_init, option::param_dtype>;
  static_assert(allowed::template check<Options...>());
  static constexpr std::int64_t in_features = Features;
  static constexpr std::int64_t out_features = Features;
  static constexpr std::int64_t kv_heads = option_or<option::num_kv_heads, num_kv_heads<Heads>, Options...>::value;
  static constexpr std::int64_t all_heads = option_or<option::qkv_features, qkv_features<Features>, Options...>::value;
  static constexpr double base = option_or<option::rotary, rotary<0.0>, Options...>::value;
  static_assert(Heads > 0 && all_heads % Heads == 0, "nn::multi_head_attention: heads divide the features");
  static_assert(kv_heads > 0 && Heads % kv_heads == 0, "nn::multi_head_attention: num_kv_heads<...> divides the heads");
  static constexpr std::int64_t head_dim = all_heads / Heads;

  template <class In, class Out, class Spec>
  using projected =
      linear_general<In, Out, tessera::kernel<Spec>, option_or<option::use_bias, use_bias<true>, Options...>,
                     option_or<option::kernel_init, kernel_init<initializers::lecun_normal()>, Options...>,
                     option_or<option::bias_init, bias_init<initializers::zeros()>, Options...>,
                     typename numbers<Options...>::as_option>;
  template <std::int64_t Count>
  using heads_of = projected<shape<Features>, shape<Count, head_dim>, spec_or<option::kernel, P<>, Options...>>;

  heads_of<Heads> query;
  heads_of<kv_heads> key;
  heads_of<kv_heads> value;
  projected<shape<Heads, head_dim>, shape<Features>, spec_or<option::out_kernel, P<>, Options...>> out;
  TESSERA_MODULE(multi_head_attention, query, key, value, out)

  template <ArrayLike X, class... Rest>
  constexpr auto operator()(const X& x, const Rest&... rest) const {
    return with_features<multi_head_attention>(x, [&](const auto& in) { return over(in, in, rest...); });
  }

 private:
  /// The arguments behind x: other tokens, if they are no mask, then masks.
  template <class X, class S, class... Rest>
  constexpr auto over(const X& x, const S& source, const Rest&... rest) const {
    return attend(x, source, rest...);
  }
  template <class X, class S, class First, class... Rest>
  requires(!is_mask<First>()) constexpr auto over(const X& x, const S&, const First& source,
                                                  const Rest&... rest) const {
    return with_features<multi_head_attention>(source, [&](const auto& from) { return attend(x, from, rest...); });
  }

  constexpr auto attend(const auto& x, const auto& source, const auto&... masks) const {
    return out(dot_product_attention(turned(query(x)), turned(key(source)), value(source), masks...));
  }

  static constexpr auto turned(const auto& heads) {
    if constexpr (base > 0) return rotary_embedding<base>(heads);
    else return heads;
  }
};

}  // namespace nn
}  // namespace tessera
