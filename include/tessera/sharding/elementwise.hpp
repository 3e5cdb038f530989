// SPDX-License-Identifier: Apache-2.0
// Sharding rule of elementwise operations, with broadcasting of scalars and of dimensions of extent 1.
#pragma once

#include <tessera/core/resolve.hpp>

#include <initializer_list>
#include <span>

namespace tessera::sharding {

/// `a` with dimensions of extent 1 in front, up to `rank`.
constexpr aval pad_rank(const aval& a, int rank) {
  aval padded = a;
  const int added = rank - a.rank;
  padded.rank = rank;
  for (int i = 0; i < rank; ++i) padded.dims[i] = i < added ? dim{1, 0} : a.dims[i - added];
  return padded;
}

/// One dimension of the result: the common extent and the one spec that is left when uncut dimensions adapt.
constexpr message join_dim(dim& joined, const dim& next) {
  if (next == dim{1, 0}) return message::none;
  if (joined == dim{1, 0}) {
    joined = next;
    return message::none;
  }
  if (joined.extent != next.extent && joined.extent != 1 && next.extent != 1) return message::elementwise_shape;
  if (joined.axes != 0 && next.axes != 0 && joined.axes != next.axes) return message::elementwise_sharding;
  if (joined.axes == 0) joined.axes = next.axes;
  if (joined.extent == 1) joined.extent = next.extent;
  return message::none;
}

/// Extents broadcast as NumPy's do; an uncut dimension adapts to a cut one, two different cuts are an error. Marks are
/// not looked at. The element type of the result is that of the first operand. Source: JAX, Explicit mode.
constexpr ruling broadcast_together(std::span<const aval> operands, const mesh_value& mesh) {
  aval result = scalar_aval(operands[0].type);
  for (const aval& a : operands) result.rank = a.rank > result.rank ? a.rank : result.rank;
  for (int i = 0; i < result.rank; ++i) result.dims[i] = {1, 0};
  for (const aval& a : operands) {
    const aval padded = pad_rank(a, result.rank);
    for (int i = 0; i < result.rank; ++i)
      if (const message why = join_dim(result.dims[i], padded.dims[i]); why != message::none) return refuse(why, i);
  }
  if (result.axis_on_two_dims()) return {result, message::elementwise_duplicate};
  const ruling checked = check_cuts(result, mesh);
  return checked.ok() ? ruling{result} : checked;
}

/// What an elementwise operation makes of unreduced operands: it passes one on, adds, multiplies or divides them, or,
/// if it is not linear, refuses them.
enum class mark_rule : std::uint8_t { refuse, pass, add, multiply, divide };

/// Whether unreduced axes may stand where they do.
constexpr message check_unreduced(std::span<const aval> operands, mark_rule rule) {
  const axis_set first = operands[0].unreduced;
  const axis_set second = operands[operands.size() - 1].unreduced;
  bool sums = true;
  for (const aval& a : operands) sums = sums && a.pending == combine::sum;
  switch (rule) {
    case mark_rule::pass: return message::none;
    case mark_rule::add:
      if (!sums) return message::unreduced_operand;
      return first == second ? message::none : message::unreduced_add;
    case mark_rule::divide:
      if (second != 0) return message::unreduced_divisor;
      [[fallthrough]];
    case mark_rule::multiply: {
      if (!sums) return message::unreduced_operand;
      const axis_set beside = first != 0 ? operands[1].reduced : operands[0].reduced;
      return (first == 0 || second == 0) && ((first | second) & ~beside) == 0 ? message::none
                                                                              : message::unreduced_factor;
    }
    default: return first == 0 && second == 0 ? message::none : message::unreduced_operand;
  }
}

/// `result` with the unreduced and reduced axes that the operands leave it. All arrays are reduced over the same axes,
/// a scalar takes part in anything; where unreduced meets reduced the product is unreduced.
constexpr ruling join_marks(std::span<const aval> operands, mark_rule rule, aval result, const mesh_value& mesh) {
  if (const message why = check_unreduced(operands, rule); why != message::none) return refuse(why);
  const bool product = rule == mark_rule::multiply || rule == mark_rule::divide;
  bool met = false;
  axis_set common = 0;
  for (const aval& a : operands) {
    result.unreduced = static_cast<axis_set>(result.unreduced | a.unreduced);
    if (a.unreduced != 0) result.pending = a.pending;
    if (a.rank == 0 && !a.marked()) continue;
    const auto shared = static_cast<axis_set>(product ? a.reduced | a.unreduced : a.reduced);
    if ((shared & result.cut()) != 0) return refuse(message::reduced_cut);
    if (met && shared != common) return refuse(message::reduced_mix);
    met = true;
    common = shared;
  }
  result.reduced = static_cast<axis_set>(product ? common & ~result.unreduced : common);
  return check_marks(result, mesh);
}

/// The rule of an operation on operands of one element type.
constexpr ruling elementwise(std::span<const aval> operands, const mesh_value& mesh,
                             mark_rule rule = mark_rule::refuse) {
  for (const aval& a : operands)
    if (a.type != operands[0].type) return refuse(message::elementwise_dtype);
  const ruling ruled = broadcast_together(operands, mesh);
  return ruled.ok() ? join_marks(operands, rule, ruled.result, mesh) : ruled;
}

/// The rule of `where(predicate, on_true, on_false)`: if all have one shape they have one spec (a scalar predicate is
/// free); otherwise they broadcast, and uncut dimensions adapt. Both cases are unreduced over the same axes or neither
/// is.
/// Source: jax.numpy.where.
constexpr ruling where(const aval& predicate, const aval& on_true, const aval& on_false, const mesh_value& mesh) {
  if (predicate.type != dtype::bool_) return refuse(message::where_predicate);
  if (on_true.type != on_false.type) return refuse(message::where_dtype);
  const bool free = predicate.rank == 0;
  const bool one_shape = on_true.same_shape(on_false) && (free || predicate.same_shape(on_true));
  const bool one_spec = on_true.same_cuts(on_false) && (free || predicate.same_cuts(on_true));
  if (one_shape && !one_spec) return refuse(message::where_sharding);
  const aval operands[] = {on_true, on_false, predicate};
  const ruling ruled = broadcast_together(operands, mesh);
  if (!ruled.ok()) return ruled;
  if (on_true.unreduced != on_false.unreduced) return refuse(message::where_unreduced);
  if (on_true.pending != combine::sum || on_false.pending != combine::sum) return refuse(message::unreduced_operand);
  const std::size_t with_predicate = predicate.marked() ? 3 : 2;
  return join_marks(std::span(operands).first(with_predicate), mark_rule::pass, ruled.result, mesh);
}

}  // namespace tessera::sharding
