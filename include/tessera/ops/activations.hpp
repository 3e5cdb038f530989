// SPDX-License-Identifier: Apache-2.0
// Activation functions made of elementwise operations.
#pragma once

#include <tessera/ops/clamp.hpp>
#include <tessera/ops/math.hpp>
#include <tessera/ops/where.hpp>

namespace tessera {

/// Each takes a floating-point array and gives one of the same type; gradients come from the operations it is made of.
/// Source: jax.nn.

/// x sigmoid(x).
inline constexpr auto silu = [](const ArrayLike auto& x) { return x * sigmoid(x); };

/// The tanh approximation x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), one operation: of float32 within two units in
/// the last place, 16-bit numbers are rounded once. -infinity gives 0; no gradient is NaN. Source: Hendrycks and Gimpel
/// 2016.
inline constexpr ops::unary_operation<"gelu", graph::op::gelu, ops::wants::floats> gelu{};

/// x/2 (1 + erf(x / sqrt(2))); beyond 40 the density is 0 in float64.
inline constexpr auto gelu_exact = [](const ArrayLike auto& x) {
  return 0.5 * x * (1.0 + erf(0.7071067811865476 * clamp(-40.0, x, 40.0)));
};

/// log(1 + exp(x)).
inline constexpr auto softplus = [](const ArrayLike auto& x) { return logaddexp(x, 0.0); };

/// log(sigmoid(x)).
inline constexpr auto log_sigmoid = [](const ArrayLike auto& x) { return -softplus(-x); };

/// min(max(x, 0), 6).
inline constexpr auto relu6 = [](const ArrayLike auto& x) { return clamp(0.0, x, 6.0); };

/// min(max(x, -1), 1).
inline constexpr auto hard_tanh = [](const ArrayLike auto& x) { return clamp(-1.0, x, 1.0); };

/// x where x > 0, else slope x. `leaky_relu(x)`, `leaky_relu(x, 0.2)`.
constexpr auto leaky_relu(const ArrayLike auto& x, double slope = 0.01) { return where(x > 0.0, x, slope * x); }

/// x where x > 0, else alpha (exp(x) - 1). `elu(x)`, `elu(x, 0.5)`.
constexpr auto elu(const ArrayLike auto& x, double alpha = 1.0) {
  return where(x > 0.0, x, alpha * expm1(where(x > 0.0, 0.0, x)));
}

}  // namespace tessera
