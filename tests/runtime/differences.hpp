// SPDX-License-Identifier: Apache-2.0
// Whether gradients, first and second, agree with central differences in float64.
#pragma once

#include "runtime/support.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>

namespace runtime_test {

/// With h = eps^(1/3) a central difference of a function whose values and third derivatives are about `scale` is off by
/// eps / h + h^2 = 2 eps^(2/3) of it; 100 leaves room for third derivatives (at most 60 here) and for sums of terms.
inline const double step = std::cbrt(std::numeric_limits<double>::epsilon());
inline const double tolerance = 100 * step * step;

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

inline void draw_parameters(question& q, const op_case& c, unsigned seed) {
  std::mt19937 bits(seed);
  for (std::size_t p = 0; p < q.g.parameters.size(); ++p)
    q.numbers.push_back(
        draw(p < c.inputs.size() ? c.inputs[p] : input{{}, -1, 1}, q.g.type(q.g.parameters[p]).size(), bits));
}

/// Distinct numbers without ties, wherever a case asks for whole ones: an extremum has no derivative where two are
/// equal.
inline void make_distinct(op_case& c) {
  for (input& i : c.inputs)
    if (is_floating(i.type)) i.whole = false;
}

inline question first_derivative(const op_case& c) {
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
inline question second_derivative(const op_case& c) {
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

inline void check_gradients(question q) {
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

inline void check_all(std::vector<op_case> cases) {
  for (op_case& c : cases) {
    if (c.name == about(op::stop_gradient).name) continue;  // it differs from the difference on purpose
    make_distinct(c);
    INFO(c.name);
    check_gradients(first_derivative(c));
    check_gradients(second_derivative(c));
  }
}

/// The gradient of sum(f(x)) of a scalar operation at one place.
inline std::vector<double> gradient_at(const std::function<value(std::span<const value>)>& f,
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

}  // namespace runtime_test
