// SPDX-License-Identifier: Apache-2.0
// Losses that measure how far predictions are from targets: squares, Huber's, hinge, divergence, cosine.
#pragma once

#include <tessera/ops/activations.hpp>
#include <tessera/ops/reduce.hpp>
#include <tessera/ops/statistics.hpp>

#include <limits>

namespace tessera::optim {

/// Each takes floating-point arrays and gives a loss an element, with the types and cuts of `subtract`; collectives none.

/// (predictions - targets)^2. Source: optax.squared_error.
constexpr auto squared_error(const ArrayLike auto& predictions, const ArrayLike auto& targets) {
  return square(predictions - targets);
}
constexpr auto squared_error(const ArrayLike auto& errors) { return square(errors); }

/// Half of it, so that the gradient is the error. Source: optax.l2_loss.
constexpr auto l2_loss(const ArrayLike auto& predictions, const ArrayLike auto& targets) {
  return 0.5 * square(predictions - targets);
}
constexpr auto l2_loss(const ArrayLike auto& errors) { return 0.5 * square(errors); }

/// Half the square up to |error| = delta, from there a line: gradient clip(error, -delta, delta). Source: Huber 1964;
/// optax.huber_loss.
constexpr auto huber_loss(const ArrayLike auto& predictions, const ArrayLike auto& targets, double delta = 1) {
  const auto size = abs(predictions - targets);
  const auto near = minimum(size, delta);
  return 0.5 * square(near) + delta * (size - near);
}

/// log(cosh(error)) without overflow: about half the square near 0, |error| - log 2 far away. Gradient tanh(error).
/// Source: optax.log_cosh.
constexpr auto log_cosh(const ArrayLike auto& predictions, const ArrayLike auto& targets) {
  const auto error = predictions - targets;
  return logaddexp(error, -error) - 0.693147180559945309417;
}

/// max(0, 1 - prediction target) for targets -1 and 1. Gradient 0 at the corner. Source: optax.hinge_loss.
constexpr auto hinge_loss(const ArrayLike auto& predictions, const ArrayLike auto& targets) {
  return relu(1.0 - predictions * targets);
}

/// Those below sum over the last dimension: one loss a row, cut as the rows are, an all-reduce where it is cut.

/// sum(t (log t - log_predictions)) for probabilities t: 0 where t is 0, whatever the prediction. Gradient: -t to the
/// predictions, log t + 1 - log_predictions to the targets and 0 at t = 0. Source: optax.kl_divergence.
constexpr auto kl_divergence(const ArrayLike auto& log_predictions, const ArrayLike auto& targets) {
  const auto none_there = targets == 0.0;
  return sum<-1>(targets * (log(where(none_there, 1.0, targets)) - where(none_there, 0.0, log_predictions)));
}

/// The same for targets given as logarithms; -inf is probability 0. Source: optax.kl_divergence_with_log_targets.
constexpr auto kl_divergence_with_log_targets(const ArrayLike auto& log_predictions,
                                              const ArrayLike auto& log_targets) {
  const auto none_there = log_targets == -std::numeric_limits<double>::infinity();
  const auto known = where(none_there, 0.0, log_targets);
  return sum<-1>(exp(log_targets) * (known - where(none_there, 0.0, log_predictions)));
}

/// p.t / (max(|p|, epsilon) max(|t|, epsilon)); 0 where a norm is 0, with gradient 0 to that row. Source:
/// optax.cosine_similarity.
constexpr auto cosine_similarity(const ArrayLike auto& predictions, const ArrayLike auto& targets, double epsilon = 0) {
  const auto unit = [&](const auto& x) {
    const auto length = norm<-1>(x, keepdims);
    const auto none_there = length == 0.0;
    return where(none_there, 0.0, x / where(none_there, 1.0, maximum(length, epsilon)));
  };
  return sum<-1>(unit(predictions) * unit(targets));
}

/// 1 - cosine_similarity. Source: optax.cosine_distance.
constexpr auto cosine_distance(const ArrayLike auto& predictions, const ArrayLike auto& targets, double epsilon = 0) {
  return 1.0 - cosine_similarity(predictions, targets, epsilon);
}

}  // namespace tessera::optim
