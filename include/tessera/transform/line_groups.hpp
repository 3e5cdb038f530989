// SPDX-License-Identifier: Apache-2.0
// Long lines that are reduced as their elements are made: program in, the same program with groups of two steps.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/transform/growing_group.hpp>
#include <tessera/transform/lifetimes.hpp>
#include <tessera/transform/row_steps.hpp>

#include <utility>

namespace tessera::transform {

/// Long lines are reduced as their elements are made, if nobody else reads these.
struct line_grouping {
  graph::program& p;
  memory_keys key;
  graph::list<int> times{};  ///< by memory
  graph::list<int> maker{};  ///< by buffer: the step that writes it, or -1

  constexpr explicit line_grouping(graph::program& program) : p(program), key(program) {
    times.resize(key.count, 0);
    maker.resize(p.buffers.size(), -1);
  }

  /// Bytes that the lanes of a line have at least, if it is cut into parts.
  static constexpr std::int64_t long_line_bytes = 512 * 256;
  static constexpr std::int64_t most_lines = 8;

  /// The step that makes what step `i` reduces, if the two can go together; or -1.
  constexpr int elements_of(int i, const lifetimes& lives) const {
    const graph::step& s = p.steps[static_cast<std::size_t>(i)];
    const int made = p.accesses[static_cast<std::size_t>(s.first)].buffer;
    const int result = p.accesses[static_cast<std::size_t>(s.first + 1)].buffer;
    const graph::buffer& b = p.buffers[static_cast<std::size_t>(made)];
    const std::int64_t lanes = s.sizes[2] * info(accumulator(b.type)).size;
    const int from = maker[static_cast<std::size_t>(made)];
    if (s.sizes[3] != 1 || s.sizes[1] > most_lines || lanes < long_line_bytes || b.type == dtype::bool_ || from < 0 ||
        b.where != graph::space::temporary || b.follows >= 0 || times[key(made)] != 2 || lives.group_of(from))
      return -1;
    const graph::step& first = p.steps[static_cast<std::size_t>(from)];
    if (first.kind != graph::step_kind::fused || first.varying != s.varying) return -1;
    for (int j = from; j < i; ++j) {
      const graph::step& between = p.steps[static_cast<std::size_t>(j)];
      const bool stays = graph::is_control(between.kind) || graph::is_collective(between.kind) ||
                         between.kind == graph::step_kind::check_range;
      if (stays || lives.outermost(j) != lives.outermost(i)) return -1;
      for (int a = between.first; a < between.first + between.sources + between.results; ++a)
        if (const int other = p.accesses[static_cast<std::size_t>(a)].buffer; other >= 0 && key(other) == key(result))
          return -1;
    }
    for (int a = first.first; a < first.first + first.sources + first.results; ++a)
      if (p.accesses[static_cast<std::size_t>(a)].buffer == made)
        return fused_row_elements(p, first, a, 1) == s.sizes[1] * s.sizes[2] ? from : -1;
    return -1;
  }

  /// Puts step `i` right behind step `from`, and makes a group of the two.
  constexpr void settle(int from, int i) {
    const graph::step moved = p.steps[static_cast<std::size_t>(i)];
    for (int j = i; j > from + 1; --j) p.steps[static_cast<std::size_t>(j)] = p.steps[static_cast<std::size_t>(j) - 1];
    p.steps[static_cast<std::size_t>(from) + 1] = moved;
    std::size_t at = p.groups.size();
    for (std::size_t g = 0; g < p.groups.size(); ++g) {
      graph::row_group& group = p.groups[g];
      if (group.first > from && at == p.groups.size()) at = g;
      if (group.first <= from || group.first > i) continue;
      ++group.first;
      if (group.masking_step >= 0) ++group.masking_step;
    }
    graph::row_group made;
    made.first = from, made.count = 2, made.rows = made.batch = 1, made.line = true;
    p.groups.push_back(made);
    for (std::size_t g = p.groups.size() - 1; g > at; --g) std::swap(p.groups[g - 1], p.groups[g]);
    graph::buffer& line = p.buffers[static_cast<std::size_t>(p.accesses[static_cast<std::size_t>(moved.first)].buffer)];
    line.where = graph::space::rows;
    line.place = 0;
    p.steps[static_cast<std::size_t>(from)].bytes -= line.bytes;
    p.steps[static_cast<std::size_t>(from) + 1].bytes -= line.bytes;
  }

  constexpr void look() {
    for (int& each : times) each = 0;
    for (int& each : maker) each = -1;
    for (int i = 0; i < static_cast<int>(p.steps.size()); ++i) {
      const graph::step& s = p.steps[static_cast<std::size_t>(i)];
      for (int a = s.first; a < s.first + s.sources + s.results; ++a)
        if (const int b = p.accesses[static_cast<std::size_t>(a)].buffer; b >= 0) {
          ++times[key(b)];
          if (a >= s.first + s.sources) maker[static_cast<std::size_t>(b)] = i;
        }
    }
  }

  constexpr void run() {
    bool any = false;
    for (const graph::step& s : p.steps) any |= s.kind == graph::step_kind::reduce && s.sizes[3] == 1;
    if (!any) return;
    look();
    lifetimes lives(p);
    for (int i = 0; i < static_cast<int>(p.steps.size()); ++i) {
      if (p.steps[static_cast<std::size_t>(i)].kind != graph::step_kind::reduce) continue;
      const int from = lives.group_of(i) ? -1 : elements_of(i, lives);
      if (from < 0) continue;
      settle(from, i);
      look();
      lives = lifetimes(p);
    }
  }
};

}  // namespace tessera::transform
