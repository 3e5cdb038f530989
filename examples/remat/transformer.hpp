// SPDX-License-Identifier: Apache-2.0
// A pre-LN causal transformer as plain functions over a stack of blocks.
#pragma once

#include "remat/mlp.hpp"

namespace remat {

/// 1 / sqrt(n), exact for powers of 4.
constexpr double inverse_root(std::int64_t n) {
  double root = static_cast<double>(n);
  for (int i = 0; i < 64; ++i) root = (root + static_cast<double>(n) / root) / 2;
  return 1 / root;
}

template <ts::dtype E, std::int64_t N, double Value>
using constants = ts::nn::variable<ts::nn::param, E, ts::shape<N>, P<>, ts::nn::initializers::constant(Value)>;
template <ts::dtype E, std::int64_t In, std::int64_t Out>
using projection =
    ts::nn::variable<ts::nn::param, E, ts::shape<In, Out>, P<>, ts::nn::initializers::normal(inverse_root(In))>;

/// (x - mean) / sqrt(variance + 1e-5) * gain + offset, over the last dimension.
inline constexpr auto layer_norm = [](auto x, const auto& gain, const auto& offset) {
  auto centred = x - ts::mean<-1>(x, ts::keepdims);
  auto variance = ts::mean<-1>(ts::square(centred), ts::keepdims);
  return centred * ts::rsqrt(variance + 1e-5) * gain + offset;
};

/// Attention of H heads and an MLP F wide, each added to what it reads; of numbers of type E.
template <std::int64_t D, std::int64_t H, std::int64_t F, ts::dtype E = ts::f32>
struct transformer_block {
  projection<E, D, 3 * D> wqkv;
  projection<E, D, D> wo;
  projection<E, D, F> w1;
  projection<E, F, D> w2;
  constants<E, D, 1.0> ln1_g;
  constants<E, D, 0.0> ln1_b;
  constants<E, D, 1.0> ln2_g;
  constants<E, D, 0.0> ln2_b;
  TESSERA_MODULE(transformer_block, wqkv, wo, w1, w2, ln1_g, ln1_b, ln2_g, ln2_b)

  constexpr auto attention(auto x) const {
    constexpr std::int64_t B = decltype(x)::type.dims[0].extent;
    constexpr std::int64_t T = decltype(x)::type.dims[1].extent;
    const auto heads = [](auto each) { return ts::reshape<B, T, H, D / H>(each); };
    const auto [q, k, v] = ts::split<-1, 3>(ts::matmul(x, wqkv));
    auto scores = ts::einsum<"bthd,bshd->bhts">(heads(q), heads(k)) * inverse_root(D / H);
    auto mask = ts::tril(ts::ones<ts::shape<T, T>, ts::bool_>(x));
    auto weights = ts::softmax<-1>(ts::where(mask, scores, -1e30));
    auto mixed = ts::einsum<"bhts,bshd->bthd">(weights, heads(v));
    return ts::matmul(ts::reshape<B, T, D>(mixed), wo);
  }

  constexpr auto operator()(auto x) const {
    auto h = x + attention(layer_norm(x, ln1_g, ln1_b));
    auto m = ts::gelu(ts::matmul(layer_norm(h, ln2_g, ln2_b), w1));
    return h + ts::matmul(ts::checkpoint_name<"mlp_hidden">(m), w2);
  }
};

template <std::int64_t L, std::int64_t D, std::int64_t H, std::int64_t F, ts::dtype E = ts::f32>
using transformer = ts::nn::stack<L, transformer_block<D, H, F, E>>;

template <auto Call>
inline constexpr auto transformer_loss =
    [](auto& layers, auto x, auto targets) { return mean_square(layers.apply(Call, x) - targets); };

}  // namespace remat
