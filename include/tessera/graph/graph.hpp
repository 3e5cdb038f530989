// SPDX-License-Identifier: Apache-2.0
// What a trace is: nodes in order of computation, parameters, outputs.
#pragma once

#include <tessera/core/aval.hpp>
#include <tessera/core/error.hpp>
#include <tessera/core/messages.hpp>
#include <tessera/graph/list.hpp>
#include <tessera/graph/op.hpp>
#include <tessera/sharding/dot_general.hpp>

#include <cstdint>
#include <string_view>

namespace tessera {
struct trace_handle;
}

namespace tessera::graph {

/// What a checkpoint policy is asked about: a value that the gradient of a region could use. `name` is that of
/// checkpoint_name, where the value is one.
struct residual {
  op code = op::constant;
  aval type{};
  bool batched = false;  ///< of a contraction: whether it has batch dimensions
  std::string_view name{};
};

/// What becomes of a value between the forward and the backward part of a region: it is computed again, or it waits in
/// the device's memory or in the host's.
enum class keep : std::uint8_t { recompute, save, offload };

using policy_function = keep (*)(const residual&);

/// Where an operation was called: a line, and a file by its number in the outermost graph; line 0 of an unknown place.
/// It is one word, as nodes are copied often, and nodes are equal wherever they were written.
struct source_line {
  std::uint32_t bits = 0;

  constexpr source_line() = default;
  constexpr source_line(std::uint32_t line, std::size_t file)
      : bits((line & 0x3fffffU) << 10 | (static_cast<std::uint32_t>(file) & 0x3ffU)) {}
  constexpr int line() const { return static_cast<int>(bits >> 10); }
  constexpr std::size_t file() const { return bits & 0x3ffU; }
  friend constexpr bool operator==(const source_line&, const source_line&) { return true; }
};

/// Characters a name may have at most.
inline constexpr std::size_t max_value_name = 31;

constexpr void set_name(std::uint64_t (&words)[4], std::string_view name) {
  for (std::uint64_t& word : words) word = 0;
  for (std::size_t i = 0; i < name.size(); ++i)
    words[i / 8] |= static_cast<std::uint64_t>(static_cast<unsigned char>(name[i])) << (8 * (i % 8));
}

/// One operation. Operands come before their users. `attribute` means, by operation: parameter: its place; iota: the
/// dimension; transpose: the permutation; broadcast: for each operand dimension its place in the result; dot: the four
/// dimension lists; reductions: the set of dimensions; slice and update_slice, windows and overlap_add: up to
/// four dimensions, see layout.hpp and windows.hpp;
/// dynamic_slice and
/// dynamic_update: the dimension; gather and scatter: see gather.hpp; check_range: the bound, negative if one may count
/// from the end; all_reduce: set of axes, combine; all_gather, reduce_scatter, local_slice: list of axes, dimension (,
/// combine); all_to_all: list of axes, dimension that is split, dimension that is joined; permute: see forms.hpp;
/// control and result: see control.hpp; name: its characters.
struct node {
  op code = op::constant;
  aval type{};
  int operands[3] = {-1, -1, -1};
  std::uint64_t attribute[4] = {0, 0, 0, 0};
  double value = 0;
  source_line written{};
  policy_function policy = nullptr;  ///< of a call, while it is traced; null: whatever the gradient finds best

  constexpr int operand_count() const { return op_table[static_cast<int>(code)].operands; }
  friend constexpr bool operator==(const node&, const node&) = default;
};

/// A result of the program; `alias` is the parameter whose memory it takes over, or -1.
struct output {
  int node = -1;
  int alias = -1;
};

/// A value from outside that a body uses: the node of the graph around it, and the parameter that stands for it.
struct capture {
  int outer = -1;
  int parameter = -1;
};

struct graph;

/// A variable from around a body that the body gave another value, and the node that it stood for.
struct assignment {
  trace_handle* variable = nullptr;
  graph* owner = nullptr;
  int id = -1;
};

/// What shows only when a step is traced to be wrong with it: a message, the argument it is about, one or two types to
/// show.
struct trace_fault {
  message what = message::none;
  int argument = -1;
  aval type{};
  aval beside{};
  op code = op::constant;                ///< what cannot be done, where the message is about an operation
  std::uint64_t name[4] = {0, 0, 0, 0};  ///< a value's name, where the message is about one; see set_name
};

/// A program over one mesh. Before partitioning types are global, after it they are a device's blocks. Control nodes
/// run bodies, which are graphs over the same mesh. `fault` is what the user asked for and cannot have where only the
/// trace shows it.
struct graph {
  mesh_value mesh{};
  list<node> nodes{};
  list<int> parameters{};
  list<output> outputs{};
  list<graph> bodies{};
  trace_fault fault{};  ///< the first one
  std::uint64_t missing_name[4] = {
      0, 0, 0, 0};                     ///< of the outermost graph: what a policy lists and no value carries, or nothing
  list<const char*> files{};           ///< of the outermost graph: those that nodes were written in
  const void* changed_copy = nullptr;  ///< of the outermost graph: the argument's variable whose copy was changed first

  // Of a body that is being traced, and of the graph around all bodies.
  graph* parent = nullptr;      ///< the graph whose node will run this body
  graph* innermost = nullptr;   ///< of the outermost graph: the body that is being traced, or null
  list<capture> captures{};     ///< parameters behind those that the control node gives
  list<assignment> assigned{};  ///< variables from around it that it changed
  bool backward = false;        ///< whether it is the body of a custom gradient

  constexpr int size() const { return static_cast<int>(nodes.count); }
  constexpr const node& at(int i) const { return nodes.first[i]; }
  constexpr node& at(int i) { return nodes.first[i]; }
  constexpr const aval& type(int i) const { return nodes.first[i].type; }

  constexpr int add(const node& n) {
    nodes.push_back(n);
    return size() - 1;
  }
  constexpr int add_parameter(const aval& type) {
    node n;
    n.code = op::parameter;
    n.type = type;
    n.attribute[0] = parameters.size();
    parameters.push_back(size());
    return add(n);
  }

  constexpr void report(const trace_fault& found) {
    if (fault.what == message::none) fault = found;
  }
  constexpr void note_missing_name(std::string_view name) {
    if (missing_name[0] == 0) set_name(missing_name, name);
  }
  constexpr void note_changed_copy(const void* home) {
    if (changed_copy == nullptr) changed_copy = home;
  }

  constexpr graph& outermost() {
    graph* g = this;
    while (g->parent != nullptr) g = g->parent;
    return *g;
  }

  /// Where an operation traced now is written: the innermost body, or the outermost graph outside all bodies.
  constexpr graph& active() {
    graph& outer = outermost();
    return outer.innermost != nullptr ? *outer.innermost : outer;
  }

  /// Whether `owner` is this graph or one around it; only then its nodes mean something here.
  constexpr bool sees(const graph* owner) const {
    for (const graph* g = this; g != nullptr; g = g->parent)
      if (g == owner) return true;
    return false;
  }

  /// The node here for node `id` of `owner`, which is this graph or one around it: a parameter that captures it.
  constexpr int import_node(const graph* owner, int id) {
    if (owner == this) return id;
    const int outer = parent->import_node(owner, id);
    for (const capture& c : captures)
      if (c.outer == outer) return c.parameter;
    captures.push_back({outer, add_parameter(parent->type(outer))});
    return captures.back().parameter;
  }
};

/// The name of a value, from the words it is kept in.
struct value_name {
  char chars[max_value_name + 1]{};
  std::size_t size = 0;

  constexpr value_name() = default;
  constexpr explicit value_name(const std::uint64_t (&words)[4]) {
    for (; size < max_value_name; ++size) {
      const auto c = static_cast<char>(words[size / 8] >> (8 * (size % 8)) & 255U);
      if (c == 0) break;
      chars[size] = c;
    }
  }
  constexpr std::string_view view() const { return {chars, size}; }
};

/// How partial results of a reduction combine.
constexpr combine combine_of(op reduction) {
  switch (reduction) {
    case op::reduce_max: return combine::max;
    case op::reduce_min: return combine::min;
    case op::reduce_prod: return combine::prod;
    default: return combine::sum;
  }
}

constexpr sharding::dot_dims dot_dims_of(const node& n) {
  return {n.attribute[0], n.attribute[1], n.attribute[2], n.attribute[3]};
}

}  // namespace tessera::graph
