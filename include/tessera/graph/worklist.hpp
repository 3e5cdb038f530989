// SPDX-License-Identifier: Apache-2.0
// Nodes that a pass still has to look at, each once.
#pragma once

#include <tessera/graph/list.hpp>

#include <cstddef>
#include <utility>

namespace tessera::graph {

/// The newest node first; a node that was pushed before, or is marked from the start, is not taken again.
struct worklist {
  list<char> seen;
  list<int> waiting{};

  constexpr explicit worklist(list<char> marked) : seen(std::move(marked)) {}

  constexpr void push(int node) {
    if (seen[static_cast<std::size_t>(node)]) return;
    seen[static_cast<std::size_t>(node)] = 1;
    waiting.push_back(node);
  }
  constexpr int pop() {
    const int node = waiting.back();
    waiting.pop_back();
    return node;
  }
  constexpr bool empty() const { return waiting.empty(); }
};

}  // namespace tessera::graph
