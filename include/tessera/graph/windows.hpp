// SPDX-License-Identifier: Apache-2.0
// Writing nodes over windows that slide along neighbouring dimensions.
#pragma once

#include <tessera/graph/value.hpp>

namespace tessera::graph {

/// Along one dimension: the extent of a window, from window to window, from element to element within.
struct window {
  int dim = 0;
  std::int64_t extent = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;

  /// Elements from the first to the last of a window, both included.
  constexpr std::int64_t span() const { return (extent - 1) * dilation + 1; }
  /// Windows that fit into `whole` elements.
  constexpr std::int64_t count(std::int64_t whole) const { return whole < span() ? 0 : (whole - span()) / stride + 1; }
};

/// One or two windowed dimensions, side by side.
struct windowing {
  int count = 0;
  window of[2]{};
};

/// A windowed dimension as an attribute: dimension + 1 in 4 bits, stride and dilation in 30 each.
constexpr std::uint64_t pack_window(const window& w) {
  return static_cast<std::uint64_t>(w.dim + 1) | static_cast<std::uint64_t>(w.stride) << 4 |
         static_cast<std::uint64_t>(w.dilation) << 34;
}

/// The windows of a node; `wide` is the type of the side that has windows as dimensions of their own, after the last
/// dimension along which they slide.
constexpr windowing windowing_of(const node& n, const aval& wide) {
  windowing how;
  for (std::uint64_t packed : n.attribute)
    if (packed != 0)
      how.of[how.count++] = {static_cast<int>(packed & 15U) - 1, 1,
                             static_cast<std::int64_t>(packed >> 4 & 0x3fffffffU),
                             static_cast<std::int64_t>(packed >> 34)};
  for (int i = 0; i < how.count; ++i) how.of[i].extent = wide.dims[how.of[how.count - 1].dim + 1 + i].extent;
  return how;
}

/// For each dimension of a windows node the operand's dimension, and how far one step goes in it.
struct window_dims {
  int of_operand[max_rank]{};
  std::int64_t step[max_rank]{};

  constexpr window_dims(const node& n, int operand_rank) {
    const windowing how = windowing_of(n, n.type);
    const int last = how.of[how.count - 1].dim;
    for (int d = 0; d < operand_rank; ++d) {
      const int j = d <= last ? d : d + how.count;
      of_operand[j] = d;
      step[j] = 1;
    }
    for (int i = 0; i < how.count; ++i) {
      step[how.of[i].dim] = how.of[i].stride;
      of_operand[last + 1 + i] = how.of[i].dim;
      step[last + 1 + i] = how.of[i].dilation;
    }
  }
};

constexpr value set_windows(value made, const windowing& how) {
  for (int i = 0; i < how.count; ++i) made.owner->at(made.id).attribute[i] = pack_window(how.of[i]);
  return made;
}

/// `v` with, along windowed dimensions, the number of the window, and behind the last of them the positions within it.
/// Windowed dimensions are uncut, or cut so that no window reaches over the end of a block.
constexpr value windows(value v, const windowing& how) {
  const aval from = v.type();
  aval type = from;
  const int last = how.of[how.count - 1].dim;
  for (int d = from.rank - 1; d > last; --d) type.dims[d + how.count] = from.dims[d];
  for (int i = 0; i < how.count; ++i) {
    type.dims[how.of[i].dim].extent = how.of[i].count(from.dims[how.of[i].dim].extent);
    type.dims[last + 1 + i] = {how.of[i].extent, 0};
  }
  type.rank += how.count;
  bool plain = true;
  for (int i = 0; i < how.count; ++i) plain = plain && how.of[i].extent == 1 && how.of[i].stride == 1;
  if (plain) return reshape(v, type);
  return set_windows(write(v.owner, op::windows, type, {v.id}), how);
}

/// The transpose: elements of windows added up where they were taken from, in an array of type `type`.
constexpr value overlap_add(value v, aval type, const windowing& how) {
  type.type = v.type().type;
  type = with_marks(type, v.type());
  return set_windows(write(v.owner, op::overlap_add, type, {v.id}), how);
}

}  // namespace tessera::graph
