// SPDX-License-Identifier: Apache-2.0
// Operations that walk along one dimension: gradients by differences, one answer on every mesh, corners.
#include "runtime/differences.hpp"
#include "runtime/mesh_independence.hpp"

#include <tessera/ops/sort.hpp>

using namespace runtime_test;
using graph::running;

namespace {

const double infinity = std::numeric_limits<double>::infinity();

op_case running_case(running kind, std::vector<std::int64_t> extents, int axis, bool reverse) {
  return {"running " + std::to_string(static_cast<int>(kind)) + " along " + std::to_string(axis) +
              (reverse ? " from the end" : ""),
          {kind == running::logsumexp ? input{std::move(extents)} : input{std::move(extents), -3, 4, true}},
          [=](std::span<const value> x, const spec_value*) {
            if (x[0].type().dims[axis].axes != 0) throw std::logic_error("the dimension is cut");
            return graph::cumulative(x[0], kind, axis, reverse);
          },
          false,
          kind == running::logsumexp};
}

op_case recurrence_case(std::vector<std::int64_t> extents, int axis, bool reverse, bool shifted) {
  return {std::string("recurrence ") + (reverse ? "from the end " : "") + (shifted ? "shifted" : ""),
          {{extents, -3, 4, true}, {extents, -3, 4, true}},
          [=](std::span<const value> x, const spec_value*) {
            if (x[0].type().dims[axis].axes != 0 || !x[0].type().same_spec(x[1].type()))
              throw std::logic_error("the dimension is cut");
            return graph::recurrence(x[0], x[1], axis, reverse, shifted);
          }};
}

std::vector<op_case> cases(std::int64_t u) {
  std::vector<op_case> all;
  for (bool reverse : {false, true}) {
    for (running kind : {running::sum, running::prod, running::max, running::min, running::logsumexp, running::lag}) {
      all.push_back(running_case(kind, {u, 3}, 1, reverse));
      all.push_back(running_case(kind, {4, u}, 0, reverse));
    }
    for (bool shifted : {false, true}) all.push_back(recurrence_case({u, 4}, 1, reverse, shifted));
  }
  return all;
}

template <bool Descending>
op_case sort_case(std::vector<std::int64_t> extents, int axis, std::int64_t count) {
  return {"sort along " + std::to_string(axis),
          {{std::move(extents), -3, 4, true}},
          [=](std::span<const value> x, const spec_value*) {
            if (x[0].type().dims[axis].axes != 0) throw std::logic_error("the dimension is cut");
            return tessera::ops::in_order(x[0], graph::argsort(x[0], axis, count, Descending), axis);
          }};
}

std::vector<op_case> sort_cases(std::int64_t u) {
  return {sort_case<false>({u, 5}, 1, 5), sort_case<true>({u, 5}, 1, 2), sort_case<true>({4, u}, 0, 4)};
}

/// The gradient of sum(ct y) for y a running value of one row.
std::vector<double> gradient_of_running(running kind, std::vector<double> x, std::vector<double> ct,
                                        bool reverse = false) {
  const auto f = [=](std::span<const value> v) { return graph::cumulative(v[0], kind, 0, reverse) * v[1]; };
  const std::size_t n = x.size();
  std::vector<double> both = gradient_at(f, {std::move(x), std::move(ct)});
  both.resize(n);
  return both;
}

using numbers = std::vector<double>;

}  // namespace

TEST_CASE("gradients of running values and recurrences agree with differences") { check_all(cases(2)); }

TEST_CASE("running values and recurrences give the one-device answer on every mesh") { check_meshes(cases(8), 40); }

TEST_CASE("gradients of sorted elements go back to where they stood") { check_all(sort_cases(2)); }
TEST_CASE("sorted elements are the one-device ones on every mesh") { check_meshes(sort_cases(8), 40); }

TEST_CASE("the gradient of a running product is right where elements are zero") {
  // y = (a, a b, a b c) with weights 1, 10, 100: da = 1 + 10 b + 100 b c, db = 10 a + 100 a c, dc = 100 a b.
  CHECK(gradient_of_running(running::prod, {2, 3, 4}, {1, 10, 100}) == numbers{1231, 820, 600});
  CHECK(gradient_of_running(running::prod, {2, 0, 4}, {1, 10, 100}) == numbers{1, 820, 0});
  CHECK(gradient_of_running(running::prod, {0, 0, 4}, {1, 10, 100}) == numbers{1, 0, 0});
  CHECK(gradient_of_running(running::prod, {0, 3, 0}, {1, 10, 100}) == numbers{31, 0, 0});
  CHECK(gradient_of_running(running::prod, {4, 0, 2}, {100, 10, 1}, true) == numbers{0, 820, 1});
}

TEST_CASE("the gradient of a running extremum goes to the element that was reached first") {
  CHECK(gradient_of_running(running::max, {1, 3, 3, 2, 4}, {1, 10, 100, 1000, 10000}) == numbers{1, 1110, 0, 0, 10000});
  CHECK(gradient_of_running(running::min, {1, 3, 0, 0}, {1, 10, 100, 1000}) == numbers{11, 0, 1100, 0});
  CHECK(gradient_of_running(running::max, {2, 3, 3, 1}, {1, 10, 100, 1000}, true) == numbers{0, 0, 111, 1000});
}

TEST_CASE("a running logsumexp of -inf has gradient zero until there is something, and nothing overflows") {
  CHECK(gradient_of_running(running::logsumexp, {-infinity, -infinity, 3}, {1, 10, 100}) == numbers{0, 0, 100});
  const numbers g = gradient_of_running(running::logsumexp, {1000, 1000}, {1, 10});
  CHECK(g[0] == Approx(6).epsilon(1e-12));
  CHECK(g[1] == Approx(5).epsilon(1e-12));
}
