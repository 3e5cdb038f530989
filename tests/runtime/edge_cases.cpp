// SPDX-License-Identifier: Apache-2.0
// Cases of reference/edge_cases.jsonl about masks, losses, empty arrays and choices, named as there.
#include "runtime/differences.hpp"

#include <tessera/ops/statistics.hpp>
#include <tessera/optim/losses.hpp>

using namespace runtime_test;

namespace {

const double infinity = std::numeric_limits<double>::infinity();

/// All outputs of a graph for these numbers.
std::vector<std::vector<double>> run(const graph::graph& g, const std::vector<std::vector<double>>& inputs) {
  std::vector<bytes> in;
  for (std::size_t i = 0; i < inputs.size(); ++i) in.push_back(to_bytes(inputs[i], g.type(g.parameters[i]).type));
  std::vector<std::vector<double>> answers;
  const std::vector<bytes> out = runtime::evaluate(g, in);
  for (std::size_t i = 0; i < out.size(); ++i) answers.push_back(to_numbers(out[i], g.type(g.outputs[i].node).type));
  return answers;
}

using numbers = std::vector<double>;

}  // namespace

TEST_CASE("softmax-fully-masked-row: zeros, gradient zero, and attention to nothing is zero") {
  for (const bool whole_rows : {true, false}) {  // the kernel for rows, and the one in steps
    graph::graph g;
    const aval type = array_type(dtype::f32, {2, 4});
    const value x{&g, g.add_parameter(type)};
    const value seen{&g, g.add_parameter(array_type(dtype::bool_, {2, 4}))};
    const value values{&g, g.add_parameter(array_type(dtype::f32, {4, 3}))};
    const value upstream{&g, g.add_parameter(array_type(dtype::f32, {2, 3}))};
    const value masked = graph::select(seen, x, graph::number_like(x, -infinity));
    const value p = whole_rows ? ops::write_softmax<op::softmax, -1>(std::array{masked}, type)
                               : ops::softmax_in_steps(masked, 1, false);
    const sharding::dot_dims dims{sharding::dim_append(0, 1), sharding::dim_append(0, 0), 0, 0};
    const value attended = graph::dot(p, values, dims, array_type(dtype::f32, {2, 3}));
    const int wrt[] = {x.id, values.id};
    g.outputs = {{p.id, -1}, {attended.id, -1}};
    for (int id : transform::gradients(g, graph::sum(attended * upstream).id, wrt)) g.outputs.push_back({id, -1});
    const auto answer = run(g, {{0.5, -1, 2, 0, 3, -7, 0, 1e30},
                                {1, 1, 1, 1, 0, 0, 0, 0},
                                {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
                                {1, -1, 2, 5, 1e10, -3}});
    const double row[] = {0.158445, 0.035354, 0.710100, 0.096102};
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(answer[0][i] == Approx(row[i]).margin(1e-6));
      CHECK(answer[0][4 + i] == 0);
      CHECK(answer[2][4 + i] == 0);
    }
    CHECK(numbers(answer[1].begin() + 3, answer[1].end()) == numbers{0, 0, 0});
    for (double d : answer[3]) CHECK(std::abs(d) < 3);
  }
}

TEST_CASE("ce-soft-neginf-logit-zero-label: a class of probability zero with label zero counts nothing") {
  graph::graph g;
  const value logits{&g, g.add_parameter(array_type(dtype::f64, {2, 2}))};
  const value labels{&g, g.add_parameter(array_type(dtype::f64, {2, 2}))};
  const value loss = optim::write_soft_cross_entropy({logits, labels}, array_type(dtype::f64, {2}));
  const int wrt[] = {logits.id};
  g.outputs = {{loss.id, -1}, {transform::gradients(g, graph::sum(loss).id, wrt)[0], -1}};
  const auto answer = run(g, {{-infinity, 0, 0, 0}, {0, 1, 0.25, 0.75}});
  CHECK(answer[0][0] == 0);
  CHECK(answer[0][1] == Approx(std::log(2.0)).epsilon(1e-15));
  CHECK(answer[1] == numbers{0, 0, 0.25, -0.25});
}

TEST_CASE("gradients of soft-label cross entropy agree with differences") {
  check_all(
      {{"softmax_cross_entropy", {{{3, 4}, -2, 2}, {{3, 4}, 0.1, 1}}, [](std::span<const value> x, const spec_value*) {
          return optim::write_soft_cross_entropy({x[0], x[1]}, {});
        }}});
}

TEST_CASE("empty-batch: elementwise operations and products are empty, sums and gradients zero") {
  graph::graph g;
  const value x{&g, g.add_parameter(array_type(dtype::f32, {0, 10}))};
  const value w{&g, g.add_parameter(array_type(dtype::f32, {10, 4}))};
  const sharding::dot_dims dims{sharding::dim_append(0, 1), sharding::dim_append(0, 0), 0, 0};
  const value y = graph::unary(op::tanh, graph::dot(x, w, dims, array_type(dtype::f32, {0, 4})));
  const value loss = graph::sum(ops::write_softmax<op::log_softmax, -1>(std::array{y}, y.type()));
  const int wrt[] = {w.id};
  g.outputs = {{y.id, -1}, {loss.id, -1}, {transform::gradients(g, loss.id, wrt)[0], -1}};
  const auto answer = run(g, {{}, numbers(40, 1)});
  CHECK(answer[0].empty());
  CHECK(answer[1] == numbers{0});
  CHECK(answer[2] == numbers(40, 0));
}

TEST_CASE("where: a choice kept away from its corner gives no NaN to the other case") {
  const auto f = [](std::span<const value> x) {
    const value positive = graph::binary(op::gt, x[0], graph::number_like(x[0], 0));
    const value safe = graph::select(positive, x[0], graph::number_like(x[0], 1));
    return graph::select(positive, graph::unary(op::log, safe), x[0]);
  };
  CHECK(gradient_at(f, {{2, 0, -3}}) == numbers{0.5, 1, 1});
}
