// SPDX-License-Identifier: Apache-2.0
// Where buffers lie: results in the place of arguments, and what becomes a result in its memory from the start.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/transform/lifetimes.hpp>
#include <tessera/transform/lowering.hpp>
#include <tessera/transform/row_steps.hpp>

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

/// Whether in a row group `from` is read up to step `i` and `to` is used from there on, row by row alike.
constexpr bool changes_over(const graph::program& p, const graph::row_group& group, int i, int from, int to) {
  std::int64_t elements = 0;
  for (int j = group.first; j < group.first + group.count; ++j) {
    const graph::step& s = p.steps[static_cast<std::size_t>(j)];
    for (int a = s.first; a < s.first + s.sources + s.results; ++a) {
      const int b = p.accesses[static_cast<std::size_t>(a)].buffer;
      if (b < 0 || (p.whole_buffer(b) != from && p.whole_buffer(b) != to)) continue;
      const std::int64_t found = row_elements(p, s, a, group.rows, s.sums_rows);
      if (found == 0 || (elements != 0 && found != elements) || (b == from ? j > i : b != to || j < i)) return false;
      elements = found;
    }
  }
  return true;
}

/// Whether the result `to` of step number `i` may take over the memory of `from`, which the step reads.
constexpr bool may_take_over(const graph::program& p, const lifetimes& lives, int i, int from, int to) {
  const graph::step& s = p.steps[static_cast<std::size_t>(i)];
  const graph::buffer& source = p.buffers[static_cast<std::size_t>(from)];
  const graph::buffer& target = p.buffers[static_cast<std::size_t>(to)];
  const graph::row_group* group = lives.group_of(i);
  return lives.dies[static_cast<std::size_t>(from)] == lives.end_of_group(i) && reads_in_place(p, s, from) &&
         (group == nullptr || changes_over(p, *group, i, from, to)) && source.bytes == target.bytes &&
         (s.kind == graph::step_kind::all_reduce || source.varying == target.varying);
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
