// SPDX-License-Identifier: Apache-2.0
// Cross entropy with integer labels, and the softmax under it, at their edges, whole and cut.
#include "support.hpp"

#include <tessera/optim/losses.hpp>
#include <tessera/transform/grad.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace optim_test;
using graph::op;
using graph::value;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr mesh_value cluster{2, {"data", "model"}, {2, 4}};

struct answer {
  numbers values;
  numbers gradient;
};

std::vector<std::byte> bytes_of_labels(const std::vector<std::int32_t>& labels) {
  std::vector<std::byte> out(labels.size() * sizeof(std::int32_t));
  std::memcpy(out.data(), labels.data(), out.size());
  return out;
}

aval matrix(std::int64_t rows, std::int64_t columns, axis_list row_axes, axis_list column_axes) {
  aval a = scalar_aval(dtype::f32);
  a.rank = 2;
  a.dims[0] = {rows, row_axes};
  a.dims[1] = {columns, column_axes};
  return a;
}

/// Losses of each row and the gradient of their sum, with logits cut as told.
answer cross_entropy(const numbers& logits, const std::vector<std::int32_t>& labels, axis_list rows = 0,
                     axis_list classes = 0, dtype label_type = dtype::i32, optim::cross_entropy_options options = {}) {
  graph::graph g;
  g.mesh = cluster;
  const auto count = static_cast<std::int64_t>(labels.size());
  const aval type = matrix(count, static_cast<std::int64_t>(logits.size()) / count, rows, classes);
  aval label_aval = scalar_aval(label_type);
  label_aval.rank = 1;
  label_aval.dims[0] = type.dims[0];
  const value x{&g, g.add_parameter(type)};
  const value y{&g, g.add_parameter(label_aval)};
  const value losses = optim::write_cross_entropy_t{options}(std::array{x, y}, label_aval);
  const int wrt[] = {x.id};
  const value total = graph::sum(losses);
  g.outputs = {{losses.id, -1}, {transform::gradients(g, total.id, wrt)[0], -1}};
  const auto out = runtime::evaluate(g, std::vector{bytes_of(logits), bytes_of_labels(labels)});
  return {numbers_of(out[0]), numbers_of(out[1])};
}

template <op Code>
answer rows_of(const numbers& x, const numbers& upstream, std::int64_t rows, axis_list row_axes,
               axis_list column_axes) {
  graph::graph g;
  g.mesh = cluster;
  const aval type = matrix(rows, static_cast<std::int64_t>(x.size()) / rows, row_axes, column_axes);
  const value v{&g, g.add_parameter(type)};
  const value u{&g, g.add_parameter(type)};
  const value y = ops::write_softmax<Code, -1>(std::array{v}, type);
  // Rows whose log-softmax is -inf take part in no loss: the product is selected, not multiplied by 0.
  const value kept =
      graph::select(graph::binary(op::eq, y, graph::number_like(y, -std::numeric_limits<double>::infinity())),
                    graph::number_like(y, 0), y);
  const int wrt[] = {v.id};
  const value total = graph::sum(kept * u);
  g.outputs = {{y.id, -1}, {transform::gradients(g, total.id, wrt)[0], -1}};
  const auto out = runtime::evaluate(g, std::vector{bytes_of(x), bytes_of(upstream)});
  return {numbers_of(out[0]), numbers_of(out[1])};
}

const axis_list uncut = 0;
const axis_list data = axis_append(0, 0);
const axis_list model = axis_append(0, 1);

}  // namespace

TEST_CASE("each valid label has its reference loss") {
  const double expected[] = {1.529976, 1.629976, 1.329976, 1.129976};
  for (std::int32_t label = 0; label < 4; ++label)
    for (axis_list classes : {uncut, model})
      CHECK(cross_entropy({0.2f, 0.1f, 0.4f, 0.6f}, {label}, 0, classes).values[0] ==
            Approx(expected[label]).margin(1e-6));
}

TEST_CASE("the gradient is softmax minus one-hot") {
  const numbers logits{0.2f, 0.1f, 0.4f, 0.6f, -1, 2, 0, 1};
  for (axis_list rows : {uncut, data})
    for (axis_list classes : {uncut, model}) {
      const answer a = cross_entropy(logits, {2, 0}, rows, classes);
      for (std::size_t row = 0; row < 2; ++row) {
        double sum = 0;
        for (std::size_t c = 0; c < 4; ++c) sum += std::exp(static_cast<double>(logits[4 * row + c]));
        for (std::size_t c = 0; c < 4; ++c) {
          const double one_hot = c == (row == 0 ? 2 : 0) ? 1 : 0;
          CHECK(a.gradient[4 * row + c] ==
                Approx(std::exp(static_cast<double>(logits[4 * row + c])) / sum - one_hot).margin(2e-7));
        }
      }
    }
}

TEST_CASE("a label out of range is an error with value, position and range, cut or not") {
  for (axis_list rows : {uncut, data})
    for (axis_list classes : {uncut, model})
      for (std::int32_t bad : {4, -1, 2147483647}) {
        const auto call = [&] { cross_entropy(numbers(16, 0.5f), {0, 1, 3, bad}, rows, classes); };
        CHECK_THROWS_AS(call(), index_error);
        CHECK(message_of(call) ==
              "softmax_cross_entropy: label " + std::to_string(bad) + " at position 3 is outside [0, 4)");
      }
  const auto large = [] { cross_entropy(numbers(8, 0.5f), {0, -1}, 0, 0, dtype::u32); };
  CHECK(message_of(large) == "softmax_cross_entropy: label 4294967295 at position 1 is outside [0, 4)");
}

TEST_CASE("a class of logit -inf that is not the label counts as impossible and gives no NaN") {
  for (axis_list classes : {uncut, model}) {
    const answer a = cross_entropy({-infinity, 0, -infinity, -infinity}, {1}, 0, classes);
    CHECK(a.values[0] == 0);
    CHECK(a.gradient == numbers{0, 0, 0, 0});
    const answer impossible = cross_entropy({-infinity, 0, 0, -infinity}, {0}, 0, classes);
    CHECK(impossible.values[0] == infinity);
  }
}

TEST_CASE("large logits do not overflow") {
  for (axis_list classes : {uncut, model}) {
    const answer a = cross_entropy({1000, 1000, -1000, -1000}, {0}, 0, classes);
    CHECK(a.values[0] == Approx(std::log(2.0)));
    CHECK(a.gradient[0] == Approx(-0.5));
    CHECK(a.gradient[1] == Approx(0.5));
  }
}

TEST_CASE("softmax of a fully masked row is zeros and passes no gradient, whole and cut") {
  const numbers x{0.5f, -1, 2, 0, -infinity, -infinity, -infinity, -infinity};
  const double expected[] = {0.158445, 0.035354, 0.710100, 0.096102};
  for (axis_list rows : {uncut, data})
    for (axis_list columns : {uncut, model}) {
      const answer a = rows_of<op::softmax>(x, {1, 2, 3, 4, 5, 6, 7, 8}, 2, rows, columns);
      for (std::size_t i = 0; i < 4; ++i) CHECK(a.values[i] == Approx(expected[i]).margin(1e-6));
      for (std::size_t i = 4; i < 8; ++i) {
        CHECK(a.values[i] == 0);
        CHECK(a.gradient[i] == 0);
      }
    }
}

TEST_CASE("log_softmax of a fully masked row is -inf and passes no gradient, whole and cut") {
  const numbers x{0.5f, -1, 2, 0, -infinity, -infinity, -infinity, -infinity};
  for (axis_list rows : {uncut, data})
    for (axis_list columns : {uncut, model}) {
      const answer a = rows_of<op::log_softmax>(x, {1, 2, 3, 4, 5, 6, 7, 8}, 2, rows, columns);
      CHECK(a.values[0] == Approx(std::log(0.158445)).margin(1e-5));
      for (std::size_t i = 4; i < 8; ++i) {
        CHECK(a.values[i] == -infinity);
        CHECK(a.gradient[i] == 0);
      }
    }
}

TEST_CASE("an empty batch has no losses and no gradient") {
  graph::graph g;
  g.mesh = cluster;
  const value x{&g, g.add_parameter(matrix(0, 10, data, 0))};
  aval labels = scalar_aval(dtype::i32);
  labels.rank = 1;
  labels.dims[0] = {0, data};
  const value y{&g, g.add_parameter(labels)};
  const value losses = optim::write_cross_entropy(std::array{x, y}, labels);
  const value total = graph::sum(losses);
  const int wrt[] = {x.id};
  g.outputs = {{losses.id, -1}, {total.id, -1}, {transform::gradients(g, total.id, wrt)[0], -1}};
  const auto out = runtime::evaluate(g, std::vector<std::vector<std::byte>>(2));
  CHECK(out[0].empty());
  CHECK(numbers_of(out[1]) == numbers{0});
  CHECK(out[2].empty());
}

TEST_CASE("smoothed labels share probability among the classes") {
  const numbers logits{0.2f, 0.1f, 0.4f, 0.6f};
  double total = 0;
  for (const float x : logits) total += std::exp(static_cast<double>(x));
  for (axis_list classes : {uncut, model}) {
    const answer a = cross_entropy(logits, {2}, 0, classes, dtype::i32, {.label_smoothing = 0.2});
    double loss = 0;
    for (std::size_t c = 0; c < 4; ++c) {
      const double target = 0.05 + (c == 2 ? 0.8 : 0);
      const auto x = static_cast<double>(logits[c]);
      loss -= target * (x - std::log(total));
      CHECK(a.gradient[c] == Approx(std::exp(x) / total - target).margin(2e-7));
    }
    CHECK(a.values[0] == Approx(loss));
  }
  CHECK_THROWS_AS(cross_entropy(logits, {2}, 0, 0, dtype::i32, {.label_smoothing = 1.5}), value_error);
}

TEST_CASE("rows of the ignored label have no loss and no gradient; other bad labels are still errors") {
  const numbers logits{0.2f, 0.1f, 0.4f, 0.6f, -infinity, 2, 0, 1};
  const optim::cross_entropy_options ignore{.ignore_index = -100};
  for (axis_list classes : {uncut, model}) {
    const answer a = cross_entropy(logits, {0, -100}, 0, classes, dtype::i32, ignore);
    CHECK(a.values[0] == Approx(1.529976).margin(1e-6));
    CHECK(a.values[1] == 0);
    for (std::size_t c = 4; c < 8; ++c) CHECK(a.gradient[c] == 0);
  }
  CHECK(message_of([&] {
          cross_entropy(logits, {0, -1}, 0, 0, dtype::i32, ignore);
        }) == "softmax_cross_entropy: label -1 at position 1 is outside [0, 4)");
}
