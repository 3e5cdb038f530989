// SPDX-License-Identifier: Apache-2.0
// Where buffers lie: results in the place of arguments, and temporaries at offsets that their lifetimes allow.
#pragma once

#include <tessera/core/alignment.hpp>
#include <tessera/graph/program.hpp>
#include <tessera/transform/lifetimes.hpp>
#include <tessera/transform/lowering.hpp>

#include <algorithm>

namespace tessera::transform {

/// The step that writes each buffer first, or -1.
constexpr int maker_of(const graph::program& p, const lifetimes& lives, int b) {
  const int born = lives.born[static_cast<std::size_t>(b)];
  if (born < 0) return -1;
  const graph::step& s = p.steps[static_cast<std::size_t>(born)];
  for (int a = s.first + s.sources; a < s.first + s.sources + s.results; ++a)
    if (p.accesses[static_cast<std::size_t>(a)].buffer == b) return born;
  return -1;
}

/// A result that is put together by a chain of updates lies in its final place from the first one on, if `free(step)`
/// says that the place may be written there.
template <class Free>
constexpr void place_bases(graph::program& p, const lifetimes& lives, int made, Free free) {
  for (;;) {
    const int maker = maker_of(p, lives, made);
    if (maker < 0) return;
    const graph::step& s = p.steps[static_cast<std::size_t>(maker)];
    if (!updates_base(s) || !has_base(s)) return;
    const int from = p.accesses[static_cast<std::size_t>(s.first)].buffer;
    const graph::buffer& to = p.buffers[static_cast<std::size_t>(made)];
    graph::buffer& base = p.buffers[static_cast<std::size_t>(from)];
    const bool dies = lives.dies[static_cast<std::size_t>(from)] == maker && reads_in_place(p, s, from);
    const int born = maker_of(p, lives, from);
    if (base.where != graph::space::temporary || base.varying != to.varying || !dies || born < 0 || !free(born)) return;
    base.where = to.where;
    base.place = to.place;
    made = from;
  }
}

/// Results that take over an argument's memory are written there by the step that makes them, if by then nobody else
/// reads the argument and no check can still fail; otherwise a last step copies them.
constexpr void place_results(const graph::graph& g, graph::program& p, const graph::list<int>& buffer_of) {
  const lifetimes lives(p);
  int last_check = -1;
  for (std::size_t i = 0; i < p.steps.size(); ++i)
    if (p.steps[i].kind == graph::step_kind::check_range)
      last_check = std::max(last_check, lives.end_of_loops(static_cast<int>(i)));
  graph::list<graph::step> copies;
  for (std::size_t o = 0; o < g.outputs.size(); ++o) {
    const int made = buffer_of[static_cast<std::size_t>(g.outputs[o].node)];
    graph::buffer& b = p.buffers[static_cast<std::size_t>(made)];
    if (g.outputs[o].alias < 0) {
      b.where = graph::space::result;
      b.place = static_cast<std::int64_t>(o);
      p.results[o].buffer = made;
      place_bases(p, lives, made, [](int) { return true; });
      continue;
    }
    const int argument = p.arguments[static_cast<std::size_t>(g.outputs[o].alias)].buffer;
    const int birth = lives.born[static_cast<std::size_t>(made)];
    const int last_read = lives.dies[static_cast<std::size_t>(argument)];
    const auto free_at = [&](int step) {
      const bool read_there = last_read == step && reads_in_place(p, p.steps[static_cast<std::size_t>(step)], argument);
      return (last_read < step || read_there) && step > last_check;
    };
    if (free_at(birth)) {
      b.where = graph::space::argument;
      b.place = g.outputs[o].alias;
      place_bases(p, lives, made, free_at);
    } else {
      copies.push_back(copy_step(p, made, argument));
    }
    p.results[o].buffer = argument;
  }
  for (const graph::step& s : copies) p.steps.push_back(s);
}

/// Whether the result `to` of step number `i` may take over the memory of `from`, which the step reads.
constexpr bool may_take_over(const graph::program& p, const lifetimes& lives, int i, int from, int to) {
  const graph::step& s = p.steps[static_cast<std::size_t>(i)];
  const graph::buffer& source = p.buffers[static_cast<std::size_t>(from)];
  const graph::buffer& target = p.buffers[static_cast<std::size_t>(to)];
  return lives.dies[static_cast<std::size_t>(from)] == i && reads_in_place(p, s, from) &&
         source.bytes == target.bytes && (s.kind == graph::step_kind::all_reduce || source.varying == target.varying);
}

/// What is changed in place until it is a result of the program is made in the result's memory from the start.
constexpr void start_in_results(graph::program& p) {
  const lifetimes lives(p);
  for (int i = static_cast<int>(p.steps.size()) - 1; i >= 0; --i) {
    const graph::step& s = p.steps[static_cast<std::size_t>(i)];
    if (s.kind == graph::step_kind::all_reduce) continue;
    for (int r = s.first + s.sources; r < s.first + s.sources + s.results; ++r) {
      const int to = p.accesses[static_cast<std::size_t>(r)].buffer;
      const graph::buffer target = p.buffers[static_cast<std::size_t>(to)];
      if (target.where != graph::space::result || lives.born[static_cast<std::size_t>(to)] != i) continue;
      for (int a = s.first; a < s.first + s.sources; ++a) {
        const int from = p.accesses[static_cast<std::size_t>(a)].buffer;
        if (from < 0 || p.buffers[static_cast<std::size_t>(from)].where != graph::space::temporary ||
            p.buffers[static_cast<std::size_t>(from)].follows >= 0 || !may_take_over(p, lives, i, from, to))
          continue;
        p.buffers[static_cast<std::size_t>(from)].where = graph::space::result;
        p.buffers[static_cast<std::size_t>(from)].place = target.place;
        break;
      }
    }
  }
}

/// A temporary that dies in the very step that makes a result of its size, read in place: the result takes it over.
/// `heir[b]` is the buffer that lies where `b` lay, `root[b]` the first of its line.
struct inheritance {
  graph::list<int> root{};
  graph::list<int> dies{};

  constexpr inheritance(const graph::program& p, const lifetimes& lives) : dies(lives.dies) {
    for (std::size_t b = 0; b < p.buffers.size(); ++b) root.push_back(static_cast<int>(b));
    for (std::size_t i = 0; i < p.steps.size(); ++i) {
      const graph::step& s = p.steps[i];
      graph::list<int> given;
      for (int r = s.first + s.sources; r < s.first + s.sources + s.results; ++r) {
        const int to = p.accesses[static_cast<std::size_t>(r)].buffer;
        if (!is_temporary(p, to) || lives.born[static_cast<std::size_t>(to)] != static_cast<int>(i)) continue;
        for (int a = s.first; a < s.first + s.sources; ++a) {
          const int from = p.accesses[static_cast<std::size_t>(a)].buffer;
          const bool paired = s.kind != graph::step_kind::all_reduce || a - s.first == r - s.first - s.sources;
          if (!paired || !is_temporary(p, from) || std::find(given.begin(), given.end(), from) != given.end() ||
              !may_take_over(p, lives, static_cast<int>(i), from, to))
            continue;
          given.push_back(from);
          const int line = root[static_cast<std::size_t>(from)];
          root[static_cast<std::size_t>(to)] = line;
          dies[static_cast<std::size_t>(line)] = lives.dies[static_cast<std::size_t>(to)];
          break;
        }
      }
    }
  }

  static constexpr bool is_temporary(const graph::program& p, int b) {
    return b >= 0 && p.buffers[static_cast<std::size_t>(b)].where == graph::space::temporary;
  }
};

/// Puts temporaries at offsets: each at the lowest place that is free during its life. Buffers that follow one another
/// are placed together.
struct placement {
  graph::program& p;
  const lifetimes lives;
  const inheritance lines;
  graph::list<int> follower{};  ///< by buffer: the one that follows it, or -1
  graph::list<int> placed{};    ///< by offset
  graph::list<int> results{};   ///< buffers of the program's results
  graph::list<int> guests{};    ///< temporaries that lie in one of them
  std::int64_t total = 0;

  constexpr explicit placement(graph::program& program)
      : p(program), lives(program), lines(program, lives), follower(program.buffers.size(), -1) {
    for (std::size_t b = 0; b < p.buffers.size(); ++b)
      if (const int before = p.buffers[b].follows; before >= 0)
        follower[static_cast<std::size_t>(before)] = static_cast<int>(b);
    for (std::size_t r = 0; r < p.results.size(); ++r) add_result(p.results[r].buffer);
  }

  /// Memory of a result is free until the step that first writes any of its buffers.
  constexpr void add_result(int b) {
    if (p.buffers[static_cast<std::size_t>(b)].where == graph::space::result) results.push_back(b);
  }
  constexpr int first_use(int result) const {
    int first = lives.born[static_cast<std::size_t>(result)];
    for (std::size_t b = 0; b < p.buffers.size(); ++b)
      if (p.buffers[b].where == graph::space::result &&
          p.buffers[b].place == p.buffers[static_cast<std::size_t>(result)].place && lives.born[b] >= 0)
        first = std::min(first, lives.born[b]);
    return first;
  }

  /// Puts a line of buffers into a result that is not written before the line dies, if there is room.
  constexpr bool place_in_result(int b) {
    if (follower[static_cast<std::size_t>(b)] >= 0) return false;
    for (int r : results) {
      const graph::buffer& host = p.buffers[static_cast<std::size_t>(r)];
      if (host.varying != at(b).varying || host.bytes < at(b).bytes ||
          lines.dies[static_cast<std::size_t>(b)] >= first_use(r))
        continue;
      std::int64_t offset = 0;
      for (int other : guests) {
        const graph::buffer& guest = p.buffers[static_cast<std::size_t>(other)];
        if (guest.place == r && together(b, other) && guest.offset < offset + aligned(at(b).bytes) &&
            offset < guest.offset + aligned(guest.bytes))
          offset = guest.offset + aligned(guest.bytes);
      }
      if (offset + at(b).bytes > host.bytes) continue;
      at(b).where = graph::space::window;
      at(b).place = r;
      at(b).offset = offset;
      const auto after =
          std::find_if(guests.begin(), guests.end(), [&](int other) { return at(other).offset > offset; });
      guests.insert(after, b);
      return true;
    }
    return false;
  }

  constexpr graph::buffer& at(int b) { return p.buffers[static_cast<std::size_t>(b)]; }
  constexpr std::int64_t bytes(int b) {
    return follower[static_cast<std::size_t>(b)] >= 0 ? at(b).bytes : aligned(at(b).bytes);
  }

  /// Whether two lines of buffers hold something at the same time.
  constexpr bool together(int a, int b) const {
    return lives.born[static_cast<std::size_t>(a)] <= lines.dies[static_cast<std::size_t>(b)] &&
           lives.born[static_cast<std::size_t>(b)] <= lines.dies[static_cast<std::size_t>(a)];
  }

  /// The lowest offset where the chain that starts with `b` is in nobody's way.
  constexpr std::int64_t free_offset(int b) {
    std::int64_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      std::int64_t before = 0;
      for (int part = b; part >= 0; part = follower[static_cast<std::size_t>(part)]) {
        for (int other : placed) {
          const std::int64_t end = at(other).place + bytes(other);
          const std::int64_t start = offset + before;
          if (!together(part, other) || at(other).place >= start + bytes(part) || end <= start) continue;
          offset = aligned(end - before);
          moved = follower[static_cast<std::size_t>(b)] >= 0;
        }
        before += bytes(part);
      }
    }
    return offset;
  }

  constexpr void place(int b) {
    if (place_in_result(b)) return;
    std::int64_t offset = free_offset(b);
    for (int part = b; part >= 0; part = follower[static_cast<std::size_t>(part)]) {
      at(part).place = offset;
      const auto after =
          std::find_if(placed.begin(), placed.end(), [&](int other) { return at(other).place > offset; });
      placed.insert(after, part);
      offset += bytes(part);
      total = std::max(total, offset);
    }
  }
};

/// Offsets for all temporaries, largest first. Returns the size of the arena.
constexpr std::int64_t place_temporaries(graph::program& p) {
  placement places(p);
  graph::list<int> order;
  for (std::size_t b = 0; b < p.buffers.size(); ++b)
    if (inheritance::is_temporary(p, static_cast<int>(b)) && places.lines.root[b] == static_cast<int>(b) &&
        places.lives.born[b] >= 0 && p.buffers[b].follows < 0)
      order.push_back(static_cast<int>(b));
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    const std::int64_t left = p.buffers[static_cast<std::size_t>(a)].bytes;
    const std::int64_t right = p.buffers[static_cast<std::size_t>(b)].bytes;
    return left != right ? left > right : a < b;
  });
  for (int b : order) places.place(b);
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    const graph::buffer& root = p.buffers[static_cast<std::size_t>(places.lines.root[b])];
    if (!inheritance::is_temporary(p, static_cast<int>(b))) continue;
    p.buffers[b].where = root.where;
    p.buffers[b].place = root.place;
    p.buffers[b].offset = root.offset;
  }
  return aligned(places.total);
}

/// A base that does not lie where the result of its update goes is copied there first.
constexpr void count_copied_bases(graph::program& p) {
  for (graph::step& s : p.steps) {
    if (!updates_base(s) || !has_base(s)) continue;
    const auto base = static_cast<std::size_t>(p.accesses[static_cast<std::size_t>(s.first)].buffer);
    const auto to = static_cast<std::size_t>(p.accesses[static_cast<std::size_t>(s.first + s.sources)].buffer);
    const bool in_place = p.buffers[base].where == p.buffers[to].where &&
                          p.buffers[base].place == p.buffers[to].place &&
                          p.buffers[base].offset == p.buffers[to].offset;
    if (!in_place) s.bytes += 2 * p.buffers[to].bytes;
  }
}

}  // namespace tessera::transform
