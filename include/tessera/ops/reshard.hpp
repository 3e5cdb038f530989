// SPDX-License-Identifier: Apache-2.0
// Changing how an array is cut, on purpose.
#pragma once

#include <tessera/ops/apply.hpp>
#include <tessera/sharding/reshard.hpp>

namespace tessera {

namespace ops {

template <class Spec>
inline constexpr auto reshard_rule = handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  return sharding::reshard(x[0], read_spec<Spec>(mesh), mesh);
}};

}  // namespace ops

/// `reshard<P<"data">>(x)`: the same array cut as the spec says. Cut to uncut is an all-gather, uncut to cut a local
/// slice, axes that go from one dimension to another an all-to-all, axes in another order a permutation of blocks, a
/// pending sum becomes an all-reduce or a reduce-scatter; to make an array unreduced or reduced costs nothing. The
/// gradient goes back to x's own cut.
/// Source: jax.sharding.reshard.
template <class Spec>
constexpr auto reshard(const ArrayLike auto& x) {
  return ops::apply<"reshard", ops::reshard_rule<Spec>>(
      [](const std::array<graph::value, 1>& v, const aval& type) { return graph::reshard(v[0], type); }, x);
}

}  // namespace tessera
