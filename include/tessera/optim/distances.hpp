// SPDX-License-Identifier: Apache-2.0
// Losses that measure how far predictions are from targets: squares, Huber's, hinge, divergence, cosine.
#pragma once

#include <tessera/ops/activations.hpp>
#include <tessera/ops/convert.hpp>
#include <tessera/ops/reduce.hpp>
#include <tessera/ops/statistics.hpp>

#include <limits>

namespace tessera::optim {

/// Each takes floating-point arrays and gives a loss an element, with the types and cuts of `subtract`; collectives
/// none. Losses of bfloat16 or float16 arrays are computed in float32, and are float32.

/// (predictions - targets)^2. Source: optax.squared_error.
constexpr auto squared_error(const ArrayLike auto& predictions, const ArrayLike auto& targets) {
  return ops::in_float32([](const auto& p, const auto& t) { return square(p - t); }, predictions, targets);
}
constexpr auto squared_error(const ArrayLike auto& errors) {
  return ops::in_float32([](const auto& e) { return square(e); }, errors);
}

/// Half of it, so that the gradient is the error. Source: optax.l2_loss.
constexpr auto l2_loss(const ArrayLike auto& predictions, const ArrayLike auto& targets) {
  return 0.5 * squared_error(predictions, targets);
}
constexpr auto l2_loss(const ArrayLike auto& errors) { return 0.5 * squared_error(errors); }

/// Half the square up to |error| = delta, from there a line: gradient clip(error, -delta, delta). Source: Huber 1964;
/// optax.huber_loss.
constexpr auto huber_loss(const ArrayLike auto& predictions, const ArrayLike auto& targets, double delta = 1) {
  return ops::in_float32(
      [delta](const auto& p, const auto& t) {
        const auto size = abs(p - t);
        const auto near = minimum(size, delta);
        return 0.5 * square(near) + delta * (size - near);
      },
      predictions, targets);
}

/// log(cosh(error)) without overflow: about half the square near 0, |error| - log 2 far away. Gradient tanh(error).
/// Source: optax.log_cosh.
constexpr auto log_cosh(const ArrayLike auto& predictions, const ArrayLike auto& targets) {
  return ops::in_float32(
      [](const auto& p, const auto& t) {
        const auto error = p - t;
        return logaddexp(error, -error) - 0.693147180559945309417;
      },
      predictions, targets);
}

/// max(0, 1 - prediction target) for targets -1 and 1. Gradient 0 at the corner. Source: optax.hinge_loss.
constexpr auto hinge_loss(const ArrayLike auto& predictions, const ArrayLike auto& targets) {
  return ops::in_float32([](const auto& p, const auto& t) { return relu(1.0 - p * t); }, predictions, targets);
}

/// Those below sum over the last dimension: one loss a row, cut as the rows are, an all-reduce where it is cut.

/// sum(t (log t - log_predictions)) for probabilities t: 0 where t is 0, whatever the prediction. Gradient: -t to the
/// predictions, log t + 1 - log_predictions to the targets and 0 at t = 0. Source: optax.kl_divergence.
constexpr auto kl_divergence(const ArrayLike auto& log_predictions, const ArrayLike auto& targets) {
  return ops::in_float32(
      [](const auto& p, const auto& t) {
        const auto none_there = t == 0.0;
        return sum<-1>(t * (log(where(none_there, 1.0, t)) - where(none_there, 0.0, p)));
      },
      log_predictions, targets);
}

/// The same for targets given as logarithms; -inf is probability 0. Source: optax.kl_divergence_with_log_targets.
constexpr auto kl_divergence_with_log_targets(const ArrayLike auto& log_predictions,
                                              const ArrayLike auto& log_targets) {
  return ops::in_float32(
      [](const auto& p, const auto& t) {
        const auto none_there = t == -std::numeric_limits<double>::infinity();
        return sum<-1>(exp(t) * (where(none_there, 0.0, t) - where(none_there, 0.0, p)));
      },
      log_predictions, log_targets);
}

/// p.t / (max(|p|, epsilon) max(|t|, epsilon)); 0 where a norm is 0, with gradient 0 to that row. Source:
/// optax.cosine_similarity.
constexpr auto cosine_similarity(const ArrayLike auto& predictions, const ArrayLike auto& targets, double epsilon = 0) {
  const auto unit = [&](const auto& x) {
    const auto length = norm<-1>(x, keepdims);
    const auto none_there = length == 0.0;
    return where(none_there, 0.0, x / where(none_there, 1.0, maximum(length, epsilon)));
  };
  return ops::in_float32([&](const auto& p, const auto& t) { return sum<-1>(unit(p) * unit(t)); }, predictions,
                         targets);
}

/// 1 - cosine_similarity. Source: optax.cosine_distance.
constexpr auto cosine_distance(const ArrayLike auto& predictions, const ArrayLike auto& targets, double epsilon = 0) {
  return 1.0 - cosine_similarity(predictions, targets, epsilon);
}

}  // namespace tessera::optim
