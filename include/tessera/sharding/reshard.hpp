// SPDX-License-Identifier: Apache-2.0
// Sharding rule of reshard.
#pragma once

#include <tessera/core/resolve.hpp>

namespace tessera::sharding {

/// Any spec to any spec. An array becomes a pending sum by having all of itself in one part and zeros in the others;
/// there is no such part for a pending maximum or minimum, which can only be reduced. Source: JAX, Explicit mode.
constexpr ruling reshard(const aval& operand, const spec_value& spec, const mesh_value& mesh) {
  const ruling ruled = with_spec(operand, spec, mesh);
  if (!ruled.ok() || spec.unreduced == 0) return ruled;
  const bool other_kind = operand.unreduced != 0 && operand.pending != spec.pending;
  const bool more = (spec.unreduced & ~operand.unreduced) != 0;
  if (other_kind || (more && spec.pending != combine::sum)) return refuse(message::reshard_kind);
  return ruled;
}

}  // namespace tessera::sharding
