// SPDX-License-Identifier: Apache-2.0
#include <tessera/graph/op.hpp>

#include <catch2/catch.hpp>

#include <iterator>

namespace ts = tessera;
using ts::graph::op;
using ts::graph::op_kind;

TEST_CASE("Every operation has its row: its name, its kind and how many operands it takes") {
  STATIC_REQUIRE(ts::graph::about(op::parameter).name == "parameter" &&
                 ts::graph::about(op::local_slice).name == "local_slice");
  STATIC_REQUIRE(std::size(ts::graph::op_table) == static_cast<std::size_t>(op::constrain) + 1);
  STATIC_REQUIRE(ts::graph::about(op::select).operands == 3 && ts::graph::about(op::dot).operands == 2 &&
                 ts::graph::about(op::tanh).operands == 1 && ts::graph::about(op::iota).operands == 0);
  STATIC_REQUIRE(ts::graph::is(op::softmax, op_kind::rows) && ts::graph::is(op::all_reduce, op_kind::collective) &&
                 ts::graph::is(op::reshape, op_kind::view) && !ts::graph::is(op::reshape, op_kind::movement));
  STATIC_REQUIRE(ts::graph::about(op::exp).transcendental && !ts::graph::about(op::sqrt).transcendental);
}

constexpr bool predicates_are_elementwise() {
  for (const ts::graph::op_row& row : ts::graph::op_table) {
    const auto code = static_cast<op>(&row - ts::graph::op_table);
    if (ts::graph::is_predicate(code) && row.kind != op_kind::elementwise) return false;
    if (row.operands > 3 || row.operands < 0 || row.name.empty()) return false;
    const bool alone = row.kind == op_kind::source || code == op::no_arguments || code == op::axis_index;
    if (alone != (row.operands == 0)) return false;
  }
  return true;
}

TEST_CASE(
    "Sources, the empty list and a place in a mesh take no operands, all others do; what gives bool is elementwise") {
  static_assert(predicates_are_elementwise());
  CHECK(predicates_are_elementwise());
}
