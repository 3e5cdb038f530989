// SPDX-License-Identifier: Apache-2.0
// A pre-LN causal transformer made of layers, block by block in an array.
#pragma once

#include "remat/transformer.hpp"

#include <tessera/nn/layer_norm.hpp>

namespace remat {

/// Attention of H heads with one product for queries, keys and values, and an MLP F wide, each added to what it reads.
template <std::int64_t D, std::int64_t H, std::int64_t F>
struct object_block {
  ts::nn::layer_norm<D> ln1;
  ts::nn::layer_norm<D> ln2;
  ts::nn::linear<D, 3 * D, ts::use_bias<false>> qkv;
  ts::nn::linear<D, D, ts::use_bias<false>> proj;
  ts::nn::linear<D, F> fc1;
  ts::nn::linear<F, D> fc2;
  TESSERA_MODULE(object_block, ln1, ln2, qkv, proj, fc1, fc2)

  constexpr auto attention(auto x) const {
    constexpr std::int64_t B = decltype(x)::type.dims[0].extent;
    constexpr std::int64_t T = decltype(x)::type.dims[1].extent;
    const auto heads = [](auto each) { return ts::reshape<B, T, H, D / H>(each); };
    const auto [q, k, v] = ts::split<-1, 3>(qkv(x));
    const auto scores = ts::einsum<"bthd,bshd->bhts">(heads(q), heads(k)) * inverse_root(D / H);
    const auto mask = ts::tril(ts::ones<ts::shape<T, T>, ts::bool_>(x));
    const auto weights = ts::softmax(ts::where(mask, scores, -1e30));
    const auto mixed = ts::einsum<"bhts,bshd->bthd">(weights, heads(v));
    return proj(ts::reshape<B, T, D>(mixed));
  }

  constexpr auto operator()(auto x) const {
    const auto h = x + attention(ln1(x));
    return h + fc2(ts::gelu(fc1(ln2(h))));
  }
};

template <std::size_t L, std::int64_t D, std::int64_t H, std::int64_t F>
struct object_transformer {
  std::array<object_block<D, H, F>, L> blocks;
  TESSERA_MODULE(object_transformer, blocks)
};

template <auto Call>
inline constexpr auto object_transformer_loss = [](auto& model, auto x, auto targets) {
  for (const auto& block : model.blocks) x = Call(block, x);
  return mean_square(x - targets);
};

}  // namespace remat
