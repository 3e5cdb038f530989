// SPDX-License-Identifier: Apache-2.0
// Which row groups may leave out columns that a mask hides from all rows of a block.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/transform/row_steps.hpp>

#include <algorithm>

namespace tessera::transform {

/// Attention in a row group: scores are masked, `where(mask, scores, hidden)`, and go through a softmax, and whatever
/// is as wide as they are is zero in hidden columns before someone sums over columns. Then a block whose mask has
/// nothing but
/// `false` from some column on need not compute those columns at all, and no bit changes.
struct column_skipping {
  const graph::program& p;
  const graph::row_group& group;
  std::int64_t columns = 0;
  int masking_step = -1;
  int mask = -1;              ///< the access that reads the mask
  int hidden = -1;            ///< the access that reads what hidden scores are
  int masked = -1;            ///< the buffer of masked scores
  graph::list<int> zeroed{};  ///< buffers that are zero in hidden columns

  constexpr column_skipping(const graph::program& program, const graph::row_group& of) : p(program), group(of) {}

  constexpr const graph::step& step(int i) const { return p.steps[static_cast<std::size_t>(i)]; }
  constexpr const graph::access& access(int a) const { return p.accesses[static_cast<std::size_t>(a)]; }
  constexpr const graph::buffer& buffer(int b) const { return p.buffers[static_cast<std::size_t>(b)]; }
  constexpr int word(const graph::step& s, int i) const {
    return p.words[static_cast<std::size_t>(p.codes[static_cast<std::size_t>(s.code)].first + i)].value;
  }
  constexpr std::int64_t elements(const graph::step& s, int a) const {
    return access(a).buffer < 0 ? 0 : row_elements(p, s, a, group.rows, s.sums_rows);
  }
  /// Whether an access reaches rows that are as wide as scores, and that exist for a block only.
  constexpr bool is_wide(const graph::step& s, int a) const {
    return elements(s, a) == columns && buffer(access(a).buffer).where == graph::space::rows;
  }
  constexpr bool is_zeroed(int b) const { return std::find(zeroed.begin(), zeroed.end(), b) != zeroed.end(); }

  /// Looks for the step that masks scores.
  constexpr bool find_mask() {
    for (int i = group.first; i < group.first + group.count && mask < 0; ++i) {
      const graph::step& s = step(i);
      if (s.kind != graph::step_kind::fused || s.results != 1) continue;
      columns = domain_of(s) / group.rows;
      const int last = graph::instruction_word(s.sources, word(s, 2) - 1);
      const int shown = word(s, last + 3), other = word(s, last + 5);
      if (columns <= light_side || !is_wide(s, s.first + s.sources) || s.sizes[s.rank - 1] % columns != 0 ||
          static_cast<graph::op>(word(s, last)) != graph::op::select || shown >= s.sources || other >= s.sources ||
          word(s, last + 7) != s.sources + word(s, 2) - 1)
        continue;
      const auto mode = [&](int source) {
        return static_cast<graph::source_mode>(word(s, graph::source_word(source) + 1));
      };
      const int filler = access(s.first + other).buffer;
      if (mode(shown) != graph::source_mode::contiguous || mode(other) != graph::source_mode::repeated || filler < 0 ||
          buffer(filler).where != graph::space::constant)
        continue;
      masking_step = i;
      mask = s.first + shown;
      hidden = s.first + other;
      masked = access(s.first + s.sources).buffer;
    }
    return mask >= 0;
  }

  /// Whether a source of a fused step reads the mask as the scores do.
  constexpr bool reads_mask(int a) const {
    const graph::access& x = access(a);
    const graph::access& y = access(mask);
    bool same = x.buffer == y.buffer && x.offset == y.offset;
    for (int d = 0; d < max_rank; ++d) same &= x.strides[d] == y.strides[d];
    return same;
  }

  /// Notes which results of a fused step are zero wherever its zeroed sources are, and the mask is false.
  constexpr void follow_zeros(const graph::step& s) {
    graph::list<char> zero, shown;
    for (int i = 0; i < s.sources; ++i) {
      const int b = access(s.first + i).buffer;
      const bool constant = b >= 0 && buffer(b).where == graph::space::constant;
      zero.push_back((constant && p.constants[static_cast<std::size_t>(buffer(b).place)].value == 0) ||
                     (b >= 0 && is_wide(s, s.first + i) && is_zeroed(b)));
      shown.push_back(b >= 0 && reads_mask(s.first + i));
    }
    const int instructions = word(s, 2);
    for (int i = 0; i < instructions; ++i) {
      const int at = graph::instruction_word(s.sources, i);
      const auto is_zero = [&](int operand) { return zero[static_cast<std::size_t>(word(s, at + 3 + operand))] != 0; };
      bool made = false;
      switch (static_cast<graph::op>(word(s, at))) {
        case graph::op::neg:
        case graph::op::copy:
        case graph::op::convert:
        case graph::op::stop_gradient: made = is_zero(0); break;
        case graph::op::mul: made = is_zero(0) || is_zero(1); break;
        case graph::op::add:
        case graph::op::sub: made = is_zero(0) && is_zero(1); break;
        case graph::op::select:
          made = is_zero(2) && (is_zero(1) || shown[static_cast<std::size_t>(word(s, at + 3))] != 0);
          break;
        default: break;
      }
      zero.push_back(made);
      shown.push_back(0);
    }
    for (int r = 0; r < s.results; ++r)
      if (zero[static_cast<std::size_t>(word(s, graph::result_word(s.sources, instructions, r) + 1))])
        zeroed.push_back(access(s.first + s.sources + r).buffer);
  }

  /// Whether a step can leave out hidden columns.
  constexpr bool agrees(const graph::step& s) {
    const auto wide = [&](int place) { return is_wide(s, s.first + place); };
    const auto known = [&](int place) { return !wide(place) || is_zeroed(access(s.first + place).buffer); };
    bool touches = false;
    for (int a = s.first; a < s.first + s.sources + s.results; ++a) {
      touches |= is_wide(s, a);
      if (a >= s.first + s.sources && elements(s, a) == columns && !is_wide(s, a)) return false;
    }
    switch (s.kind) {
      case graph::step_kind::dot: return s.sums_rows ? known(0) && known(1) : known(0);
      case graph::step_kind::softmax:
        if (!touches) return true;
        zeroed.push_back(access(s.first + 1).buffer);
        return access(s.first).buffer == masked;
      case graph::step_kind::softmax_grad:
        if (touches) zeroed.push_back(access(s.first + 2).buffer);
        return !touches || (wide(0) && wide(1) && known(0));
      case graph::step_kind::fused:
        if (touches && domain_of(s) != columns * group.rows) return false;
        if (touches) follow_zeros(s);
        return true;
      default: return !touches;
    }
  }

  /// Whether all that a step does is to put something else, in place, where the mask is false.
  constexpr bool hides_only(const graph::step& s) const {
    if (s.kind != graph::step_kind::fused || s.results != 1 || word(s, 2) != 1) return false;
    const int at = graph::instruction_word(s.sources, 0);
    const int shown = word(s, at + 3), kept = word(s, at + 4);
    if (static_cast<graph::op>(word(s, at)) != graph::op::select || shown >= s.sources || kept >= s.sources ||
        !reads_mask(s.first + shown) || !is_wide(s, s.first + kept) || !is_wide(s, s.first + s.sources))
      return false;
    const graph::step& first = step(masking_step);
    bool same = s.rank == first.rank;
    for (int d = 0; d < s.rank; ++d) same &= s.sizes[d] == first.sizes[d];
    return same && buffer(access(s.first + kept).buffer).place == buffer(access(s.first + s.sources).buffer).place;
  }

  /// Whether the group may leave out columns; says which mask tells. Up to the softmax, which finds out whether hidden
  /// columns do not count, nothing outside the block is written: then the block can start again.
  constexpr bool run() {
    if (!find_mask() || buffer(access(mask).buffer).where == graph::space::rows) return false;
    bool weighed = false;
    for (int i = group.first; i < group.first + group.count; ++i) {
      const graph::step& s = step(i);
      if (!agrees(s)) return false;
      for (int r = s.first + s.sources; r < s.first + s.sources + s.results && !weighed; ++r)
        if (buffer(access(r).buffer).where != graph::space::rows) return false;
      weighed |= s.kind == graph::step_kind::softmax && access(s.first).buffer == masked;
    }
    return weighed;
  }
};

}  // namespace tessera::transform
