// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <vector>

#include <catch2/catch.hpp>

#include <tessera/kernels/naive.hpp>
#include <tessera/kernels/softmax.hpp>

#include "support.hpp"

namespace {

namespace kernels = tessera::kernels;
using namespace kernel_test;

template <class T>
constexpr T inf = std::numeric_limits<T>::infinity();

template <class T>
constexpr T nan_value = std::numeric_limits<T>::quiet_NaN();

template <class T>
using forward = void (*)(const T*, T*, std::int64_t, std::int64_t, bool);

template <class T>
using backward = void (*)(const T*, const T*, T*, std::int64_t, std::int64_t, bool);

/// Logits up to +-8, with some -infinity.
template <class T>
void fill_logits(guarded<T>& x) {
  fill_random(x, 11);
  std::mt19937 bits(12);
  for (T& value : x) value = bits() % 16 == 0 ? -inf<T> : 8 * value;
}

template <class T>
std::int64_t count_far(const guarded<T>& values, const guarded<T>& expected, T relative, T absolute) {
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < values.size(); ++i)
    if (!close(values[i], expected[i], relative * std::abs(expected[i]) + absolute)) ++wrong;
  return wrong;
}

constexpr std::int64_t widths[] = {1, 2, 7, 10, 15, 16, 17, 63, 64, 65, 100, 257, 1000};

TEMPLATE_TEST_CASE("softmax and log_softmax are the naive loops", "", float, double) {
  for (const std::int64_t cols : widths)
    for (const edge side : {edge::front, edge::back}) {
      constexpr std::int64_t rows = 9;
      guarded<TestType> x(rows * cols, side), y(rows * cols, side), expected(rows * cols, side);
      fill_logits(x);
      INFO("cols " << cols);
      // Two exponentials (4 roundings each, and the rounding of x - max, at most 16 here, inside them), cols additions,
      // one division.
      const TestType roundings = static_cast<TestType>(2 * (4 + 16) + 2 * cols + 4) * epsilon<TestType>;
      kernels::softmax(x.data(), y.data(), rows, cols, true);
      kernels::naive::softmax(x.data(), expected.data(), rows, cols);
      REQUIRE(count_far(y, expected, roundings, std::numeric_limits<TestType>::min()) == 0);
      // The logarithm turns relative error into absolute error.
      kernels::log_softmax(x.data(), y.data(), rows, cols, true);
      kernels::naive::log_softmax(x.data(), expected.data(), rows, cols);
      REQUIRE(count_far(y, expected, 2 * epsilon<TestType>, roundings) == 0);
    }
}

TEMPLATE_TEST_CASE("softmax_backward and log_softmax_backward are the naive loops", "", float, double) {
  for (const std::int64_t cols : widths)
    for (const edge side : {edge::front, edge::back}) {
      constexpr std::int64_t rows = 9;
      guarded<TestType> x(rows * cols, side), y(rows * cols, side), g(rows * cols, side), dx(rows * cols, side);
      guarded<TestType> expected(rows * cols, side);
      fill_logits(x);
      fill_random(g, 13);
      INFO("cols " << cols);
      // |g| <= 1, so no sum exceeds cols and y sums to 1: the bound of a sum of cols terms, and of the steps around it.
      const TestType roundings = static_cast<TestType>(2 * cols + 8) * epsilon<TestType>;
      kernels::naive::softmax(x.data(), y.data(), rows, cols);
      kernels::softmax_backward(y.data(), g.data(), dx.data(), rows, cols, true);
      kernels::naive::softmax_backward(y.data(), g.data(), expected.data(), rows, cols);
      REQUIRE(count_far(dx, expected, TestType(0), roundings) == 0);
      kernels::naive::log_softmax(x.data(), y.data(), rows, cols);
      kernels::log_softmax_backward(y.data(), g.data(), dx.data(), rows, cols, true);
      kernels::naive::log_softmax_backward(y.data(), g.data(), expected.data(), rows, cols);
      REQUIRE(count_far(dx, expected, TestType(0), static_cast<TestType>(cols) * roundings) == 0);
    }
}

TEMPLATE_TEST_CASE("softmax sums to one and shifts do not change it", "", float, double) {
  const TestType x[] = {1000, 1001, 1002, -1000};
  const TestType shifted[] = {0, 1, 2, -2000};
  TestType y[4], z[4];
  kernels::softmax(x, y, 1, 4, false);
  kernels::softmax(shifted, z, 1, 4, false);
  REQUIRE(same_bits(y, z, 4));
  REQUIRE(std::abs(y[0] + y[1] + y[2] + y[3] - 1) <= 4 * epsilon<TestType>);
}

TEMPLATE_TEST_CASE("a row of nothing but -infinity is zeros in softmax, -infinity in log_softmax, with zero gradients",
                   "", float, double) {
  for (const std::int64_t cols : widths) {
    const auto n = static_cast<std::size_t>(cols);
    const std::vector<TestType> x(n, -inf<TestType>), g(n, TestType(3)), zeros(n, TestType(0));
    std::vector<TestType> y(n), log_y(n), dx(n);
    kernels::softmax(x.data(), y.data(), 1, cols, false);
    REQUIRE(y == zeros);
    kernels::softmax_backward(y.data(), g.data(), dx.data(), 1, cols, false);
    REQUIRE(dx == zeros);
    kernels::log_softmax(x.data(), log_y.data(), 1, cols, false);
    REQUIRE(log_y == x);
    kernels::log_softmax_backward(log_y.data(), g.data(), dx.data(), 1, cols, false);
    REQUIRE(dx == zeros);
  }
}

TEMPLATE_TEST_CASE("a NaN or +infinity makes its own row NaN and no other", "", float, double) {
  for (const TestType odd : {nan_value<TestType>, inf<TestType>})
    for (const forward<TestType> f : {kernels::softmax<TestType>, kernels::log_softmax<TestType>})
      for (const std::int64_t cols : widths)
        for (std::int64_t at = 0; at < cols; at += 1 + cols / 9) {
          guarded<TestType> x(3 * cols, edge::back), y(3 * cols, edge::back), expected(3 * cols, edge::back);
          fill_random(x, 14);
          x[cols + at] = odd;
          f(x.data(), y.data(), 3, cols, false);
          (f == static_cast<forward<TestType>>(kernels::softmax<TestType>)
               ? kernels::naive::softmax<TestType>
               : kernels::naive::log_softmax<TestType>)(x.data(), expected.data(), 3, cols, false);
          std::int64_t wrong = 0;
          for (std::int64_t i = 0; i < 3 * cols; ++i)
            if (std::isnan(y[i]) != std::isnan(expected[i])) ++wrong;
          INFO("cols " << cols << " at " << at << " value " << odd);
          REQUIRE(wrong == 0);
        }
}

TEMPLATE_TEST_CASE("a row has the same bits wherever it stands, in place or not, on 1, 2 and 4 threads", "", float,
                   double) {
  for (const std::int64_t cols : {1, 10, 33, 64, 1000}) {
    constexpr std::int64_t rows = 64;
    guarded<TestType> x(rows * cols, edge::back), g(rows * cols, edge::back), out(rows * cols, edge::back);
    fill_logits(x);
    fill_random(g, 15);
    std::vector<TestType> one(static_cast<std::size_t>(cols));
    for (const forward<TestType> f : {kernels::softmax<TestType>, kernels::log_softmax<TestType>})
      for (const int threads : {1, 2, 4})
        on_threads(threads, [&] {
          f(x.data(), out.data(), rows, cols, true);
          for (std::int64_t i = 0; i < rows; ++i) {
            std::copy_n(x.data() + i * cols, cols, one.begin());
            f(one.data(), one.data(), 1, cols, false);
            REQUIRE(same_bits(one.data(), out.data() + i * cols, cols));
          }
        });
    kernels::log_softmax(x.data(), x.data(), rows, cols, false);
    for (const backward<TestType> f : {kernels::softmax_backward<TestType>, kernels::log_softmax_backward<TestType>})
      for (const int threads : {1, 2, 4})
        on_threads(threads, [&] {
          f(x.data(), g.data(), out.data(), rows, cols, true);
          for (std::int64_t i = 0; i < rows; ++i) {
            std::copy_n(g.data() + i * cols, cols, one.begin());
            f(x.data() + i * cols, one.data(), one.data(), 1, cols, false);
            REQUIRE(same_bits(one.data(), out.data() + i * cols, cols));
          }
        });
  }
}

TEST_CASE("softmax of no rows or no columns writes nothing") {
  float y = 5;
  kernels::softmax<float>(nullptr, &y, 0, 10, true);
  kernels::softmax<float>(nullptr, &y, 10, 0, true);
  kernels::log_softmax<float>(nullptr, &y, 10, 0, true);
  REQUIRE(y == 5);
}

TEMPLATE_TEST_CASE(
    "softmax of seen columns, and its gradient, have the bits of all columns of which the rest are hidden", "", float,
    double) {
  constexpr std::int64_t rows = 5;
  for (const TestType hidden : {-inf<TestType>, TestType(-1e30)})
    for (const auto& [cols, seen] : {std::pair{200, 64}, {200, 128}, {65, 64}, {5000, 2112}, {300, 300}}) {
      guarded<TestType> x(rows * cols, edge::back), y(rows * cols, edge::back), part(rows * cols, edge::back),
          g(rows * cols, edge::back), dx(rows * cols, edge::back), expected(rows * cols, edge::back);
      fill_logits(x);
      fill_random(g, 5);
      for (std::int64_t i = 0; i < rows; ++i) std::fill_n(x.data() + i * cols + seen, cols - seen, hidden);
      if (hidden == -inf<TestType>) std::fill_n(x.data() + 2 * cols, cols, hidden);
      kernels::softmax(x.data(), y.data(), rows, cols, false);
      kernels::softmax_backward(y.data(), g.data(), expected.data(), rows, cols, false);
      REQUIRE(kernels::softmax_of_seen(x.data(), part.data(), rows, cols, seen, hidden));
      kernels::softmax_backward_of_seen(part.data(), g.data(), dx.data(), rows, cols, seen);
      INFO(seen << " of " << cols);
      for (std::int64_t i = 0; i < rows; ++i) {
        REQUIRE(same_bits(part.data() + i * cols, y.data() + i * cols, seen));
        REQUIRE(same_bits(dx.data() + i * cols, expected.data() + i * cols, seen));
        for (std::int64_t j = seen; j < cols; ++j) REQUIRE(y[i * cols + j] == 0);
      }
    }
}

TEMPLATE_TEST_CASE("softmax of seen columns writes nothing where hidden ones count", "", float, double) {
  constexpr std::int64_t cols = 128, seen = 64;
  const auto refused = [](TestType value, TestType hidden) {
    std::vector<TestType> x(cols, value), y(cols, TestType(7));
    const bool done = kernels::softmax_of_seen(x.data(), y.data(), 1, cols, seen, hidden);
    return !done && std::count(y.begin(), y.end(), TestType(7)) == cols;
  };
  REQUIRE(refused(1, 0));
  REQUIRE(refused(-1e30F, -1e30F));
  REQUIRE(refused(-inf<TestType>, TestType(-1e30)));
  REQUIRE(refused(inf<TestType>, -inf<TestType>));
  REQUIRE(refused(nan_value<TestType>, -inf<TestType>));
  REQUIRE_FALSE(refused(1, -inf<TestType>));
}

}  // namespace
