// SPDX-License-Identifier: Apache-2.0
#include <tessera/transform/simplify.hpp>

#include "transform/support.hpp"

#include <tessera/transform/grad.hpp>

#include <array>

using namespace support;

namespace {

constexpr ts::aval row = array({{8, 0}, {3, 0}});

/// Rows first, ..., first + count - 1.
constexpr ts::sharding::slices rows(std::int64_t first, std::int64_t count, std::int64_t stride = 1) {
  ts::sharding::slices s = ts::sharding::everything(row);
  s.of[0] = {first, count, stride};
  return s;
}

constexpr value zeros(graph& g) { return ts::graph::full(&g, row, 0); }

/// The gradient of a weighted sum of the parts of a split in three, or of what is left of them.
constexpr graph gradient_of_split(bool all) {
  graph g = over(one);
  const value x = parameter(g, row);
  value loss = ts::graph::sum(ts::graph::slice(x, rows(0, 2)) * 2.0);
  loss = loss + ts::graph::sum(ts::graph::slice(x, rows(5, 3)) * 4.0);
  if (all) loss = loss + ts::graph::sum(ts::graph::slice(x, rows(2, 3)) * 3.0);
  const int wrt[] = {x.id};
  result(g, value{&g, ts::transform::gradients(g, loss.id, wrt)[0]});
  return ts::transform::simplify(g);
}

constexpr bool split_has_a_joined_gradient() {
  const graph g = gradient_of_split(true);
  return count(g, op::update_slice) == 3 && count(g, op::add) == 0 && count(g, op::empty) == 1;
}

constexpr bool gaps_stay_zero() {
  const graph g = gradient_of_split(false);
  return count(g, op::update_slice) == 2 && count(g, op::add) == 0 && count(g, op::empty) == 0;
}

/// What a slice of an updated array becomes: the piece, a slice of the base, or a slice of both.
constexpr graph sliced(std::int64_t first, std::int64_t count_of, std::int64_t stride = 1) {
  graph g = over(one);
  const value x = parameter(g, row);
  const value piece = parameter(g, array({{3, 0}, {3, 0}}));
  const value updated = ts::graph::update_slice(x, piece, rows(2, 3));
  result(g, ts::graph::slice(updated, rows(first, count_of, stride)));
  return ts::transform::simplify(g);
}

constexpr bool slices_skip_updates() {
  const graph same = sliced(2, 3);
  const graph elsewhere = sliced(5, 2);
  const graph backwards = sliced(1, 2, -1);
  const graph both = sliced(4, 2);
  return same.outputs[0].node == same.parameters[1] && count(elsewhere, op::update_slice) == 0 &&
         count(backwards, op::update_slice) == 0 && count(both, op::update_slice) == 1;
}

constexpr bool overlapping_sums_stay() {
  graph g = over(one);
  const value a = parameter(g, array({{3, 0}, {3, 0}}));
  const value overlapping =
      ts::graph::update_slice(zeros(g), a, rows(0, 3)) + ts::graph::update_slice(zeros(g), a, rows(2, 3));
  const value other_base = ts::graph::update_slice(ts::graph::full(&g, row, 1), a, rows(0, 3)) +
                           ts::graph::update_slice(zeros(g), a, rows(4, 3));
  result(g, overlapping);
  result(g, other_base);
  return count(ts::transform::simplify(g), op::add) == 2;
}

}  // namespace

TEST_CASE("The gradient of a split is its parts' cotangents side by side, without zeros and sums") {
  CHECK_BOTH(split_has_a_joined_gradient());
}
TEST_CASE("Elements that no part has keep a gradient of zero") { CHECK_BOTH(gaps_stay_zero()); }
TEST_CASE("A slice looks through updates that are elsewhere, and finds a piece that was written") {
  CHECK_BOTH(slices_skip_updates());
}
TEST_CASE("Pieces that overlap, or stand in anything but zeros, are still added") {
  CHECK_BOTH(overlapping_sums_stay());
}
