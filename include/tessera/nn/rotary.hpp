// SPDX-License-Identifier: Apache-2.0
// Positions as rotations of pairs of features.
#pragma once

#include <tessera/ops/create.hpp>
#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/join.hpp>
#include <tessera/ops/slice.hpp>

namespace tessera::nn {

/// x[..., t, h, :] with features i and D/2 + i turned by the angle t Base^(-2 i / D): float32[..., T, H, D] -> the same
/// type, D even and uncut. A product of two such vectors depends on the distance of their positions alone. The angles
/// are computed where they are used. Gradient: the rotation backwards. No collective. Source: Su et al. 2021, RoFormer;
/// pairs lie D/2 apart as in GPT-NeoX and LLaMA.
template <double Base = 10000.0, Expr X>
constexpr auto rotary_embedding(const X& x) {
  constexpr aval type = X::type;
  static_assert(type.rank >= 3 && type.dims[type.rank - 1].extent % 2 == 0,
                "nn::rotary_embedding: x is [..., T, H, D] with an even D");
  constexpr std::int64_t tokens = type.dims[type.rank - 3].extent;
  constexpr std::int64_t half = type.dims[type.rank - 1].extent / 2;
  using table = shape<tokens, 1, half>;
  const auto place = iota<table, 0, type.type>(x);
  const auto pair = iota<table, 2, type.type>(x);
  const auto angle = place * power(Base, pair * (-1.0 / static_cast<double>(half)));
  const auto [first, second] = split<-1, 2>(x);
  return concatenate<-1>(first * cos(angle) - second * sin(angle), second * cos(angle) + first * sin(angle));
}

}  // namespace tessera::nn
