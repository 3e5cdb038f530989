// SPDX-License-Identifier: Apache-2.0
// A row group while it is put together: which steps may join it, and which can change places with it.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/transform/lifetimes.hpp>
#include <tessera/transform/row_steps.hpp>

#include <algorithm>

namespace tessera::transform {

/// Rows are short enough that a block of some fits a cache.
inline constexpr std::int64_t longest_row_bytes = 1 << 18;
/// How far behind a group's last member another one is looked for.
inline constexpr int farthest_member = 48;

/// What a group does with a buffer.
struct row_use {
  int buffer = -1;
  std::int64_t elements = 0;  ///< of a row, or 0 where it is read whole or added to
  int times = 0;
  bool written = false;
  bool scattered = false;  ///< products alone have to do with it, and each writes a part of its own
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
  bool folds = false;
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

  /// Whether access `a` of a step writes parts of rows of an array that other products write other parts of.
  constexpr bool writes_scattered(const graph::step& s, int a) const {
    return s.kind == graph::step_kind::dot && a >= s.first + s.sources &&
           graph::lies_scattered(p.accesses[static_cast<std::size_t>(a)]);
  }

  /// Whether an access of this kind leaves each block of rows with what it needs, whatever other blocks have done.
  constexpr bool agrees(int b, std::int64_t elements, bool writes, bool scattered) const {
    for (const row_use& use : uses) {
      if (key(use.buffer) != key(b) || !(use.written || writes)) continue;
      if (scattered && use.scattered && use.buffer == b) continue;
      if (elements == 0 || use.elements != elements) return false;
      if (use.buffer == b ? writes : !same_place(buffer(use.buffer), buffer(b))) return false;
    }
    return true;
  }

  constexpr void note(int b, std::int64_t elements, bool writes, bool scattered) {
    for (row_use& use : uses)
      if (use.buffer == b) {
        if (use.elements != elements) use.elements = 0;
        use.written |= writes;
        use.scattered &= scattered;
        ++use.times;
        return;
      }
    uses.push_back({b, elements, 1, writes, scattered});
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

  /// Whether access `a` of a product reads an array that the group reads too, but not row by row.
  constexpr bool reads_beside(const graph::step& s, int a) const {
    bool found = false;
    for (const row_use& use : uses)
      found |= use.buffer == p.accesses[static_cast<std::size_t>(a)].buffer && !use.written;
    return found && s.kind == graph::step_kind::dot && graph::lies_scattered(p.accesses[static_cast<std::size_t>(a)]);
  }

  /// Whether the step reads rows that the group made or, right behind it or if both meet soon, that it reads.
  constexpr bool related(int i, bool as_sum) const {
    if (members.empty()) return true;
    const graph::step& s = p.steps[static_cast<std::size_t>(i)];
    bool made = false, shared = false;
    for (int a = s.first; a < s.first + s.sources; ++a) {
      made |= has_rows(s, a, as_sum, false);
      shared |= has_rows(s, a, as_sum, true) || reads_beside(s, a);
    }
    const bool dot = s.kind == graph::step_kind::dot;
    return made || (shared && (dot ? meets_group(i) : before.empty() && after.empty()));
  }

  constexpr bool may_join(int i, bool as_sum) const {
    const graph::step& s = p.steps[static_cast<std::size_t>(i)];
    if (s.varying != varying) return false;
    const row_form form = form_of(p, s, rows, as_sum);
    if (!form.fits || (form.batch % batch != 0 && batch % form.batch != 0)) return false;
    const bool fold = as_sum && s.kind == graph::step_kind::reduce;
    if (sums && form.batch % batch != 0) return false;
    if (as_sum && (fold ? sums : folds || batch % form.batch != 0)) return false;
    if (!related(i, as_sum) || !agrees_with_itself(s, as_sum)) return false;
    for (int a = s.first; a < s.first + s.sources + s.results; ++a) {
      const int b = p.accesses[static_cast<std::size_t>(a)].buffer;
      const std::int64_t elements = b < 0 ? 0 : row_elements(p, s, a, rows, as_sum);
      const bool writes = a >= s.first + s.sources;
      if (b >= 0 && !agrees(b, elements, writes, writes_scattered(s, a))) return false;
      if (writes && elements == 0 && !as_sum && !writes_scattered(s, a)) return false;
      if (elements * info(buffer(b < 0 ? 0 : b).type).size > longest_row_bytes) return false;
    }
    return true;
  }

  constexpr void join(int i, bool as_sum) {
    const graph::step& s = p.steps[static_cast<std::size_t>(i)];
    batch = std::min(batch, form_of(p, s, rows, as_sum).batch);
    (s.kind == graph::step_kind::reduce ? folds : sums) |= as_sum;
    for (int a = s.first; a < s.first + s.sources + s.results; ++a)
      if (const int b = p.accesses[static_cast<std::size_t>(a)].buffer; b >= 0)
        note(b, row_elements(p, s, a, rows, as_sum), a >= s.first + s.sources, writes_scattered(s, a));
    members.push_back(i);
    member_sums.push_back(as_sum ? 1 : 0);
    inside.add(p, s, key);
  }

  /// Takes step `i`, or puts it before or after the group.
  constexpr void offer(int i) {
    const graph::step& s = p.steps[static_cast<std::size_t>(i)];
    if (behind.binds(p, s, key)) return put_behind(i);
    for (const bool as_sum : {false, true})
      if ((!as_sum || s.kind == graph::step_kind::dot || s.kind == graph::step_kind::reduce) && may_join(i, as_sum))
        return join(i, as_sum);
    if (inside.binds(p, s, key)) return put_behind(i);
    before.push_back(i);
  }
  constexpr void put_behind(int i) {
    after.push_back(i);
    behind.add(p, p.steps[static_cast<std::size_t>(i)], key);
  }
};

}  // namespace tessera::transform
