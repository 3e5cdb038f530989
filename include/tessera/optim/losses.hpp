// SPDX-License-Identifier: Apache-2.0
// Losses of classifiers.
#pragma once

#include <tessera/ops/one_hot.hpp>
#include <tessera/ops/softmax.hpp>

#include <limits>

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

inline constexpr auto write_cross_entropy = [](const std::array<graph::value, 2>& x, const aval&) {
  const aval logits = x[0].type();
  const int classes = logits.rank - 1;
  const graph::value labels = graph::write(x[1].owner, graph::op::check_range, x[1].type(), {x[1].id});
  labels.owner->at(labels.id).attribute[0] = static_cast<std::uint64_t>(logits.dims[classes].extent);
  const graph::value logp = ops::write_softmax<graph::op::log_softmax, -1>({x[0]}, logits);
  aval uncut = logits;
  uncut.dims[classes].axes = 0;
  const graph::value picked = graph::select(ops::write_class_mask(labels, uncut), -logp, graph::number_like(logp, 0));
  return graph::reduce(graph::op::reduce_sum, picked, 1U << classes, false);
};

/// log(sum(exp(logits))) - logits[label], one loss a row: float[..., classes] and int[...] -> float[...], cut as the
/// rows are. A label outside [0, classes) raises index_error with its value and position before anything is changed;
/// the term of another class never counts, so -inf logits give no NaN. Gradient: softmax minus one-hot. Saved for it:
/// log-softmax. Collectives: none, or those of a cut class dimension. Source:
/// optax.softmax_cross_entropy_with_integer_labels.
constexpr auto softmax_cross_entropy_with_integer_labels(const ArrayLike auto& logits, const ArrayLike auto& labels) {
  return ops::apply<"softmax_cross_entropy_with_integer_labels", cross_entropy_rule>(write_cross_entropy, logits,
                                                                                     labels);
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
/// softmax sum(labels) - labels, to the labels -log_softmax. Saved for it: log-softmax and labels. Collectives: none, or
/// those of a cut class dimension. Source: optax.softmax_cross_entropy.
constexpr auto softmax_cross_entropy(const ArrayLike auto& logits, const ArrayLike auto& labels) {
  return ops::apply<"softmax_cross_entropy", soft_cross_entropy_rule>(write_soft_cross_entropy, logits, labels);
}

}  // namespace tessera::optim
