// SPDX-License-Identifier: Apache-2.0
// Small graphs for tests of passes, and a check that a plan never reads memory that was overwritten.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/graph/value.hpp>
#include <tessera/sharding/matmul.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

/// The same function in the compiler and at run time.
#define CHECK_BOTH(...)         \
  do {                          \
    static_assert(__VA_ARGS__); \
    CHECK(__VA_ARGS__);         \
  } while (false)

namespace support {

namespace ts = tessera;
using ts::graph::graph;
using ts::graph::op;
using ts::graph::value;

constexpr ts::mesh_value one{};
constexpr ts::mesh_value data8{1, {"data"}, {8}};
constexpr ts::mesh_value grid{2, {"data", "model"}, {2, 4}};
constexpr ts::mesh_value thin{2, {"data", "model"}, {4, 1}};

constexpr ts::axis_list data = ts::axis_append(0, 0);
constexpr ts::axis_list model = ts::axis_append(0, 1);
constexpr ts::axis_list data_model = ts::axis_append(data, 1);

constexpr ts::aval array(std::initializer_list<ts::dim> dims, ts::dtype type = ts::f32) {
  ts::aval a = ts::scalar_aval(type);
  for (const ts::dim& d : dims) a.dims[a.rank++] = d;
  return a;
}

constexpr graph over(const ts::mesh_value& mesh) {
  graph g;
  g.mesh = mesh;
  return g;
}

constexpr value parameter(graph& g, const ts::aval& type) { return {&g, g.add_parameter(type)}; }

constexpr void result(graph& g, value v, int alias = -1) { g.outputs.push_back({v.id, alias}); }

constexpr ts::sharding::dim_list dims(std::initializer_list<int> list) {
  ts::sharding::dim_list all = 0;
  for (int d : list) all = ts::sharding::dim_append(all, d);
  return all;
}

/// The product of two matrices, cut as `type` says.
constexpr value product(value a, value b, const ts::aval& type) {
  return ts::graph::dot(a, b, ts::sharding::matmul_dims(a.type().rank, b.type().rank), type);
}

/// The product cut as its operands say.
constexpr value product(value a, value b) {
  return product(a, b, ts::graph::expect(ts::sharding::matmul(a.type(), b.type(), nullptr, a.mesh())));
}

constexpr int count(const graph& g, op code) {
  int n = 0;
  for (const ts::graph::node& node : g.nodes) n += node.code == code;
  return n;
}

constexpr int count(const ts::graph::program& p, ts::graph::step_kind kind) {
  int n = 0;
  for (const ts::graph::step& s : p.steps) n += s.kind == kind;
  return n;
}

/// Whether a source of a step is read only where the step writes the same element.
constexpr bool element_by_element(const ts::graph::program& p, const ts::graph::step& s, int source, int written) {
  using ts::graph::step_kind;
  if (s.kind == step_kind::all_reduce) return source == written;
  if (s.kind == step_kind::softmax || s.kind == step_kind::log_softmax) return true;
  if (s.kind != step_kind::fused) return false;
  const ts::graph::access& read = p.accesses[static_cast<std::size_t>(s.first + source)];
  std::int64_t stride = 1;
  for (int d = s.rank - 1; d >= 0; stride *= s.sizes[d--])
    if (read.strides[d] != stride) return false;
  return read.slice_axes == 0;
}

/// What memory holds while a plan's steps are walked through.
struct memory_walk {
  const ts::graph::program& p;
  std::vector<char> valid;    ///< by buffer: what was written there is still there
  std::vector<char> written;  ///< by buffer
  bool argument_written = false;

  constexpr explicit memory_walk(const ts::graph::program& program)
      : p(program), valid(program.buffers.size(), 0), written(program.buffers.size(), 0) {
    for (const ts::graph::interface_value& a : p.arguments) valid[static_cast<std::size_t>(a.buffer)] = 1;
    for (std::size_t b = 0; b < valid.size(); ++b)
      if (p.buffers[b].where == ts::graph::space::constant) valid[b] = 1;
  }

  constexpr const ts::graph::buffer& at(int b) const { return p.buffers[static_cast<std::size_t>(b)]; }
  constexpr int buffer(int access) const { return p.accesses[static_cast<std::size_t>(access)].buffer; }

  /// Where a buffer lies: in the arena or in the memory of an argument or result, from byte `first` on.
  struct range {
    ts::graph::space where;
    std::int64_t owner = 0;
    std::int64_t first = 0;
    std::int64_t bytes = 0;
  };
  constexpr range range_of(int b) const {
    range found{at(b).where, at(b).place, 0, at(b).bytes};
    for (; at(b).where == ts::graph::space::window; b = static_cast<int>(at(b).place)) found.first += at(b).offset;
    found.where = at(b).where;
    found.owner = at(b).place;
    if (found.where == ts::graph::space::temporary) found.first += std::exchange(found.owner, 0);
    return found;
  }
  constexpr bool is_part_of(int b, int whole) const {
    while (b != whole && at(b).where == ts::graph::space::window) b = static_cast<int>(at(b).place);
    return b == whole;
  }

  constexpr bool share_memory(int a, int b) const {
    const range x = range_of(a);
    const range y = range_of(b);
    if (x.where == ts::graph::space::blocks) return a == b;
    if (x.where != y.where || x.owner != y.owner) return false;
    return x.first < y.first + y.bytes && y.first < x.first + x.bytes;
  }

  constexpr std::string_view read(const ts::graph::step& s) const {
    for (int i = 0; i < s.sources; ++i)
      if (const int b = buffer(s.first + i); b >= 0 && at(b).bytes > 0 && !valid[static_cast<std::size_t>(b)])
        return "a step reads what was never written or is overwritten";
    return "";
  }

  constexpr std::string_view check_in_place(const ts::graph::step& s, int result) const {
    const int to = buffer(s.first + s.sources + result);
    for (int other = 0; other < result; ++other)
      if (share_memory(to, buffer(s.first + s.sources + other))) return "two results of a step share memory";
    for (int i = 0; i < s.sources; ++i) {
      const int from = buffer(s.first + i);
      if (from < 0 || !share_memory(from, to)) continue;
      if (range_of(from).first != range_of(to).first || at(from).bytes != at(to).bytes)
        return "a step writes into part of what it reads";
      if (!element_by_element(p, s, i, result)) return "a step overwrites what it still reads";
    }
    return "";
  }

  constexpr void write(int to) {
    for (std::size_t b = 0; b < valid.size(); ++b)
      if (is_part_of(to, static_cast<int>(b))) valid[b] = written[b] = 1;
      else if (share_memory(static_cast<int>(b), to)) valid[b] = 0;
    if (range_of(to).where == ts::graph::space::argument) argument_written = true;
  }

  /// Steps that run as one read until the last of them is done.
  constexpr std::string_view check_joined(const ts::graph::step& s) const {
    const auto here = static_cast<int>(&s - p.steps.begin());
    const ts::graph::step_range joined = ts::graph::joined_steps(p, here);
    for (int i = joined.first; i <= joined.last; ++i) {
      const ts::graph::step& other = p.steps[static_cast<std::size_t>(i)];
      for (int r = 0; i != here && r < s.results; ++r)
        for (int a = 0; a < other.sources; ++a) {
          const int to = buffer(s.first + s.sources + r), from = buffer(other.first + a);
          if (from >= 0 && from != to && share_memory(from, to))
            return "a step writes what a step that runs with it reads";
        }
    }
    return "";
  }

  constexpr std::string_view run(const ts::graph::step& s) {
    if (const std::string_view fault = check_joined(s); !fault.empty()) return fault;
    if (const std::string_view fault = read(s); !fault.empty()) return fault;
    if (s.kind == ts::graph::step_kind::check_range && argument_written) return "an argument is written before a check";
    for (int r = 0; r < s.results; ++r)
      if (const std::string_view fault = check_in_place(s, r); !fault.empty()) return fault;
    for (int r = 0; r < s.results; ++r) write(buffer(s.first + s.sources + r));
    return "";
  }

  constexpr bool delivered(const ts::graph::interface_value& r) const {
    for (std::size_t b = 0; b < written.size(); ++b) {
      const bool there = r.alias < 0
                             ? static_cast<int>(b) == r.buffer
                             : p.buffers[b].where == ts::graph::space::argument && p.buffers[b].place == r.alias;
      if (there && written[b] && valid[b]) return true;
    }
    return false;
  }
};

/// What is wrong with a plan's memory, or nothing.
constexpr std::string_view memory_fault(const ts::graph::program& p) {
  memory_walk walk(p);
  for (const ts::graph::buffer& b : p.buffers)
    if (b.where == ts::graph::space::temporary &&
        (b.place < 0 || b.place % 64 != 0 || b.place + b.bytes > p.temporary_bytes))
      return "a temporary lies outside the arena or off its alignment";
  for (const ts::graph::step& s : p.steps)
    if (const std::string_view fault = walk.run(s); !fault.empty()) return fault;
  for (const ts::graph::interface_value& r : p.results)
    if (!walk.delivered(r)) return "a result is not delivered";
  return "";
}

}  // namespace support
