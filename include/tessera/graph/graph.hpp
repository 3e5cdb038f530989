// SPDX-License-Identifier: Apache-2.0
// What a trace is: nodes in order of computation, parameters, outputs.
#pragma once

#include <tessera/core/aval.hpp>
#include <tessera/graph/op.hpp>
#include <tessera/sharding/dot_general.hpp>

#include <cstdint>
#include <vector>

namespace tessera::graph {

/// The sequence that graphs are kept in, in the compiler as at run time.
template <class T>
using list = std::vector<T>;

/// One operation. Operands come before their users. `attribute` means, by operation: parameter: its place; iota: the
/// dimension; transpose: the permutation; broadcast: for each operand dimension its place in the result; dot: the four
/// dimension lists; reductions: the set of dimensions; check_range: the bound; all_reduce: set of axes, combine;
/// all_gather, reduce_scatter, local_slice: list of axes, dimension (, combine); all_to_all: list of axes, dimension that
/// is split, dimension that is joined; permute: see forms.hpp.
struct node {
  op code = op::constant;
  aval type{};
  int operands[3] = {-1, -1, -1};
  std::uint64_t attribute[4] = {0, 0, 0, 0};
  double value = 0;

  constexpr int operand_count() const { return about(code).operands; }
  friend constexpr bool operator==(const node&, const node&) = default;
};

/// A result of the program; `alias` is the parameter whose memory it takes over, or -1.
struct output {
  int node = -1;
  int alias = -1;
};

/// A program over one mesh. Before partitioning types are global, after it they are a device's blocks.
struct graph {
  mesh_value mesh{};
  list<node> nodes{};
  list<int> parameters{};
  list<output> outputs{};

  constexpr int size() const { return static_cast<int>(nodes.size()); }
  constexpr const node& at(int i) const { return nodes[static_cast<std::size_t>(i)]; }
  constexpr node& at(int i) { return nodes[static_cast<std::size_t>(i)]; }
  constexpr const aval& type(int i) const { return at(i).type; }

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
};

constexpr sharding::dot_dims dot_dims_of(const node& n) {
  return {n.attribute[0], n.attribute[1], n.attribute[2], n.attribute[3]};
}

}  // namespace tessera::graph
