// SPDX-License-Identifier: Apache-2.0
// Elementwise work that runs with a product: program in, the same program with fused steps made parts of products.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/transform/lifetimes.hpp>

#include <algorithm>
#include <utility>

namespace tessera::transform {

/// Products with fewer elements or shorter rows run alone: there is nothing to gain.
struct product_limits {
  std::int64_t elements = 1 << 12;
  std::int64_t row = 32;
  std::int64_t depth = 8;  ///< of a product that others finish, on fewer threads than they would get alone
  bool in_place = true;    ///< whether products read and write matrices where others need them
};

/// What an operand of a product is made of by one cheap fused step alone is made block by block while the product packs
/// it, and never lies in memory. What fused steps make of the product's result is made block by block while it lies in
/// the cache. Such a step is moved beside its product; the bits are those of running it by itself.
class product_fusion {
 public:
  constexpr product_fusion(graph::program& program, const product_limits& limits)
      : p_(program), limits_(limits), readers_(program.buffers.size(), 0), grouped_(program.steps.size(), 0) {
    for (const graph::row_group& group : p_.groups)
      for (int i = group.first; i < group.first + group.count; ++i) grouped_[static_cast<std::size_t>(i)] = 1;
    for (const graph::step& s : p_.steps)
      for (int a = s.first; a < s.first + s.sources; ++a)
        if (const int b = buffer_of(a); b >= 0) ++readers_[static_cast<std::size_t>(b)];
  }

  constexpr void run() {
    for (int i = 0; i < count(); ++i) {
      if (grouped_[static_cast<std::size_t>(i)] || !takes_parts(at(i))) continue;
      if (const int maker = maker_of_operand(i, 0); maker >= 0) attach_maker(maker, i, graph::product_part::makes_lhs);
      if (const int maker = maker_of_operand(i, 1); maker >= 0) attach_maker(maker, i, graph::product_part::makes_rhs);
      for (int last = i, user = 0; at(i).sizes[2] >= limits_.depth && parts_behind(i, last) < graph::max_finishing &&
                                   (user = finisher(i, last)) >= 0;) {
        move(user, ++last);
        at(last).part = graph::product_part::finishes;
      }
    }
  }

 private:
  /// Instructions of a step that makes an operand: an element may be made once for each thread.
  static constexpr int most_instructions = 12;

  constexpr int count() const { return static_cast<int>(p_.steps.size()); }
  constexpr graph::step& at(int i) { return p_.steps[static_cast<std::size_t>(i)]; }
  constexpr const graph::step& at(int i) const { return p_.steps[static_cast<std::size_t>(i)]; }
  constexpr int buffer_of(int access) const { return p_.accesses[static_cast<std::size_t>(access)].buffer; }
  constexpr const graph::buffer& buffer(int b) const { return p_.buffers[static_cast<std::size_t>(b)]; }

  constexpr bool takes_parts(const graph::step& s) const {
    return s.kind == graph::step_kind::dot && s.axes == 0 && is_floating(buffer(buffer_of(s.first)).type) &&
           !is_sixteen_bit(buffer(buffer_of(s.first + 2)).type) &&
           !graph::lies_scattered(p_.accesses[static_cast<std::size_t>(s.first + 2)]) &&
           s.sizes[0] * s.sizes[1] * s.sizes[3] >= limits_.elements;
  }

  static constexpr bool may_be_part(const graph::step& s) {
    return s.kind == graph::step_kind::fused && s.part == graph::product_part::none;
  }

  static constexpr int parts_behind(int product, int last) { return last - product; }

  constexpr bool reads(const graph::step& s, int b) const {
    for (int a = s.first; a < s.first + s.sources; ++a)
      if (buffer_of(a) == b) return true;
    return false;
  }

  /// Whether two buffers may share memory by now.
  constexpr bool same_memory(int a, int b) const {
    a = p_.whole_buffer(a), b = p_.whole_buffer(b);
    const bool fixed = buffer(a).where == graph::space::result || buffer(a).where == graph::space::argument;
    return a == b || (fixed && buffer(a).where == buffer(b).where && buffer(a).place == buffer(b).place);
  }

  /// Whether buffer `to` lies just where `from` lies, in memory of its own that it takes over.
  constexpr bool lies_where(int to, int from) const {
    return buffer(to).where != graph::space::window && buffer(from).where != graph::space::window &&
           same_memory(to, from) && buffer(to).bytes == buffer(from).bytes;
  }

  /// Whether two steps touch memory that one of them writes, besides buffer `but`.
  constexpr bool in_each_others_way(const graph::step& s, const graph::step& t, int but) const {
    for (int a = s.first; a < s.first + s.sources + s.results; ++a)
      for (int b = t.first; b < t.first + t.sources + t.results; ++b) {
        const int x = buffer_of(a), y = buffer_of(b);
        const bool written = a >= s.first + s.sources || b >= t.first + t.sources;
        if (written && x >= 0 && y >= 0 && x != but && same_memory(x, y)) return true;
      }
    return false;
  }

  /// Whether step `from` may stand at `to`: nothing from there to here touches what it writes or writes what it reads,
  /// and no body of a loop or a branch, and no row group, begins or ends there.
  constexpr bool movable(int from, int to) const {
    const int low = std::min(from, to), high = std::max(from, to);
    for (int i = low; i <= high; ++i)
      if (graph::is_control(at(i).kind) || grouped_[static_cast<std::size_t>(i)] ||
          (i != from && at(i).part != graph::product_part::none))
        return false;
    for (int i = 0; i < low; ++i) {
      if (!graph::is_control(at(i).kind)) continue;
      const auto second = i + 1 + static_cast<int>(at(i).sizes[graph::first_steps]);
      const auto end = i + 1 + static_cast<int>(graph::steps_inside(at(i)));
      if ((low < second && second <= high) || (low < end && end <= high)) return false;
    }
    for (int i = low; i <= high; ++i)
      if (i != from && in_each_others_way(at(i), at(from), -1)) return false;
    return true;
  }

  constexpr void move(int from, int to) {
    const auto begin = p_.steps.begin();
    if (from < to) std::rotate(begin + from, begin + from + 1, begin + to + 1);
    else std::rotate(begin + to, begin + from, begin + from + 1);
  }

  /// Whether the rows of a fused step's domain can be made `columns` long.
  constexpr bool has_rows(const graph::step& s, std::int64_t columns, std::int64_t elements) const {
    std::int64_t all = 1;
    for (int d = 0; d < s.rank; ++d) all *= s.sizes[d];
    const std::int64_t inner = s.rank == 0 ? 1 : s.sizes[s.rank - 1];
    return columns >= limits_.row && all == elements && inner % columns == 0 && (inner == columns || s.rank < max_rank);
  }

  constexpr void cut_rows(graph::step& s, std::int64_t columns) {
    const int d = s.rank - 1;
    if (d < 0 || s.sizes[d] == columns) return;  // one element is one row
    for (int a = s.first; a < s.first + s.sources + s.results; ++a) {
      std::int64_t(&strides)[max_rank] = p_.accesses[static_cast<std::size_t>(a)].strides;
      strides[d + 1] = strides[d];
      strides[d] *= columns;
    }
    s.sizes[d + 1] = columns;
    s.sizes[d] /= columns;
    ++s.rank;
  }

  /// The length of a row of an operand as it is stored.
  static constexpr std::int64_t row_of_operand(const graph::step& s, int operand) {
    if (operand == 0) return s.sizes[4] != 0 ? s.sizes[0] : s.sizes[2];
    return s.sizes[5] != 0 ? s.sizes[2] : s.sizes[1];
  }

  constexpr bool is_cheap(const graph::step& s) const {
    const auto first = static_cast<std::size_t>(p_.codes[static_cast<std::size_t>(s.code)].first);
    return s.transcendentals == 0 && p_.words[first + 2].value <= most_instructions;
  }

  /// The first step of those that run with product `i` so far.
  constexpr int first_of(int i) const { return joined_steps(p_, i).first; }

  /// The step that makes an operand, if it can be part of product `i`, or -1.
  constexpr int maker_of_operand(int i, int operand) const {
    const graph::step& product = at(i);
    const int b = buffer_of(product.first + operand);
    if (graph::lies_scattered(p_.accesses[static_cast<std::size_t>(product.first + operand)])) return -1;
    if (b < 0 || buffer(b).where != graph::space::temporary || buffer(b).follows >= 0 ||
        readers_[static_cast<std::size_t>(b)] != 1)
      return -1;
    for (int j = first_of(i) - 1; j >= 0; --j) {
      const graph::step& s = at(j);
      if (graph::is_control(s.kind)) return -1;
      bool writes = false;
      for (int a = s.first + s.sources; a < s.first + s.sources + s.results; ++a) writes |= buffer_of(a) == b;
      if (!writes) continue;
      const std::int64_t columns = row_of_operand(product, operand);
      const std::int64_t rows = operand == 0 ? product.sizes[0] : product.sizes[1];
      const bool fits = may_be_part(s) && s.results == 1 && s.varying == product.varying && is_cheap(s) &&
                        has_rows(s, columns, rows * product.sizes[2] * product.sizes[3]) &&
                        !in_each_others_way(s, product, b) && movable(j, first_of(i) - 1);
      return fits ? j : -1;
    }
    return -1;
  }

  constexpr void attach_maker(int maker, int product, graph::product_part part) {
    const int operand = part == graph::product_part::makes_lhs ? 0 : 1;
    const std::int64_t columns = row_of_operand(at(product), operand);
    const int place = first_of(product) - 1;
    move(maker, place);
    graph::step& s = at(place);
    s.part = part;
    cut_rows(s, columns);
    graph::buffer& made = p_.buffers[static_cast<std::size_t>(buffer_of(at(product).first + operand))];
    made.where = graph::space::blocks;
    s.bytes -= made.bytes;
    at(product).bytes -= made.bytes;
  }

  /// The next step that can run block by block behind product `i` and what follows it up to `last`, or -1: one that
  /// reads what these make, only at the element that it writes.
  constexpr int finisher(int i, int last) {
    const graph::step& product = at(i);
    const int made = buffer_of(product.first + 2);
    for (int j = last + 1; j < count(); ++j) {
      const graph::step& s = at(j);
      if (graph::is_control(s.kind)) return -1;
      if (!reads(s, made)) continue;
      const bool fits = may_be_part(s) && s.varying == product.varying && reads_in_place(p_, s, made) &&
                        has_rows(s, product.sizes[1], product.sizes[0] * product.sizes[1] * product.sizes[3]) &&
                        only_meets_in_place(i, last, s) && movable(j, last + 1);
      if (!fits) return -1;
      cut_rows(at(j), product.sizes[1]);
      return j;
    }
    return -1;
  }

  /// Whether step `s` touches what the group of product `i` makes or reads only element by element, so that blocks do
  /// not meet.
  constexpr bool only_meets_in_place(int i, int last, const graph::step& s) const {
    for (int g = first_of(i); g <= last; ++g) {
      const graph::step& t = at(g);
      for (int a = s.first; a < s.first + s.sources + s.results; ++a)
        for (int b = t.first; b < t.first + t.sources + t.results; ++b) {
          const int x = buffer_of(a), y = buffer_of(b);
          if (x < 0 || y < 0 || !same_memory(x, y)) continue;
          const bool reads_x = a < s.first + s.sources, reads_y = b < t.first + t.sources;
          if (reads_x && reads_y) continue;
          const bool meets =
              reads_y || !(reads_x ? x == y : lies_where(x, y) && reads(s, y)) || !reads_in_place(p_, s, y);
          if (meets) return false;
        }
    }
    return true;
  }

  graph::program& p_;
  product_limits limits_;
  graph::list<int> readers_;   ///< by buffer
  graph::list<char> grouped_;  ///< by step: it belongs to a row group, where it stays
};

}  // namespace tessera::transform
