// SPDX-License-Identifier: Apache-2.0
// Operations that walk along one dimension: gradients by differences, one answer on every mesh, corners.
#include "runtime/along_axis_cases.hpp"
#include "runtime/differences.hpp"
#include "runtime/mesh_independence.hpp"

using namespace runtime_test;
using graph::running;

namespace {

const double infinity = std::numeric_limits<double>::infinity();

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

TEST_CASE("gradients of running values and recurrences agree with differences") { check_all(running_cases(2)); }

TEST_CASE("running values and recurrences give the one-device answer on every mesh") {
  check_meshes(running_cases(8), 40);
}

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
