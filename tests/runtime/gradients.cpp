// SPDX-License-Identifier: Apache-2.0
// Gradients of every operation, first and second, agree with central differences in float64.
#include "runtime/differences.hpp"

using namespace runtime_test;

namespace {

const double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("gradients of unary operations agree with differences") { check_all(unary_cases(2)); }
TEST_CASE("gradients of binary operations agree with differences for every pattern of broadcasting") {
  check_all(binary_cases(2));
}
TEST_CASE("gradients of choices and conversions agree with differences") { check_all(choice_cases(2)); }
TEST_CASE("gradients of reductions agree with differences over any dimensions") { check_all(reduce_cases(2)); }
TEST_CASE("gradients of contractions agree with differences") { check_all(dot_cases(2)); }
TEST_CASE("gradients of movements agree with differences") { check_all(movement_cases(2)); }
TEST_CASE("gradients of softmax and log_softmax agree with differences") { check_all(softmax_cases(2)); }

TEST_CASE("a gradient through float32 is that of float64 rounded") {
  const auto f = [](std::span<const value> x) {
    return graph::convert(graph::unary(op::square, graph::convert(x[0], dtype::f32)), dtype::f64);
  };
  CHECK(gradient_at(f, {{1.5, 3}}) == std::vector<double>{3, 6});
  const auto narrow = [](std::span<const value> x) {
    return graph::convert(graph::convert(x[0] * 0.1, dtype::f32), dtype::f64);
  };
  const std::vector<double> g = gradient_at(narrow, {{2.0}});
  CHECK(std::abs(g[0] - 0.1) < 1e-16);
}

TEST_CASE("nothing flows through integers, comparisons and stop_gradient") {
  const auto through_int = [](std::span<const value> x) {
    return graph::convert(graph::convert(x[0], dtype::i32), dtype::f64);
  };
  CHECK(gradient_at(through_int, {{1.5, 2.5}}) == std::vector<double>{0, 0});
  const auto stopped = [](std::span<const value> x) { return graph::unary(op::stop_gradient, x[0]) * x[0]; };
  CHECK(gradient_at(stopped, {{1.5, 2.5}}) == std::vector<double>{1.5, 2.5});
}

TEST_CASE("gradients at corners are shared or zero, never NaN") {
  const auto unary = [](op code) { return [code](std::span<const value> x) { return graph::unary(code, x[0]); }; };
  const auto binary = [](op code) {
    return [code](std::span<const value> x) { return graph::binary(code, x[0], x[1]); };
  };
  CHECK(gradient_at(unary(op::relu), {{-1, 0, 2}}) == std::vector<double>{0, 0, 1});
  CHECK(gradient_at(unary(op::abs), {{-1, 0, 2}}) == std::vector<double>{-1, 0, 1});
  CHECK(gradient_at(binary(op::max), {{1, 2, 3}, {1, 3, 2}}) == std::vector<double>{0.5, 0, 1, 0.5, 1, 0});
  CHECK(gradient_at(binary(op::min), {{1, 2, 3}, {1, 3, 2}}) == std::vector<double>{0.5, 1, 0, 0.5, 0, 1});
  CHECK(gradient_at(binary(op::pow), {{0, 0, 0}, {0, 1, 2}}) == std::vector<double>{0, 1, 0, 0, 0, 0});
  CHECK(gradient_at(unary(op::logistic), {{-infinity, infinity}}) == std::vector<double>{0, 0});
  CHECK(gradient_at(unary(op::tanh), {{-infinity, infinity}}) == std::vector<double>{0, 0});
}

TEST_CASE("all elements that attain an extremum share its gradient") {
  const auto largest = [](std::span<const value> x) { return graph::reduce(op::reduce_max, x[0], 1, false); };
  const auto smallest = [](std::span<const value> x) { return graph::reduce(op::reduce_min, x[0], 1, true); };
  CHECK(gradient_at(largest, {{4, 1, 4, 4, 4}}) == std::vector<double>{0.25, 0, 0.25, 0.25, 0.25});
  CHECK(gradient_at(smallest, {{1, 4, 1}}) == std::vector<double>{0.5, 0, 0.5});
}

TEST_CASE("softmax of a row of -inf is zero and so is its gradient") {
  question q;
  const aval type = array_type(dtype::f64, {2, 4});
  const value x{&q.g, q.g.add_parameter(type)};
  const value weights{&q.g, q.g.add_parameter(type)};
  const value y = ops::write_softmax<op::softmax, -1>(std::array{x}, type);
  const int wrt[] = {x.id};
  const value loss = graph::sum(y * weights);
  q.g.outputs = {{y.id, -1}, {transform::gradients(q.g, loss.id, wrt)[0], -1}};
  q.numbers = {{0.5, -1, 2, 0, -infinity, -infinity, -infinity, -infinity}, {1, 2, 3, 4, 5, 6, 7, 8}};
  const auto answer = q.ask();
  const double total = std::exp(0.5) + std::exp(-1.0) + std::exp(2.0) + 1;
  for (std::size_t i = 0; i < 4; ++i) CHECK(answer[0][i] == Approx(std::exp(q.numbers[0][i]) / total).epsilon(1e-14));
  for (std::size_t i = 4; i < 8; ++i) {
    CHECK(answer[0][i] == 0);
    CHECK(answer[1][i] == 0);
  }
}
