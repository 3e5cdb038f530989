// SPDX-License-Identifier: Apache-2.0
// Products that read and write matrices where others need them: program in, the same program without the copies
// between.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/transform/lifetimes.hpp>
#include <tessera/transform/matrix_access.hpp>

#include <algorithm>

namespace tessera::transform {

/// Copies that only bring matrices side by side (the heads of attention), or into another order, go away: products, and
/// elementwise steps, read what was copied, or an earlier copy; products write where the copy would have gone,
/// transposed by changing sides, and straight into the array that several pieces make up. No bit changes.
class products_in_place {
 public:
  constexpr explicit products_in_place(graph::program& program) : p_(program) {}

  constexpr void run() {
    bool any = false;
    for (const graph::step& s : p_.steps) any |= is_product(s);
    if (!any) return;
    look();
    for (int i = count() - 1; i >= 0; --i)
      if (is_copy(at(i))) read_in_place(i);
    for (int i = count() - 1; i >= 0; --i)
      if (is_copy(at(i))) read_earlier_copy(i);
    for (int i = count() - 1; i >= 0; --i)
      if (is_copy(at(i))) write_in_place(i);
    for (int i = count() - 1; i >= 0; --i)
      if (at(i).kind == graph::step_kind::update_slice && at(i).sources == 1) write_pieces(i);
    if (!changed_) return;
    drop_unused_codes();
    for (std::size_t b = 0; b < p_.buffers.size(); ++b)
      if (uses_[b].writers + uses_[b].readers == 0 && !uses_[b].part &&
          buffer(static_cast<int>(b)).where == graph::space::temporary)
        p_.buffers[b].bytes = 0;  // nobody has to do with it any more
  }

 private:
  /// Bytes of a matrix that is read scattered: in a larger one, rows far apart get into each other's way in caches.
  static constexpr std::int64_t largest_scattered = std::int64_t{1} << 17;

  /// So many steps after the last that needs a copy it is still read rather than made again.
  static constexpr int soon = 16;

  /// Who uses a buffer.
  struct usage {
    int writers = 0, readers = 0;
    int writer = -1, reader = -1;  ///< the last of them
    bool part = false;             ///< a window of it exists, or another buffer's place depends on it
  };

  constexpr int count() const { return static_cast<int>(p_.steps.size()); }
  constexpr graph::step& at(int i) { return p_.steps[static_cast<std::size_t>(i)]; }
  constexpr const graph::step& at(int i) const { return p_.steps[static_cast<std::size_t>(i)]; }
  constexpr graph::access& access(int a) { return p_.accesses[static_cast<std::size_t>(a)]; }
  constexpr const graph::access& access(int a) const { return p_.accesses[static_cast<std::size_t>(a)]; }
  constexpr const graph::buffer& buffer(int b) const { return p_.buffers[static_cast<std::size_t>(b)]; }
  constexpr usage& of(int b) { return uses_[static_cast<std::size_t>(b)]; }
  constexpr int word(const graph::step& s, int i) const {
    return p_.words[static_cast<std::size_t>(p_.codes[static_cast<std::size_t>(s.code)].first + i)].value;
  }

  /// Whether step `s` is a product of whole float32 or float64 matrices.
  constexpr bool is_product(const graph::step& s) const {
    if (s.kind != graph::step_kind::dot || s.axes != 0 || s.sources != 2 || s.results != 1) return false;
    for (int a = s.first; a < s.first + 3; ++a)
      if (const dtype type = buffer(access(a).buffer).type; type != dtype::f32 && type != dtype::f64) return false;
    return true;
  }

  /// Whether a fused step only copies elements of one array each.
  constexpr bool is_copy(const graph::step& s) const {
    if (s.kind != graph::step_kind::fused || word(s, 2) != s.results) return false;
    for (int i = 0; i < word(s, 2); ++i) {
      const int instruction = graph::instruction_word(s.sources, i);
      if (word(s, instruction) != static_cast<int>(graph::op::copy) || word(s, instruction + 3) >= s.sources)
        return false;
    }
    return true;
  }

  /// The access that result `r` of a copy is a copy of.
  constexpr int copied_by(const graph::step& s, int r) const {
    const int made = word(s, graph::result_word(s.sources, s.results, r) + 1) - s.sources;
    return s.first + word(s, graph::instruction_word(s.sources, made) + 3);
  }

  static constexpr placed_domain domain_of_access(const graph::step& s, const graph::access& a) {
    placed_domain made;
    made.rank = s.rank;
    made.offset = a.offset;
    for (int d = 0; d < s.rank; ++d) made.extents[d] = s.sizes[d], made.strides[d] = a.strides[d];
    return made;
  }

  constexpr void look() {
    uses_ = graph::list<usage>(p_.buffers.size(), usage{});
    body_ = graph::list<int>(p_.steps.size(), -1);
    for (std::size_t b = 0; b < p_.buffers.size(); ++b) {
      const int whole = p_.whole_buffer(static_cast<int>(b));
      if (whole != static_cast<int>(b)) of(whole).part = true;
      if (p_.buffers[b].follows >= 0) of(p_.buffers[b].follows).part = uses_[b].part = true;
    }
    for (int i = 0; i < count(); ++i) {
      const graph::step& s = at(i);
      for (int a = s.first; a < s.first + s.sources + s.results; ++a) {
        if (access(a).buffer < 0) continue;
        usage& use = of(access(a).buffer);
        if (a < s.first + s.sources) {
          if (use.readers == 0 || use.reader != i) ++use.readers;
          use.reader = i;
        } else {
          ++use.writers;
          use.writer = i;
        }
      }
      if (!graph::is_control(s.kind)) continue;
      const auto second = i + 1 + static_cast<int>(s.sizes[graph::first_steps]);
      const auto last = i + static_cast<int>(graph::steps_inside(s));
      for (int k = i + 1; k <= last; ++k) body_[static_cast<std::size_t>(k)] = 2 * i + (k < second ? 0 : 1);
    }
  }

  /// Whether a buffer is nothing but what one step hands to others.
  constexpr bool is_handed_on(int b) {
    return b >= 0 && buffer(b).where == graph::space::temporary && !of(b).part && of(b).writers == 1;
  }

  /// Whether two buffers may share memory by now.
  constexpr bool same_memory(int a, int b) const {
    a = p_.whole_buffer(a), b = p_.whole_buffer(b);
    const bool fixed = buffer(a).where == graph::space::result || buffer(a).where == graph::space::argument;
    return a == b || (fixed && buffer(a).where == buffer(b).where && buffer(a).place == buffer(b).place);
  }

  /// Whether a step from `first` to `last` writes, or (`any`) has to do with, the memory of buffer `b`.
  constexpr bool is_touched(int b, int first, int last, bool any) const {
    for (int i = first; i <= last; ++i) {
      const graph::step& s = at(i);
      for (int a = any ? s.first : s.first + s.sources; a < s.first + s.sources + s.results; ++a)
        if (access(a).buffer >= 0 && same_memory(access(a).buffer, b)) return true;
    }
    return false;
  }

  constexpr bool same_body(int i, int j) const {
    return body_[static_cast<std::size_t>(i)] == body_[static_cast<std::size_t>(j)] && at(i).varying == at(j).varying;
  }

  constexpr void remove(int i) {
    for (int k = 0; k < i; ++k) {
      graph::step& s = at(k);
      if (!graph::is_control(s.kind) || k + graph::steps_inside(s) < i) continue;
      --s.sizes[k + 1 + s.sizes[graph::first_steps] > i ? graph::first_steps : graph::second_steps];
    }
    for (std::size_t k = static_cast<std::size_t>(i); k + 1 < p_.steps.size(); ++k) p_.steps[k] = p_.steps[k + 1];
    p_.steps.resize(p_.steps.size() - 1);
    changed_ = true;
    look();
  }

  /// Makes access `a` of step `j` read what access `source` of the copy `i` reads; `way` is how. False where it cannot.
  constexpr bool redirect(int i, int source, int j, int a, graph::access& way) const {
    const graph::step& reader = at(j);
    const placed_domain copied = domain_of_access(at(i), access(source));
    way = access(a);
    way.buffer = access(source).buffer;
    if (is_product(reader)) {
      const int place = a - reader.first;
      const matrix_shape shape(reader, place);
      if (shape.rows * shape.columns * info(buffer(way.buffer).type).size > largest_scattered) return false;
      return set_walk(reader, carried_over(walk_of(reader, access(a), place), copied), place, way);
    }
    if (reader.kind != graph::step_kind::fused || reader.rank == 0) return false;
    walk over;
    over.offset = access(a).offset;
    for (int d = 0; d < reader.rank; ++d) over.add(reader.sizes[d], access(a).strides[d], d);
    const walk found = carried_over(over, copied);
    if (!found.possible || over.rank != reader.rank || found.rank != reader.rank) return false;
    for (int d = 0; d < reader.rank; ++d) {
      if (found.role[d] != d) return false;
      way.strides[d] = found.stride[d];
    }
    way.offset = found.offset;
    return std::min<std::int64_t>(way.strides[reader.rank - 1], 2) ==
           std::min<std::int64_t>(access(a).strides[reader.rank - 1], 2);
  }

  /// Lets all who read what step `i` copies read the original, and removes the step.
  constexpr void read_in_place(int i) {
    const graph::step s = at(i);
    graph::list<int> places;
    graph::list<graph::access> ways;
    for (int r = 0; r < s.results; ++r) {
      const int made = access(s.first + s.sources + r).buffer, source = copied_by(s, r);
      const int from = access(source).buffer;
      if (!is_handed_on(made) || of(made).readers == 0 || from < 0 || access(source).slice_axes != 0) return;
      for (int j = i + 1; j <= of(made).reader; ++j)
        for (int a = at(j).first; a < at(j).first + at(j).sources; ++a) {
          if (access(a).buffer != made) continue;
          graph::access way;
          if (access(a).slice_axes != 0 || !same_body(i, j) || is_touched(from, i, j, false) ||
              !redirect(i, source, j, a, way))
            return;
          places.push_back(a);
          ways.push_back(way);
        }
    }
    for (std::size_t k = 0; k < places.size(); ++k) access(places[k]) = ways[k];
    remove(i);
  }

  /// Whether results `q` of copy `h` and `r` of copy `i` are the same elements in the same order.
  constexpr bool are_alike(int h, int q, int i, int r) const {
    const graph::step &one = at(h), &other = at(i);
    const auto alike = [&](const graph::access& x, const graph::access& y) {
      bool same = x.offset == y.offset && x.slice_axes == 0 && y.slice_axes == 0;
      for (int d = 0; d < one.rank; ++d) same &= x.strides[d] == y.strides[d];
      return same;
    };
    bool same = one.rank == other.rank;
    for (int d = 0; d < one.rank; ++d) same &= one.sizes[d] == other.sizes[d];
    const graph::access &from = access(copied_by(one, q)), &source = access(copied_by(other, r));
    const graph::access &made = access(one.first + one.sources + q), &to = access(other.first + other.sources + r);
    return same && from.buffer >= 0 && from.buffer == source.buffer && alike(from, source) && alike(made, to) &&
           buffer(made.buffer).bytes == buffer(to.buffer).bytes;
  }

  /// The result of a copy before step `i` that is what its result `r` is, and is needed until shortly before it; or -1.
  constexpr int earlier_copy(int i, int r) {
    for (int h = i - 1; h >= 0; --h) {
      if (!is_copy(at(h)) || !same_body(h, i)) continue;
      for (int q = 0; q < at(h).results; ++q) {
        const int made = access(at(h).first + at(h).sources + q).buffer;
        if (are_alike(h, q, i, r) && is_handed_on(made) && of(made).reader + soon >= i &&
            !is_touched(access(copied_by(at(i), r)).buffer, h, i - 1, false))
          return made;
      }
    }
    return -1;
  }

  /// Lets all who read what step `i` copies read copies that exist already, and removes the step.
  constexpr void read_earlier_copy(int i) {
    const graph::step s = at(i);
    graph::list<int> earlier;
    for (int r = 0; r < s.results; ++r) {
      earlier.push_back(is_handed_on(access(s.first + s.sources + r).buffer) ? earlier_copy(i, r) : -1);
      if (earlier.back() < 0) return;
    }
    for (int r = 0; r < s.results; ++r)
      for (int j = i + 1; j < count(); ++j)
        for (int a = at(j).first; a < at(j).first + at(j).sources; ++a)
          if (access(a).buffer == access(s.first + s.sources + r).buffer)
            access(a).buffer = earlier[static_cast<std::size_t>(r)];
    remove(i);
  }

  /// The place of elements of an array in what a copy makes of it, if it only puts them in another order.
  static constexpr placed_domain order_of_copy(const graph::step& s, const graph::access& from) {
    placed_domain made;
    int order[max_rank]{};  // by stride, the largest first
    for (int d = 0; d < s.rank; ++d) {
      int place = d;
      for (; place > 0 && from.strides[order[place - 1]] < from.strides[d]; --place) order[place] = order[place - 1];
      order[place] = d;
    }
    std::int64_t row_major[max_rank]{};
    std::int64_t size = 1, expected = 1;
    for (int d = s.rank - 1; d >= 0; size *= s.sizes[d--]) row_major[d] = size;
    for (int k = s.rank - 1; k >= 0; expected *= s.sizes[order[k--]])
      if (from.strides[order[k]] != expected) return {};
    for (int k = 0; k < s.rank; ++k) made.extents[k] = s.sizes[order[k]], made.strides[k] = row_major[order[k]];
    made.rank = from.offset == 0 ? s.rank : 0;
    return made;
  }

  /// The same product with sides exchanged, which makes the transposed result; no sum changes.
  constexpr void exchange_sides(graph::step& s) {
    std::swap(access(s.first), access(s.first + 1));
    std::swap(s.sizes[0], s.sizes[1]);
    const bool left = s.sizes[5] == 0, right = s.sizes[4] == 0;
    s.sizes[4] = left, s.sizes[5] = right;
    s.sizes[6] = 1 - s.sizes[6];
  }

  /// Makes product `j` write by `by`, with sides exchanged if it is to write rows as columns.
  constexpr bool write_by(int j, const placed_domain& to, int target) {
    graph::step& s = at(j);
    const int result = s.first + 2;
    graph::access way{target};
    const walk by = carried_over(walk_of(s, access(result), 2), to);
    if (set_walk(s, by, 2, way)) {
      access(result) = way;
      return true;
    }
    walk turned = by;
    for (int d = 0; d < turned.rank; ++d)
      if (turned.role[d] != of_group) turned.role[d] = turned.role[d] == of_row ? of_column : of_row;
    graph::step other = s;
    std::swap(other.sizes[0], other.sizes[1]);
    if (!set_walk(other, turned, 2, way)) return false;
    exchange_sides(s);
    access(result) = way;
    return true;
  }

  /// Lets the product whose result step `i` alone reads, and puts into another order, write it in that order.
  constexpr void write_in_place(int i) {
    const graph::step s = at(i);
    if (s.sources != 1 || s.results != 1) return;
    const int from = access(s.first).buffer, to = access(s.first + 1).buffer;
    if (from < 0 || !is_handed_on(from) || of(from).readers != 1 || access(s.first).slice_axes != 0) return;
    const int j = of(from).writer;
    const placed_domain order = order_of_copy(s, access(s.first));
    const bool fits = order.rank > 0 && is_product(at(j)) && same_body(i, j) && !is_touched(to, j, i - 1, true) &&
                      buffer(from).bytes == buffer(to).bytes;
    if (fits && write_by(j, order, to)) remove(i);
  }

  /// The updates that put pieces into one array, from the first one, which has no base, on.
  constexpr graph::list<int> updates_from(int i) {
    graph::list<int> chain(1, i);
    for (;;) {
      const int made = access(at(chain.back()).first + at(chain.back()).sources).buffer;
      if (!is_handed_on(made) || of(made).readers != 1) return chain;
      const graph::step& next = at(of(made).reader);
      if (next.kind != graph::step_kind::update_slice || next.sources != 2 || access(next.first).buffer != made)
        return chain;
      chain.push_back(of(made).reader);
    }
  }

  /// Whether updates put pieces, each made by a product, side by side into rows of one array.
  constexpr bool are_columns(const graph::list<int>& chain) {
    graph::list<std::int64_t> begin, end;
    const int whole = access(at(chain.back()).first + at(chain.back()).sources).buffer;
    for (int i : chain) {
      const graph::step& s = at(i);
      const graph::access& piece = access(s.first + s.sources - 1);
      const graph::access& to = access(s.first + s.sources);
      if (s.rank != 2 || piece.buffer < 0 || !is_handed_on(piece.buffer) || of(piece.buffer).readers != 1) return false;
      const int j = of(piece.buffer).writer;
      if (!is_product(at(j)) || j > chain[0] || !same_body(j, chain.back()) || !same_body(i, chain.back()) ||
          is_touched(whole, j, chain[0] - 1, true))
        return false;
      const std::int64_t row = access(at(chain[0]).first + 1).strides[0];
      if (piece.offset != 0 || piece.slice_axes != 0 || piece.strides[0] != s.sizes[1] || piece.strides[1] != 1 ||
          to.strides[0] != row || to.strides[1] != 1 || to.offset + s.sizes[1] > row)
        return false;
      for (std::size_t k = 0; k < begin.size(); ++k)
        if (to.offset < end[k] && begin[k] < to.offset + s.sizes[1]) return false;
      begin.push_back(to.offset), end.push_back(to.offset + s.sizes[1]);
    }
    return true;
  }

  /// Lets products write their results into the array that updates from step `i` on make of them.
  constexpr void write_pieces(int i) {
    const graph::list<int> chain = updates_from(i);
    if (!are_columns(chain)) return;
    const int whole = access(at(chain.back()).first + at(chain.back()).sources).buffer;
    const graph::list<graph::step> steps = p_.steps;
    const graph::list<graph::access> accesses = p_.accesses;
    for (int u : chain) {
      const graph::step& s = at(u);
      const int product = of(access(s.first + s.sources - 1).buffer).writer;
      if (write_by(product, domain_of_access(s, access(s.first + s.sources)), whole)) continue;
      p_.steps = steps;
      p_.accesses = accesses;
      return;
    }
    for (std::size_t k = chain.size(); k-- > 0;) remove(chain[k]);
  }

  /// Instruction lists that no step has any more are not compiled.
  constexpr void drop_unused_codes() {
    graph::list<int> renamed(p_.codes.size(), -1);
    graph::list<graph::code_span> codes;
    graph::list<graph::word> words;
    for (graph::step& s : p_.steps) {
      if (s.code < 0) continue;
      int& name = renamed[static_cast<std::size_t>(s.code)];
      if (name < 0) {
        const graph::code_span span = p_.codes[static_cast<std::size_t>(s.code)];
        name = static_cast<int>(codes.size());
        codes.push_back({static_cast<int>(words.size()), span.count});
        for (int i = 0; i < span.count; ++i) words.push_back(p_.words[static_cast<std::size_t>(span.first + i)]);
      }
      s.code = name;
    }
    p_.codes = codes;
    p_.words = words;
  }

  graph::program& p_;
  graph::list<usage> uses_{};  ///< by buffer
  graph::list<int> body_{};    ///< by step: a number for the body it belongs to
  bool changed_ = false;
};

}  // namespace tessera::transform
