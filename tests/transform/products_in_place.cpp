// SPDX-License-Identifier: Apache-2.0
// Which copies go away because products read and write matrices where others need them.
#include <tessera/transform/plan.hpp>

#include "transform/support.hpp"

namespace ts = tessera;
using namespace support;
using ts::graph::program, ts::graph::step_kind;

template <class F>
constexpr program lowered(F write, bool in_place = true) {
  graph g = over(one);
  write(g);
  return ts::transform::lower(g, ts::transform::grouping::by_rows, {.in_place = in_place});
}

constexpr value turned(value x) { return ts::graph::transpose(x, dims({1, 0})); }

constexpr void transposed_result(graph& g) {
  const value x = parameter(g, array({{40, 0}, {24, 0}})), y = parameter(g, array({{24, 0}, {56, 0}}));
  result(g, turned(product(x, y)));
}

TEST_CASE("A product whose transpose is wanted makes that") {
  CHECK_BOTH(count(lowered(transposed_result, false), step_kind::fused) == 1);
  CHECK_BOTH(lowered(transposed_result).steps.size() == 1);
  CHECK_BOTH(lowered(transposed_result).steps[0].sizes[0] == 56);
  CHECK_BOTH(lowered(transposed_result).temporary_bytes == 0);
  CHECK_BOTH(memory_fault(lowered(transposed_result)) == "");
}

/// The product itself is a result too.
constexpr void both_wanted(graph& g) {
  const value x = parameter(g, array({{40, 0}, {24, 0}})), y = parameter(g, array({{24, 0}, {56, 0}}));
  const value made = product(x, y);
  result(g, turned(made));
  result(g, made);
}

TEST_CASE("A product that is wanted as it is too is copied") {
  CHECK_BOTH(count(lowered(both_wanted), step_kind::fused) == 1);
  CHECK_BOTH(memory_fault(lowered(both_wanted)) == "");
}

/// Two of four heads of [tokens, heads, features] against the others.
constexpr void heads_of_tokens(graph& g) {
  const value x = parameter(g, array({{32, 0}, {4, 0}, {16, 0}}));
  const value doubled = x + x;
  const value heads = ts::graph::transpose(doubled, dims({1, 0, 2}));
  result(g,
         ts::graph::dot(heads, heads, {dims({2}), dims({2}), dims({0}), dims({0})}, array({{4, 0}, {32, 0}, {32, 0}})));
  result(g, doubled);
}

TEST_CASE("Heads are read among the others") {
  CHECK_BOTH(count(lowered(heads_of_tokens, false), step_kind::fused) == 2);
  CHECK_BOTH(count(lowered(heads_of_tokens), step_kind::fused) == 1);
  CHECK_BOTH(memory_fault(lowered(heads_of_tokens)) == "");
}

/// The array that is read in place is written over before the product needs it.
constexpr void overwritten(graph& g) {
  const value x = parameter(g, array({{32, 0}, {4, 0}, {16, 0}}));
  const value heads = ts::graph::transpose(x, dims({1, 0, 2}));
  const value made =
      ts::graph::dot(heads, heads, {dims({2}), dims({2}), dims({0}), dims({0})}, array({{4, 0}, {32, 0}, {32, 0}}));
  result(g, x * 2.0, 0);
  result(g, made);
}

TEST_CASE("What a product reads in place of a copy stays as it is until then") {
  CHECK_BOTH(memory_fault(lowered(overwritten)) == "");
}
