// SPDX-License-Identifier: Apache-2.0
// Derivatives of operations that walk along one dimension. All are linear recurrences, which differentiate into
// themselves; none divides, so zeros do no harm.
#pragma once

#include <tessera/graph/along_axis.hpp>

#include <limits>

namespace tessera::transform {

using graph::op;
using graph::value;

/// A walk as its node has it.
struct axis_run {
  int axis;
  bool reverse;

  constexpr explicit axis_run(const graph::node& n)
      : axis(static_cast<int>(n.attribute[0])), reverse(n.attribute[2] != 0) {}

  constexpr value before(value x) const { return graph::cumulative(x, graph::running::lag, axis, reverse); }
  constexpr value after(value x) const { return graph::cumulative(x, graph::running::lag, axis, !reverse); }
  constexpr value start(value x) const { return graph::is_start(x.owner, x.type(), axis, reverse); }
  /// s[i] = ct[i] + a[i + 1] s[i + 1]: what flows back through y[i] = a[i] y[i - 1] + ...
  constexpr value back(value a, value ct) const { return graph::recurrence(a, ct, axis, !reverse, true); }
};

/// To x[i] the product of those before it, times what flows back from those behind.
constexpr value running_product_cotangent(const axis_run& run, value x, value y, value ct) {
  const value earlier = graph::select(run.start(y), graph::number_like(y, 1), run.before(y));
  return earlier * run.back(x, ct);
}

/// Each element that set a new extremum gets what flows back until the next one; the first of equal ones, and the first
/// NaN.
constexpr value running_extremum_cotangent(const axis_run& run, bool max, value x, value y, value ct) {
  const value earlier = run.before(y);
  const value better = graph::binary(max ? op::gt : op::lt, x, earlier);
  const value undefined =
      graph::binary(op::logical_and, graph::binary(op::ne, x, x), graph::binary(op::eq, earlier, earlier));
  const value sets = graph::binary(op::logical_or, run.start(y), graph::binary(op::logical_or, better, undefined));
  const value zero = graph::number_like(x, 0);
  const value kept = graph::convert(graph::unary(op::logical_not, sets), x.type().type);
  return graph::select(sets, run.back(kept, ct), zero);
}

/// exp(difference), or 0 where `none` holds.
constexpr value power_unless(value none, value difference) {
  const value zero = graph::number_like(difference, 0);
  return graph::select(none, zero, graph::unary(op::exp, graph::select(none, zero, difference)));
}

/// exp(x[i] - y[i]) s[i] with s[i] = ct[i] + exp(y[i] - y[i + 1]) s[i + 1]: no power is above 1.
constexpr value running_logsumexp_cotangent(const axis_run& run, value x, value y, value ct) {
  const value nothing = graph::number_like(x, -std::numeric_limits<double>::infinity());
  const value earlier = run.before(y);
  const value first = graph::binary(op::logical_or, run.start(y), graph::binary(op::eq, earlier, nothing));
  const value s = run.back(power_unless(first, earlier - y), ct);
  return power_unless(graph::binary(op::eq, y, nothing), x - y) * s;
}

constexpr value cumulative_cotangent(const graph::node& n, value x, value y, value ct) {
  const axis_run run(n);
  const auto kind = static_cast<graph::running>(n.attribute[1]);
  switch (kind) {
    case graph::running::sum:
    case graph::running::lag: return graph::cumulative(ct, kind, run.axis, !run.reverse);
    case graph::running::prod: return running_product_cotangent(run, x, y, ct);
    case graph::running::logsumexp: return running_logsumexp_cotangent(run, x, y, ct);
    default: return running_extremum_cotangent(run, kind == graph::running::max, x, y, ct);
  }
}

/// The cotangents of a and of b in y[i] = a[i] y[i - 1] + b[i], or y[i] = a[i - 1] y[i - 1] + b[i].
struct recurrence_cotangents {
  value to_a;
  value to_b;

  constexpr recurrence_cotangents(const graph::node& n, value a, value y, value ct) : to_a{}, to_b{} {
    const axis_run run(n);
    const bool shifted = n.attribute[1] != 0;
    to_b = graph::recurrence(a, ct, run.axis, !run.reverse, !shifted);
    to_a = shifted ? y * run.after(to_b) : run.before(y) * to_b;
  }
};

}  // namespace tessera::transform
