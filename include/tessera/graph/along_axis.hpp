// SPDX-License-Identifier: Apache-2.0
// Writing nodes that walk along one dimension, which no mesh axis cuts.
#pragma once

#include <tessera/graph/position.hpp>
#include <tessera/graph/value.hpp>

namespace tessera::graph {

/// The second attribute of a cumulative node; numbered as kernels::cumulative_kind. The first attribute of nodes here
/// is the dimension, the third whether it is walked along from its end.
enum class running : std::uint8_t { sum, prod, max, min, logsumexp, lag };

constexpr value along(value made, int axis, std::uint64_t kind, bool reverse) {
  node& n = made.owner->at(made.id);
  n.attribute[0] = static_cast<std::uint64_t>(axis);
  n.attribute[1] = kind;
  n.attribute[2] = reverse;
  return made;
}

constexpr value cumulative(value x, running kind, int axis, bool reverse) {
  return along(write(x.owner, op::cumulative, x.type(), {x.id}), axis, static_cast<std::uint64_t>(kind), reverse);
}

/// y[i] = a[i] y[i - 1] + b[i]; with `shifted` a[i - 1] y[i - 1] + b[i].
constexpr value recurrence(value a, value b, int axis, bool reverse, bool shifted) {
  return along(write(b.owner, op::recurrence, b.type(), {a.id, b.id}), axis, shifted, reverse);
}

/// Places of the first `count` elements in order.
constexpr value argsort(value x, int axis, std::int64_t count, bool descending) {
  aval type = x.type();
  type.type = dtype::i32;
  type.dims[axis].extent = count;
  return along(write(x.owner, op::argsort, type, {x.id}), axis, 0, descending);
}

/// Whether an element is the one a walk begins with.
constexpr value is_start(graph* owner, const aval& shape, int axis, bool reverse) {
  const value place = position(owner, shape, axis, dtype::i32);
  return binary(op::eq, place, number_like(place, reverse ? static_cast<double>(shape.dims[axis].extent - 1) : 0));
}

}  // namespace tessera::graph
