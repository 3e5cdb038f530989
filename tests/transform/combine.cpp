// SPDX-License-Identifier: Apache-2.0
#include <tessera/transform/combine.hpp>
#include <tessera/transform/partition.hpp>

#include "transform/support.hpp"

namespace ts = tessera;
using namespace support;

/// How many all-reduces there are, and into how many groups they are put.
struct grouping {
  int members = 0;
  int groups = 0;
  friend constexpr bool operator==(const grouping&, const grouping&) = default;
};

constexpr grouping grouping_of(const graph& g) {
  const graph marked = ts::transform::combine_all_reduces(ts::transform::partition(g));
  grouping found;
  std::vector<std::uint64_t> seen;
  for (const ts::graph::node& n : marked.nodes) {
    if (n.code != op::all_reduce) continue;
    ++found.members;
    if (std::find(seen.begin(), seen.end(), n.attribute[3]) == seen.end()) seen.push_back(n.attribute[3]);
  }
  found.groups = static_cast<int>(seen.size());
  return found;
}

constexpr value total(value x, op code = op::reduce_sum) {
  return ts::graph::reduce(code, x, ts::sharding::all_dims(x.type().rank), false);
}

constexpr grouping independent() {
  graph g = over(data8);
  for (std::int64_t n : {16, 32, 64}) result(g, total(parameter(g, array({{n, data}}))));
  return grouping_of(g);
}

constexpr grouping dependent() {
  graph g = over(data8);
  const value x = parameter(g, array({{16, data}}));
  result(g, total(x * total(x)));
  return grouping_of(g);
}

constexpr grouping of_different_axes() {
  graph g = over(grid);
  result(g, total(parameter(g, array({{16, data}}))));
  result(g, total(parameter(g, array({{16, model}}))));
  result(g, total(parameter(g, array({{16, data_model}}))));
  return grouping_of(g);
}

constexpr grouping of_different_kinds() {
  graph g = over(data8);
  const value x = parameter(g, array({{16, data}}));
  const value y = parameter(g, array({{16, data}}, ts::f64));
  result(g, total(x));
  result(g, total(x, op::reduce_max));
  result(g, total(y));
  return grouping_of(g);
}

TEST_CASE("All-reduces that need not wait for each other become one") { CHECK_BOTH(independent() == grouping{3, 1}); }

TEST_CASE("All-reduces that wait for each other, or over other axes, of another kind or dtype, stay apart") {
  CHECK_BOTH(dependent() == grouping{2, 2});
  CHECK_BOTH(of_different_axes() == grouping{3, 3});
  CHECK_BOTH(of_different_kinds() == grouping{3, 3});
}

/// Two chains a1 -> b1 and a2 -> b2: joining a1 with b2 and a2 with b1 would be a ring.
constexpr grouping chains() {
  graph g = over(data8);
  for (std::int64_t n : {16, 32}) {
    const value x = parameter(g, array({{n, data}}));
    result(g, total(ts::graph::unary(op::exp, x * total(x))));
  }
  return grouping_of(g);
}

/// a, then b that waits for a; c is free of both, d waits for c.
constexpr bool groups_wait_in_no_ring() {
  graph g = over(data8);
  const value x = parameter(g, array({{16, data}}));
  const value y = parameter(g, array({{32, data}}));
  const value c = total(y);
  const value d = total(y * c);
  const value a = total(x);
  result(g, total(x * a));
  result(g, total(x * d));
  const graph marked = ts::transform::combine_all_reduces(ts::transform::partition(g));
  // With groups contracted, every edge must go from a lower to a higher depth: relax until nothing changes.
  std::vector<int> depth(marked.nodes.size(), 0);
  const auto at = [&](int i) -> int& { return depth[static_cast<std::size_t>(i)]; };
  for (int round = 0; round <= marked.size(); ++round) {
    bool changed = false;
    for (int i = 0; i < marked.size(); ++i) {
      const ts::graph::node& n = marked.at(i);
      int wanted = at(i);
      for (int k = 0; k < n.operand_count(); ++k) wanted = std::max(wanted, at(n.operands[k]) + 1);
      if (n.code == op::all_reduce)
        for (int j = 0; j < marked.size(); ++j)
          if (marked.at(j).code == op::all_reduce && marked.at(j).attribute[3] == n.attribute[3])
            wanted = std::max(wanted, at(j));
      if (wanted != at(i)) at(i) = wanted, changed = true;
    }
    if (!changed) return true;
  }
  return false;
}

TEST_CASE("Groups never wait for each other in a ring") {
  CHECK_BOTH(chains() == grouping{4, 2});
  CHECK_BOTH(groups_wait_in_no_ring());
}
