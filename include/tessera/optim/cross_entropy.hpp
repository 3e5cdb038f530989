// SPDX-License-Identifier: Apache-2.0
// Losses of classifiers: cross entropy with class numbers or probabilities, of two classes or many.
#pragma once

#include <tessera/ops/activations.hpp>
#include <tessera/ops/convert.hpp>
#include <tessera/ops/one_hot.hpp>
#include <tessera/ops/softmax.hpp>
#include <tessera/ops/where.hpp>

#include <cstdint>
#include <limits>
#include <optional>

namespace tessera::optim {

inline constexpr auto cross_entropy_rule = [](std::span<const aval> x, const mesh_value& mesh) {
  const aval& logits = x[0];
  const aval& labels = x[1];
  if (labels.type != dtype::i32 && labels.type != dtype::u32) return refuse(message::cross_entropy_labels);
  if (!is_floating(logits.type)) return refuse(message::softmax_needs_float);
  if (logits.rank < 1 || logits.dims[logits.rank - 1].extent < 1) return refuse(message::cross_entropy_classes);
  aval rows = logits;
  rows.dims[--rows.rank] = {};
  if (!rows.same_shape(labels)) return refuse(message::cross_entropy_shape);
  const aval both[] = {rows, labels};
  return sharding::broadcast_together(both, mesh);
};

/// What softmax_cross_entropy_with_integer_labels may be told beside its arrays.
struct cross_entropy_options {
  double label_smoothing = 0;                  ///< the share of probability spread over all classes, from 0 to 1
  std::optional<std::int64_t> ignore_index{};  ///< rows of this label have loss 0 and no gradient
};

/// (1 - a) (-logp[label]) + a mean(-logp), by the rows' log-softmax.
struct write_cross_entropy_t {
  cross_entropy_options options{};

  constexpr graph::value operator()(const std::array<graph::value, 2>& x, const aval&) const {
    if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
      throw value_error("softmax_cross_entropy: label_smoothing is outside [0, 1]");
    const aval logits = x[0].type();
    const int classes = logits.rank - 1;
    graph::value labels = x[1];
    graph::value ignored{};
    if (options.ignore_index) {
      ignored =
          graph::binary(graph::op::eq, x[1], graph::number_like(x[1], static_cast<double>(*options.ignore_index)));
      labels = graph::select(ignored, graph::number_like(x[1], 0), x[1]);
    }
    labels = checked_labels(labels, logits.dims[classes].extent);
    const graph::value logp = ops::write_softmax<graph::op::log_softmax, -1>({x[0]}, logits);
    aval uncut = logits;
    uncut.dims[classes].axes = 0;
    const graph::value zero = graph::number_like(logp, 0);
    graph::value picked = graph::select(ops::write_class_mask(labels, uncut), -logp, zero);
    if (const double a = options.label_smoothing; a > 0)
      picked = (1 - a) * picked + -logp * (a / static_cast<double>(logits.dims[classes].extent));
    const graph::value losses = graph::reduce(graph::op::reduce_sum, picked, 1U << classes, false);
    return options.ignore_index ? graph::select(ignored, graph::number_like(losses, 0), losses) : losses;
  }

 private:
  static constexpr graph::value checked_labels(graph::value labels, std::int64_t classes) {
    const graph::value seen = graph::write(labels.owner, graph::op::check_range, labels.type(), {labels.id});
    seen.owner->at(seen.id).attribute[0] = static_cast<std::uint64_t>(classes);
    return seen;
  }
};
inline constexpr write_cross_entropy_t write_cross_entropy{};

/// The loss below with `{.label_smoothing = 0.1, .ignore_index = -100}`: the label's probability is 1 - a and all
/// classes share a; rows of the ignored label count nothing (the mean over the others is the sum divided by their
/// number).
constexpr auto softmax_cross_entropy_with_integer_labels(const ArrayLike auto& logits, const ArrayLike auto& labels,
                                                         cross_entropy_options options) {
  return ops::in_float32(
      [&](const auto& x, const auto& y) {
        return ops::apply<"softmax_cross_entropy_with_integer_labels", cross_entropy_rule>(
            write_cross_entropy_t{options}, x, y);
      },
      logits, labels);
}

/// log(sum(exp(logits))) - logits[label], one loss a row: float[..., classes] and int[...] -> float[...], cut as the
/// rows are; of 16-bit logits float32, as all losses. A label outside [0, classes) raises index_error with its value
/// and position before anything is changed; the term of another class never counts, so -inf logits give no NaN.
/// Gradient: softmax minus one-hot. Saved for it: log-softmax. Collectives: none, or those of a cut class dimension.
/// Source: optax.softmax_cross_entropy_with_integer_labels.
constexpr auto softmax_cross_entropy_with_integer_labels(const ArrayLike auto& logits, const ArrayLike auto& labels) {
  return softmax_cross_entropy_with_integer_labels(logits, labels, cross_entropy_options{});
}

inline constexpr auto soft_cross_entropy_rule = [](std::span<const aval> x, const mesh_value& mesh) {
  for (const aval& operand : x)
    if (!is_floating(operand.type)) return refuse(message::softmax_needs_float);
  if (x[0].rank < 1 || x[0].dims[x[0].rank - 1].extent < 1) return refuse(message::cross_entropy_classes);
  const ruling both = sharding::elementwise(x, mesh);
  if (!both.ok()) return both;
  return both.result.same_shape(x[0])
             ? sharding::reduce(both.result, 1U << (both.result.rank - 1), false, nullptr, mesh)
             : refuse(message::elementwise_shape);
};

/// A class of probability 0 that has label 0 counts nothing: 0 times -infinity is left out.
inline constexpr auto write_soft_cross_entropy = [](const std::array<graph::value, 2>& x, const aval&) {
  const graph::value logp = ops::write_softmax<graph::op::log_softmax, -1>({x[0]}, x[0].type());
  const graph::value zero = graph::number_like(logp, 0);
  const graph::value impossible =
      graph::binary(graph::op::eq, logp, graph::number_like(logp, -std::numeric_limits<double>::infinity()));
  const graph::value without =
      graph::binary(graph::op::logical_and, impossible, graph::binary(graph::op::eq, x[1], zero));
  const graph::value terms = x[1] * graph::select(without, zero, logp);
  return -graph::reduce(graph::op::reduce_sum, terms, 1U << (terms.type().rank - 1), false);
};

/// -sum(labels log_softmax(logits)) over the classes, one loss a row: labels are probabilities of the logits' shape (or
/// broadcast to it) and dtype. A class with label 0 counts nothing even if its logit is -inf. Gradient: to the logits
/// softmax sum(labels) - labels, to the labels -log_softmax. Saved for it: log-softmax and labels. Collectives: none,
/// or those of a cut class dimension. Source: optax.softmax_cross_entropy.
constexpr auto softmax_cross_entropy(const ArrayLike auto& logits, const ArrayLike auto& labels) {
  return ops::in_float32(
      [](const auto& x, const auto& y) {
        return ops::apply<"softmax_cross_entropy", soft_cross_entropy_rule>(write_soft_cross_entropy, x, y);
      },
      logits, labels);
}

/// (1 - alpha) labels + alpha / classes, over the last dimension: probabilities for softmax_cross_entropy. Source:
/// optax.smooth_labels.
constexpr auto smooth_labels(const ArrayLike auto& labels, double alpha) {
  constexpr aval type = std::remove_cvref_t<decltype(labels * 1.0)>::type;
  static_assert(type.rank > 0, "tessera: smooth_labels: the labels have no dimension of classes");
  return (1 - alpha) * labels + alpha / static_cast<double>(type.dims[type.rank - 1].extent);
}

inline constexpr auto binary_cross_entropy_rule = ops::elementwise_rule<graph::op::add, ops::wants::floats>;

/// -(z log p + (1 - z) log(1 - p)); a term whose weight is 0 counts nothing even if its logarithm is -inf.
inline constexpr auto write_binary_cross_entropy = [](const std::array<graph::value, 2>& x, const aval&) {
  const graph::value zero = graph::number_like(x[0], 0);
  const auto log_sigmoid = [&](graph::value v) { return -ops::write_logaddexp({-v, zero}, v.type()); };
  const auto term = [&](graph::value weight, graph::value logp) {
    const graph::value impossible =
        graph::binary(graph::op::eq, logp, graph::number_like(logp, -std::numeric_limits<double>::infinity()));
    const graph::value without =
        graph::binary(graph::op::logical_and, impossible, graph::binary(graph::op::eq, weight, zero));
    return weight * graph::select(without, zero, logp);
  };
  return -(term(x[1], log_sigmoid(x[0])) + term(1.0 - x[1], log_sigmoid(-x[0])));
};

/// -labels log(sigmoid(logits)) - (1 - labels) log(sigmoid(-logits)), element by element, for probabilities of two
/// classes and of labels that do not exclude each other. Gradient: sigmoid(logits) - labels, at infinite logits too.
/// Types as of `add`, floating-point only. Source: optax.sigmoid_binary_cross_entropy.
constexpr auto sigmoid_binary_cross_entropy(const ArrayLike auto& logits, const ArrayLike auto& labels) {
  return ops::in_float32(
      [](const auto& x, const auto& y) {
        return ops::apply<"sigmoid_binary_cross_entropy", binary_cross_entropy_rule>(write_binary_cross_entropy, x, y);
      },
      logits, labels);
}

}  // namespace tessera::optim
