// SPDX-License-Identifier: Apache-2.0
// Kernels that walk along one axis against their naive twins: odd sizes, special numbers, any number of threads.
#include "support.hpp"

#include <tessera/kernels/naive_axis.hpp>

#include <catch2/catch.hpp>

using namespace tessera;
using namespace kernel_test;
using kernels::axis_walk;
using kernels::cumulative_kind;

namespace {

const axis_walk walks[] = {{1, 1, 1, false},  {1, 17, 1, true},   {3, 5, 1, false},    {2, 7, 3, true},
                           {3, 4, 65, false}, {1, 130, 70, true}, {2, 33, 129, false}, {0, 3, 2, false},
                           {2, 0, 3, false},  {2, 3, 0, true},    {5, 1000, 1, false}};

template <class T>
std::vector<T> numbers(std::int64_t n, unsigned seed) {
  std::vector<T> x(static_cast<std::size_t>(n));
  fill_random(x, seed);
  return x;
}

/// Every fifth number is a special one.
template <class T>
std::vector<T> with_specials(std::int64_t n, unsigned seed) {
  std::vector<T> x = numbers<T>(n, seed);
  const std::vector<T> specials = special_numbers<T>();
  for (std::size_t i = 0; i < x.size(); i += 5) x[i] = specials[i / 5 % specials.size()];
  return x;
}

template <class T>
void check_walk(cumulative_kind kind, const axis_walk& w, const std::vector<T>& x, double roundings) {
  std::vector<T> expected(x.size());
  kernels::naive::cumulative(kind, w, x.data(), expected.data());
  INFO("kind " << static_cast<int>(kind) << ", " << w.outer << " x " << w.n << " x " << w.inner);
  for (const edge side : edges) {
    const guarded<T> in(x, side);
    guarded<T> out(in.size(), side);
    kernels::cumulative(kind, w, in.data(), out.data(), true);
    const std::vector<T> y = out.values();
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if constexpr (std::is_floating_point_v<T>)
        wrong +=
            !close(y[i], expected[i], static_cast<T>(roundings) * epsilon<T> * std::max(T(1), std::abs(expected[i])));
      else wrong += y[i] != expected[i];
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("running sums, products, extrema and lags are the naive ones", "", float, double) {
  for (const axis_walk& w : walks) {
    const std::int64_t size = w.outer * w.n * w.inner;
    // float32 is carried in float64, so one rounding is left; float64 has one an element.
    const double roundings = sizeof(TestType) == 4 ? 1 : static_cast<double>(2 * w.n + 2);
    check_walk(cumulative_kind::sum, w, numbers<TestType>(size, 1), roundings * std::max(1.0, std::sqrt(w.n)));
    check_walk(cumulative_kind::prod, w, numbers<TestType>(size, 2), roundings);
    check_walk(cumulative_kind::logsumexp, w, numbers<TestType>(size, 3), roundings + 4);
    check_walk(cumulative_kind::max, w, with_specials<TestType>(size, 4), 0);
    check_walk(cumulative_kind::min, w, with_specials<TestType>(size, 5), 0);
    check_walk(cumulative_kind::lag, w, with_specials<TestType>(size, 6), 0);
  }
}

TEMPLATE_TEST_CASE("running sums and products of integers wrap around", "", std::int32_t, std::uint32_t) {
  for (const axis_walk& w : walks) {
    const std::int64_t size = w.outer * w.n * w.inner;
    const std::vector<TestType> x = with_specials<TestType>(size, 7);
    check_walk(cumulative_kind::max, w, x, 0);
    check_walk(cumulative_kind::min, w, x, 0);
    check_walk(cumulative_kind::lag, w, x, 0);
  }
  const std::vector<TestType> x{65536, 65537, 3};
  std::vector<TestType> y(3);
  kernels::cumulative(cumulative_kind::prod, {1, 3, 1, false}, x.data(), y.data(), false);
  CHECK(y == std::vector<TestType>{65536, 65536, 196608});
  const auto largest = std::numeric_limits<TestType>::max();
  const std::vector<TestType> z{largest, 1, 1};
  kernels::cumulative(cumulative_kind::sum, {1, 3, 1, false}, z.data(), y.data(), false);
  CHECK(y == std::vector<TestType>{largest, std::numeric_limits<TestType>::min(),
                                   static_cast<TestType>(std::numeric_limits<TestType>::min() + 1)});
}

TEMPLATE_TEST_CASE("a running logsumexp knows infinities and NaN", "", float, double) {
  const TestType inf = std::numeric_limits<TestType>::infinity();
  const TestType nan_ = std::numeric_limits<TestType>::quiet_NaN();
  const std::vector<TestType> x{-inf, -inf, 0, 1000, inf, 1, nan_, 2};
  std::vector<TestType> y(x.size());
  kernels::cumulative(cumulative_kind::logsumexp, {1, 8, 1, false}, x.data(), y.data(), false);
  CHECK(std::vector<TestType>(y.begin(), y.begin() + 6) == std::vector<TestType>{-inf, -inf, 0, 1000, inf, inf});
  CHECK(std::isnan(y[6]));
  CHECK(std::isnan(y[7]));
}

TEST_CASE("a running sum of a million float32 numbers has all its digits") {
  const std::vector<float> x(1000000, 0.1F);
  std::vector<float> y(x.size());
  kernels::cumulative(cumulative_kind::sum, {1, 1000000, 1, false}, x.data(), y.data(), false);
  CHECK(y.back() == static_cast<float>(1000000 * static_cast<double>(0.1F)));
}

TEMPLATE_TEST_CASE("a linear recurrence is the naive one, its factor taken here or one step before", "", float,
                   double) {
  for (const axis_walk& w : walks)
    for (bool shifted : {false, true})
      for (const edge side : edges) {
        const std::int64_t size = w.outer * w.n * w.inner;
        const guarded<TestType> a(numbers<TestType>(size, 8), side), b(numbers<TestType>(size, 9), side);
        guarded<TestType> y(size, side), expected(size, side);
        kernels::recurrence(w, shifted, a.data(), b.data(), y.data(), true);
        kernels::naive::recurrence(w, shifted, a.data(), b.data(), expected.data());
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < size; ++i) wrong += !close(y[i], expected[i], 16 * epsilon<TestType>);
        CHECK(wrong == 0);
      }
}

TEMPLATE_TEST_CASE("argsort is a stable sort with NaN last, whole or in part", "", float, double, std::int32_t,
                   std::uint32_t) {
  for (const axis_walk& w : walks)
    for (bool descending : {false, true})
      for (std::int64_t k : {std::int64_t{0}, std::int64_t{1}, w.n / 3, w.n}) {
        if (k > w.n) continue;
        const kernels::argsort_problem p{w.outer, w.n, w.inner, k, descending};
        std::vector<TestType> x = with_specials<TestType>(w.outer * w.n * w.inner, 10);
        for (std::size_t i = 2; i < x.size(); i += 7) x[i] = x[i - 2];
        std::vector<std::int32_t> expected(static_cast<std::size_t>(w.outer * k * w.inner));
        kernels::naive::argsort(p, x.data(), expected.data());
        for (const edge side : edges) {
          const guarded<TestType> in(x, side);
          guarded<std::int32_t> y(w.outer * k * w.inner, side);
          kernels::argsort(p, in.data(), y.data(), true);
          CHECK(y.values() == expected);
        }
      }
}

TEST_CASE("kernels along an axis give the same bits for any number of threads") {
  const axis_walk w{7, 300, 100, false};
  const std::vector<float> x = numbers<float>(7 * 300 * 100, 11);
  std::vector<std::vector<float>> sums;
  std::vector<std::vector<std::int32_t>> orders;
  for (int threads : {1, 2, 4}) {
    sums.emplace_back(x.size());
    orders.emplace_back(x.size());
    on_threads(threads, [&] {
      kernels::cumulative(cumulative_kind::sum, w, x.data(), sums.back().data(), true);
      kernels::argsort({7, 300, 100, 300, false}, x.data(), orders.back().data(), true);
    });
  }
  CHECK(sums[0] == sums[1]);
  CHECK(sums[0] == sums[2]);
  CHECK(orders[0] == orders[1]);
  CHECK(orders[0] == orders[2]);
}
