// SPDX-License-Identifier: Apache-2.0
// Gradients of every operation, first and second, agree with central differences in float64.
#include "support.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>

using namespace runtime_test;

namespace {

/// With h = eps^(1/3) a central difference of a function whose values and third derivatives are about `scale` is off by
/// eps / h + h^2 = 2 eps^(2/3) of it; 100 leaves room for third derivatives (at most 60 here) and for sums of terms.
const double step = std::cbrt(std::numeric_limits<double>::epsilon());
const double tolerance = 100 * step * step;

/// A graph whose first output is a scalar and whose others are its gradients with respect to the parameters `wrt`.
struct question {
  graph::graph g{};
  std::vector<int> wrt{};
  std::vector<std::vector<double>> numbers{};  ///< of each parameter

  std::vector<std::vector<double>> ask() const {
    std::vector<bytes> inputs;
    for (std::size_t p = 0; p < numbers.size(); ++p)
      inputs.push_back(to_bytes(numbers[p], g.type(g.parameters[p]).type));
    std::vector<std::vector<double>> outputs;
    for (const bytes& out : runtime::evaluate(g, inputs)) outputs.push_back(to_numbers(out, dtype::f64));
    return outputs;
  }

  /// (f(x + h) - f(x - h)) / 2h for each element of each parameter.
  std::vector<std::vector<double>> differences() {
    question only_value{g, wrt, numbers};
    only_value.g.outputs.resize(1);
    std::vector<std::vector<double>> result;
    for (int w : wrt) {
      const auto p = static_cast<std::size_t>(g.at(w).attribute[0]);
      result.emplace_back();
      for (double& x : only_value.numbers[p]) {
        const double at = x;
        const double h = step * std::max(1.0, std::abs(at));
        x = at + h;
        const double above = only_value.ask()[0][0];
        x = at - h;
        const double below = only_value.ask()[0][0];
        x = at;
        result.back().push_back((above - below) / (2 * h));
      }
    }
    return result;
  }
};

void draw_parameters(question& q, const op_case& c, unsigned seed) {
  std::mt19937 bits(seed);
  for (std::size_t p = 0; p < q.g.parameters.size(); ++p)
    q.numbers.push_back(
        draw(p < c.inputs.size() ? c.inputs[p] : input{{}, -1, 1}, q.g.type(q.g.parameters[p]).size(), bits));
}

/// Distinct numbers without ties, wherever a case asks for whole ones: an extremum has no derivative where two are
/// equal.
void make_distinct(op_case& c) {
  for (input& i : c.inputs)
    if (is_floating(i.type)) i.whole = false;
}

question first_derivative(const op_case& c) {
  question q;
  std::vector<aval> types;
  for (const input& i : c.inputs) types.push_back(array_type(i.type, i.extents));
  const std::vector<value> inputs = add_inputs(q.g, types);
  const differentiated d = add_gradients(q.g, c.build(inputs, nullptr), inputs);
  q.wrt = d.wrt;
  q.g.outputs.push_back({d.loss.id, -1});
  for (int id : d.gradients) q.g.outputs.push_back({id, -1});
  draw_parameters(q, c, 1);
  return q;
}

/// The scalar is now the sum over all gradients, each weighted by numbers of its own.
question second_derivative(const op_case& c) {
  question q;
  std::vector<aval> types;
  for (const input& i : c.inputs) types.push_back(array_type(i.type, i.extents));
  const std::vector<value> inputs = add_inputs(q.g, types);
  const differentiated d = add_gradients(q.g, c.build(inputs, nullptr), inputs);
  value total = graph::constant(&q.g, dtype::f64, 0);
  for (std::size_t i = 0; i < d.wrt.size(); ++i) {
    const value weights{&q.g, q.g.add_parameter(q.g.type(d.wrt[i]))};
    total = total + graph::sum(value{&q.g, d.gradients[i]} * weights);
  }
  q.wrt = d.wrt;
  q.g.outputs.push_back({total.id, -1});
  for (int id : transform::gradients(q.g, total.id, d.wrt)) q.g.outputs.push_back({id, -1});
  draw_parameters(q, c, 2);
  return q;
}

void check_gradients(question q) {
  const std::vector<std::vector<double>> found = q.ask();
  const std::vector<std::vector<double>> expected = q.differences();
  double scale = std::max(1.0, std::abs(found[0][0]));
  for (const auto& part : expected)
    for (double x : part) scale = std::max(scale, std::abs(x));
  REQUIRE(found.size() == expected.size() + 1);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    REQUIRE(found[i + 1].size() == expected[i].size());
    for (std::size_t j = 0; j < expected[i].size(); ++j) {
      INFO("operand " << i << ", element " << j << ": gradient " << found[i + 1][j] << ", difference "
                      << expected[i][j]);
      CHECK(std::abs(found[i + 1][j] - expected[i][j]) <= tolerance * scale);
    }
  }
}

void check_all(std::vector<op_case> cases) {
  for (op_case& c : cases) {
    if (c.name == about(op::stop_gradient).name) continue;  // it differs from the difference on purpose
    make_distinct(c);
    INFO(c.name);
    check_gradients(first_derivative(c));
    check_gradients(second_derivative(c));
  }
}

/// The gradient of sum(f(x)) of a scalar operation at one place.
std::vector<double> gradient_at(const std::function<value(std::span<const value>)>& f,
                                std::vector<std::vector<double>> x) {
  question q;
  std::vector<aval> types;
  for (const auto& part : x) types.push_back(array_type(dtype::f64, {static_cast<std::int64_t>(part.size())}));
  const std::vector<value> inputs = add_inputs(q.g, types);
  const value loss = graph::sum(f(inputs));
  std::vector<int> wrt;
  for (const value& v : inputs) wrt.push_back(v.id);
  for (int id : transform::gradients(q.g, loss.id, wrt)) q.g.outputs.push_back({id, -1});
  q.numbers = std::move(x);
  std::vector<double> all;
  for (const auto& part : q.ask()) all.insert(all.end(), part.begin(), part.end());
  return all;
}

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
