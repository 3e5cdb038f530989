// SPDX-License-Identifier: Apache-2.0
// Change of element type.
#pragma once

#include <tessera/ops/apply.hpp>

namespace tessera {

namespace ops {

template <dtype To>
inline constexpr auto convert_rule = handles_marks{[](std::span<const aval> x, const mesh_value&) {
  const bool exact = is_floating(To) || (!is_floating(x[0].type) && To != dtype::bool_);
  if (x[0].unreduced != 0 && !exact) return refuse(message::astype_unreduced);
  ruling ruled{x[0]};
  ruled.result.type = To;
  return ruled;
}};

}  // namespace ops

/// `astype<f32>(x)`: the same extents, cuts, unreduced and reduced axes (but no rounding of a pending sum), each element converted as C++ does (float to int truncates; NaN and
/// what does not fit become 0 and the nearest end; to bool: not 0). The gradient is converted back; through integers
/// there is none. Source: jax.numpy.astype.
template <dtype To>
constexpr auto astype(const ArrayLike auto& x) {
  return ops::apply<"astype", ops::convert_rule<To>>(
      [](const std::array<graph::value, 1>& v, const aval&) { return graph::convert(v[0], To); }, x);
}

}  // namespace tessera
