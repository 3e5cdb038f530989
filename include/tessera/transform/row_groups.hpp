// SPDX-License-Identifier: Apache-2.0
// Which steps go together over blocks of rows: program in, the same program with row groups, and what they hand to each
// other in rows instead of memory.
#pragma once

#include <tessera/core/alignment.hpp>
#include <tessera/graph/program.hpp>
#include <tessera/transform/growing_group.hpp>
#include <tessera/transform/line_groups.hpp>
#include <tessera/transform/row_steps.hpp>
#include <tessera/transform/seen_columns.hpp>

#include <algorithm>
#include <utility>

namespace tessera::transform {

/// A group is worth its while if its steps hand so many bytes to each other that now stay in a cache.
inline constexpr std::int64_t worth_grouping = 1 << 16;
/// Rows are many enough to be cut into blocks.
inline constexpr std::int64_t fewest_rows = 32;

/// The pass's state.
struct row_grouping {
  graph::program& p;
  memory_keys key;
  graph::list<int> times{};      ///< by memory: accesses in the whole program
  graph::list<char> followed{};  ///< by buffer: another has its place by it, or it by another
  graph::list<char> border{};    ///< by step: groups end before it
  graph::list<char> grouped{};   ///< by step
  touched_memory inside;
  touched_memory behind;

  constexpr explicit row_grouping(graph::program& program)
      : p(program), key(program), inside(key.count), behind(key.count) {
    grouped.resize(p.steps.size(), 0);
    times.resize(key.count, 0);
    followed.resize(p.buffers.size(), 0);
    border.resize(p.steps.size() + 1, 0);
    for (std::size_t b = 0; b < p.buffers.size(); ++b)
      if (p.buffers[b].follows >= 0) followed[b] = followed[static_cast<std::size_t>(p.buffers[b].follows)] = 1;
    for (std::size_t i = 0; i < p.steps.size(); ++i) {
      const graph::step& s = p.steps[i];
      for (int a = s.first; a < s.first + s.sources + s.results; ++a)
        if (const int b = p.accesses[static_cast<std::size_t>(a)].buffer; b >= 0) ++times[key(b)];
      if (graph::is_control(s.kind)) {
        const auto inner = i + 1 + static_cast<std::size_t>(s.sizes[graph::first_steps]);
        border[inner] = border[i + 1 + static_cast<std::size_t>(graph::steps_inside(s))] = 1;
      }
      if (graph::is_control(s.kind) || graph::is_collective(s.kind) || s.kind == graph::step_kind::check_range)
        border[i] = border[i + 1] = 1;
    }
  }

  /// The rows of a group that starts with step `i`: its own, or those of what reads first what it makes.
  constexpr std::int64_t rows_of(int i) const {
    const graph::step& s = p.steps[static_cast<std::size_t>(i)];
    if (own_rows(s) > 0) return own_rows(s);
    if (s.kind == graph::step_kind::dot) return s.sizes[4] == 0 && s.sizes[3] > 1 ? s.sizes[0] * s.sizes[3] : 0;
    if (s.kind != graph::step_kind::fused) return 0;
    constexpr int near = 8;
    for (int j = i + 1;
         j < std::min(i + near, static_cast<int>(p.steps.size())) && !border[static_cast<std::size_t>(j)]; ++j) {
      const graph::step& next = p.steps[static_cast<std::size_t>(j)];
      if (own_rows(next) == 0) continue;
      for (int r = s.first + s.sources; r < s.first + s.sources + s.results; ++r)
        if (p.accesses[static_cast<std::size_t>(r)].buffer == p.accesses[static_cast<std::size_t>(next.first)].buffer)
          return own_rows(next);
    }
    return 0;
  }

  /// Whether nobody but the group has to do with a buffer that it makes row by row.
  constexpr bool is_inner(const row_use& use) const {
    const graph::buffer& b = p.buffers[static_cast<std::size_t>(use.buffer)];
    return use.written && use.elements > 0 && b.where == graph::space::temporary &&
           followed[static_cast<std::size_t>(use.buffer)] == 0 && times[key(use.buffer)] == use.times;
  }

  constexpr std::int64_t inner_bytes(const growing_group& group) const {
    std::int64_t bytes = 0;
    for (const row_use& use : group.uses)
      if (is_inner(use)) bytes += p.buffers[static_cast<std::size_t>(use.buffer)].bytes;
    return bytes;
  }

  /// The group that starts with step `first`, if there is one.
  constexpr bool try_from(int first) {
    const graph::step& s = p.steps[static_cast<std::size_t>(first)];
    const std::int64_t rows = rows_of(first);
    if (rows < fewest_rows) return false;
    growing_group group(p, key, inside, behind, rows, s.varying);
    group.offer(first);
    if (group.members.empty()) return false;
    for (int i = first + 1; i < static_cast<int>(p.steps.size()) && !border[static_cast<std::size_t>(i)] &&
                            i - group.members.back() <= farthest_member;
         ++i)
      group.offer(i);
    if (group.members.size() < 2 || inner_bytes(group) < worth_grouping) return false;
    if (group.folds && group.batch != rows && group.batch % graph::rows_in_leaf != 0) return false;
    settle(group, first);
    return true;
  }

  /// Puts the steps in order, and what only the group has to do with into rows.
  constexpr void settle(const growing_group& group, int first) {
    const int last = group.members.back();
    graph::list<graph::step> order;
    const auto put = [&](int i) {
      if (i <= last) order.push_back(p.steps[static_cast<std::size_t>(i)]);
    };
    for (int i : group.before) put(i);
    graph::row_group made{first + static_cast<int>(order.size()),
                          static_cast<int>(group.members.size()),
                          group.rows,
                          group.batch,
                          0,
                          group.sums};
    for (std::size_t m = 0; m < group.members.size(); ++m) {
      put(group.members[m]);
      order.back().sums_rows = group.member_sums[m] != 0;
    }
    for (int i : group.after) put(i);
    for (std::size_t i = 0; i < order.size(); ++i) p.steps[static_cast<std::size_t>(first) + i] = order[i];
    place_rows(group, made);
    border[static_cast<std::size_t>(made.first)] = border[static_cast<std::size_t>(made.first + made.count)] = 1;
    made.folds = group.folds;
    for (int i = made.first; i < made.first + made.count; ++i) grouped[static_cast<std::size_t>(i)] = 1;
    note_skipping(made);
    std::size_t at = p.groups.size();
    p.groups.push_back(made);
    for (; at > 0 && p.groups[at - 1].first > made.first; --at) std::swap(p.groups[at - 1], p.groups[at]);
  }

  /// Lets a group leave out columns that a mask hides, and steps those where it hides nothing.
  constexpr void note_skipping(graph::row_group& made) {
    column_skipping columns(p, made);
    if (!columns.run()) return;
    made.columns = columns.columns;
    made.masking_step = columns.masking_step;
    made.mask = columns.mask;
    made.hidden = columns.hidden;
    for (int i = made.first; i < made.first + made.count; ++i)
      p.steps[static_cast<std::size_t>(i)].hides_only = columns.hides_only(columns.step(i));
  }

  /// Whether step `s` may write `to` where `from` lies.
  constexpr bool takes_over(const graph::step& s, int from, int to) const {
    return p.buffers[static_cast<std::size_t>(from)].bytes == p.buffers[static_cast<std::size_t>(to)].bytes &&
           (reads_in_place(p, s, from) || s.kind == graph::step_kind::softmax_grad ||
            s.kind == graph::step_kind::log_softmax_grad);
  }

  /// Offsets of what exists for a block only, in bytes a row: each at the lowest that is free while it is needed.
  constexpr void place_rows(const growing_group& group, graph::row_group& made) {
    graph::list<int> inner;
    for (const row_use& use : group.uses)
      if (is_inner(use)) inner.push_back(use.buffer);
    graph::list<int> born(inner.size(), -1);
    graph::list<int> dies(inner.size(), -1);
    const auto place_of = [&](int b) {
      return static_cast<std::size_t>(std::find(inner.begin(), inner.end(), b) - inner.begin());
    };
    for (int i = made.first; i < made.first + made.count; ++i) {
      graph::step& s = p.steps[static_cast<std::size_t>(i)];
      for (int a = s.first; a < s.first + s.sources + s.results; ++a) {
        const std::size_t at = place_of(p.accesses[static_cast<std::size_t>(a)].buffer);
        if (at == inner.size()) continue;
        if (born[at] < 0) born[at] = i;
        dies[at] = i;
        s.bytes -= p.buffers[static_cast<std::size_t>(inner[at])].bytes;
      }
    }
    for (std::size_t at = 0; at < inner.size(); ++at) put_rows(inner, born, dies, at, made);
  }

  constexpr void put_rows(const graph::list<int>& inner, const graph::list<int>& born, const graph::list<int>& dies,
                          std::size_t at, graph::row_group& made) {
    graph::buffer& b = p.buffers[static_cast<std::size_t>(inner[at])];
    const std::int64_t bytes = aligned(b.bytes / made.rows);
    std::int64_t place = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t other = 0; other < at; ++other) {
        const graph::buffer& taken = p.buffers[static_cast<std::size_t>(inner[other])];
        const std::int64_t end = taken.place + aligned(taken.bytes / made.rows);
        if (dies[other] < born[at] || dies[at] < born[other] || end <= place || place + bytes <= taken.place) continue;
        const bool heir = dies[other] == born[at] && place == taken.place &&
                          takes_over(p.steps[static_cast<std::size_t>(born[at])], inner[other], inner[at]);
        if (heir) continue;
        place = end;
        moved = true;
      }
    }
    b.where = graph::space::rows;
    b.place = place;
    made.row_bytes = std::max(made.row_bytes, place + bytes);
  }

  constexpr void run() {
    for (int i = 0; i < static_cast<int>(p.steps.size()); ++i) {
      while (!grouped[static_cast<std::size_t>(i)] && try_from(i)) continue;
    }
    for (const graph::row_group& group : p.groups)
      for (int i = group.first; group.folds && i < group.first + group.count; ++i)
        if (graph::step& s = p.steps[static_cast<std::size_t>(i)]; s.kind == graph::step_kind::reduce && s.sums_rows)
          add_leaves(s);
  }

  /// Gives a reduction of all rows memory for what each leaf of rows makes: one more result.
  constexpr void add_leaves(graph::step& s) {
    const auto first = static_cast<int>(p.accesses.size());
    for (int a = s.first; a < s.first + s.sources + s.results; ++a) {
      const graph::access copy = p.accesses[static_cast<std::size_t>(a)];
      p.accesses.push_back(copy);
    }
    graph::buffer leaves = p.buffers[static_cast<std::size_t>(p.accesses.back().buffer)];
    leaves.where = graph::space::temporary;
    leaves.place = leaves.offset = leaves.stride = 0;
    leaves.loop = leaves.follows = -1;
    leaves.bytes *= (s.sizes[2] + graph::rows_in_leaf - 1) / graph::rows_in_leaf;
    s.bytes += 2 * leaves.bytes;
    p.buffers.push_back(leaves);
    p.accesses.push_back({static_cast<int>(p.buffers.size()) - 1});
    s.first = first;
    ++s.results;
  }
};

/// Groups steps wherever that keeps much of what they hand to each other out of memory.
constexpr void group_rows(graph::program& p) {
  const bool large = std::any_of(p.buffers.begin(), p.buffers.end(), [](const graph::buffer& b) {
    return b.where == graph::space::temporary && 4 * b.bytes >= worth_grouping;
  });
  if (!large) return;
  row_grouping pass(p);
  pass.run();
  line_grouping(p).run();
}

}  // namespace tessera::transform
