// SPDX-License-Identifier: Apache-2.0
// Which steps go together over blocks of rows: program in, the same program with row groups, and what they hand to each
// other in rows instead of memory.
#pragma once

#include <tessera/core/alignment.hpp>
#include <tessera/graph/program.hpp>
#include <tessera/transform/lifetimes.hpp>
#include <tessera/transform/row_steps.hpp>
#include <tessera/transform/seen_columns.hpp>

#include <algorithm>
#include <utility>

namespace tessera::transform {

/// A group is worth its while if its steps hand so many bytes to each other that now stay in a cache.
inline constexpr std::int64_t worth_grouping = 1 << 16;
/// Rows are many enough to be cut into blocks, and short enough that a block of some fits a cache.
inline constexpr std::int64_t fewest_rows = 32;
inline constexpr std::int64_t longest_row_bytes = 1 << 18;
/// How far behind a group's last member another one is looked for.
inline constexpr int farthest_member = 48;

/// What a group does with a buffer.
struct row_use {
  int buffer = -1;
  std::int64_t elements = 0;  ///< of a row, or 0 where it is read whole or added to
  int times = 0;
  bool written = false;
};

/// Memory that accesses may conflict over: that of a whole buffer, or of an argument or result by its number.
struct memory_keys {
  graph::list<int> of{};  ///< by buffer

  constexpr explicit memory_keys(const graph::program& p) {
    const int buffers = static_cast<int>(p.buffers.size());
    const int arguments = static_cast<int>(p.arguments.size());
    for (int b = 0; b < buffers; ++b) {
      const int whole = p.whole_buffer(b);
      const graph::buffer& memory = p.buffers[static_cast<std::size_t>(whole)];
      const int place = static_cast<int>(memory.place);
      of.push_back(memory.where == graph::space::argument ? buffers + place
                   : memory.where == graph::space::result ? buffers + arguments + place
                                                          : whole);
    }
    count = static_cast<std::size_t>(buffers + arguments) + p.results.size();
  }
  constexpr std::size_t operator()(int b) const { return static_cast<std::size_t>(of[static_cast<std::size_t>(b)]); }

  std::size_t count = 0;
};

/// Which memory some steps read and write. Marks are numbers, so that nothing is cleared when the next steps come.
struct touched_memory {
  graph::list<int> read{};
  graph::list<int> written{};
  int mark = 0;

  constexpr explicit touched_memory(std::size_t keys) {
    read.resize(keys, 0);
    written.resize(keys, 0);
  }
  constexpr void add(const graph::program& p, const graph::step& s, const memory_keys& key) {
    for (int a = s.first; a < s.first + s.sources + s.results; ++a)
      if (const int b = p.accesses[static_cast<std::size_t>(a)].buffer; b >= 0)
        (a < s.first + s.sources ? read : written)[key(b)] = mark;
  }
  /// Whether `s` may not change places with these steps.
  constexpr bool binds(const graph::program& p, const graph::step& s, const memory_keys& key) const {
    bool bound = false;
    for (int a = s.first; a < s.first + s.sources + s.results && !bound; ++a)
      if (const int b = p.accesses[static_cast<std::size_t>(a)].buffer; b >= 0)
        bound = written[key(b)] == mark || (a >= s.first + s.sources && read[key(b)] == mark);
    return bound;
  }
};

/// Whether two buffers are one piece of memory.
constexpr bool same_place(const graph::buffer& a, const graph::buffer& b) {
  return a.where == b.where && a.place == b.place && a.bytes == b.bytes && a.offset == b.offset && a.loop == b.loop &&
         a.stride == b.stride && a.varying == b.varying && a.where != graph::space::temporary;
}

/// A group that grows, and the steps around its members: those that can go before it, and those that go after it.
struct growing_group {
  const graph::program& p;
  const memory_keys& key;
  std::int64_t rows;
  std::int64_t batch;
  axis_set varying;
  bool sums = false;
  graph::list<row_use> uses{};
  graph::list<int> members{};
  graph::list<char> member_sums{};  ///< by member
  graph::list<int> before{};
  graph::list<int> after{};
  touched_memory& inside;
  touched_memory& behind;

  constexpr growing_group(const graph::program& program, const memory_keys& keys, touched_memory& within,
                          touched_memory& later, std::int64_t of_rows, axis_set on)
      : p(program), key(keys), rows(of_rows), batch(of_rows), varying(on), inside(within), behind(later) {
    ++inside.mark, ++behind.mark;
  }

  constexpr const graph::buffer& buffer(int b) const { return p.buffers[static_cast<std::size_t>(b)]; }

  /// Whether an access of this kind leaves each block of rows with what it needs, whatever other blocks have done.
  constexpr bool agrees(int b, std::int64_t elements, bool writes) const {
    for (const row_use& use : uses) {
      if (key(use.buffer) != key(b) || !(use.written || writes)) continue;
      if (elements == 0 || use.elements != elements) return false;
      if (use.buffer == b ? writes : !same_place(buffer(use.buffer), buffer(b))) return false;
    }
    return true;
  }

  constexpr void note(int b, std::int64_t elements, bool writes) {
    for (row_use& use : uses)
      if (use.buffer == b) {
        if (use.elements != elements) use.elements = 0;
        use.written |= writes;
        ++use.times;
        return;
      }
    uses.push_back({b, elements, 1, writes});
  }

  /// Whether a step that reads and writes one memory does so element by element.
  constexpr bool agrees_with_itself(const graph::step& s, bool as_sum) const {
    for (int r = s.first + s.sources; r < s.first + s.sources + s.results; ++r)
      for (int a = s.first; a < r; ++a) {
        const int from = p.accesses[static_cast<std::size_t>(a)].buffer;
        const int to = p.accesses[static_cast<std::size_t>(r)].buffer;
        if (from < 0 || key(from) != key(to)) continue;
        if (a >= s.first + s.sources || !same_place(buffer(from), buffer(to)) || !reads_in_place(p, s, from) ||
            row_elements(p, s, a, rows, as_sum) == 0)
          return false;
      }
    return true;
  }

  /// Whether the group has a row of what access `a` reaches: one it made, or (`any`) one it reads too.
  constexpr bool has_rows(const graph::step& s, int a, bool as_sum, bool any) const {
    const int b = p.accesses[static_cast<std::size_t>(a)].buffer;
    for (const row_use& use : uses)
      if (b >= 0 && use.buffer == b && use.elements > 0 && (use.written || any))
        return row_elements(p, s, a, rows, as_sum) > 0;
    return false;
  }

  /// Whether some step soon reads what step `i` makes together with rows that the group made.
  constexpr bool meets_group(int i) const {
    const graph::step& s = p.steps[static_cast<std::size_t>(i)];
    const int made = p.accesses[static_cast<std::size_t>(s.first + s.sources)].buffer;
    for (int j = i + 1; j < std::min(i + farthest_member, static_cast<int>(p.steps.size())); ++j) {
      const graph::step& next = p.steps[static_cast<std::size_t>(j)];
      bool reads = false, meets = false;
      for (int a = next.first; a < next.first + next.sources; ++a) {
        reads |= p.accesses[static_cast<std::size_t>(a)].buffer == made;
        meets |= has_rows(next, a, false, false);
      }
      if (reads) return meets;
    }
    return false;
  }

  /// Whether the step reads rows that the group made or, right behind it or if both meet soon, that it reads.
  constexpr bool related(int i, bool as_sum) const {
    if (members.empty()) return true;
    const graph::step& s = p.steps[static_cast<std::size_t>(i)];
    bool made = false, shared = false;
    for (int a = s.first; a < s.first + s.sources; ++a) {
      made |= has_rows(s, a, as_sum, false);
      shared |= has_rows(s, a, as_sum, true);
    }
    const bool dot = s.kind == graph::step_kind::dot;
    return made || (shared && (dot ? meets_group(i) : before.empty() && after.empty()));
  }

  constexpr bool may_join(int i, bool as_sum) const {
    const graph::step& s = p.steps[static_cast<std::size_t>(i)];
    if (s.varying != varying) return false;
    const row_form form = form_of(p, s, rows, as_sum);
    if (!form.fits || (form.batch % batch != 0 && batch % form.batch != 0)) return false;
    if (sums && form.batch % batch != 0) return false;
    if (as_sum && batch % form.batch != 0) return false;
    if (!related(i, as_sum) || !agrees_with_itself(s, as_sum)) return false;
    for (int a = s.first; a < s.first + s.sources + s.results; ++a) {
      const int b = p.accesses[static_cast<std::size_t>(a)].buffer;
      const std::int64_t elements = b < 0 ? 0 : row_elements(p, s, a, rows, as_sum);
      const bool writes = a >= s.first + s.sources;
      if (b >= 0 && !agrees(b, elements, writes)) return false;
      if (writes && elements == 0 && !as_sum) return false;
      if (elements * info(buffer(b < 0 ? 0 : b).type).size > longest_row_bytes) return false;
    }
    return true;
  }

  constexpr void join(int i, bool as_sum) {
    const graph::step& s = p.steps[static_cast<std::size_t>(i)];
    batch = std::min(batch, form_of(p, s, rows, as_sum).batch);
    sums |= as_sum;
    for (int a = s.first; a < s.first + s.sources + s.results; ++a)
      if (const int b = p.accesses[static_cast<std::size_t>(a)].buffer; b >= 0)
        note(b, row_elements(p, s, a, rows, as_sum), a >= s.first + s.sources);
    members.push_back(i);
    member_sums.push_back(as_sum ? 1 : 0);
    inside.add(p, s, key);
  }

  /// Takes step `i`, or puts it before or after the group.
  constexpr void offer(int i) {
    const graph::step& s = p.steps[static_cast<std::size_t>(i)];
    if (behind.binds(p, s, key)) return put_behind(i);
    for (const bool as_sum : {false, true})
      if ((!as_sum || s.kind == graph::step_kind::dot) && may_join(i, as_sum)) return join(i, as_sum);
    if (inside.binds(p, s, key)) return put_behind(i);
    before.push_back(i);
  }
  constexpr void put_behind(int i) {
    after.push_back(i);
    behind.add(p, p.steps[static_cast<std::size_t>(i)], key);
  }
};

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
    for (int i = made.first; i < made.first + made.count; ++i) grouped[static_cast<std::size_t>(i)] = 1;
    note_skipping(made);
    std::size_t at = p.groups.size();
    p.groups.push_back(made);
    for (; at > 0 && p.groups[at - 1].first > made.first; --at) std::swap(p.groups[at - 1], p.groups[at]);
  }

  /// Lets a group leave out columns that a mask hides.
  constexpr void note_skipping(graph::row_group& made) const {
    column_skipping columns(p, made);
    if (!columns.run()) return;
    made.columns = columns.columns;
    made.masking_step = columns.masking_step;
    made.mask = columns.mask;
    made.hidden = columns.hidden;
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
  }
};

/// Groups steps wherever that keeps much of what they hand to each other out of memory.
constexpr void group_rows(graph::program& p) {
  const bool large = std::any_of(p.buffers.begin(), p.buffers.end(), [](const graph::buffer& b) {
    return b.where == graph::space::temporary && 4 * b.bytes >= worth_grouping;
  });
  if (large) row_grouping(p).run();
}

}  // namespace tessera::transform
