// SPDX-License-Identifier: Apache-2.0
// Products of floats in three bfloat16 parts, where the processor has matrix registers; elsewhere the same statements
// hold of fused multiply-adds.
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include <tessera/kernels/gemm.hpp>
#include <tessera/kernels/naive.hpp>
#include <tessera/runtime/dot_algorithm.hpp>

#include "support.hpp"

namespace {

namespace kernels = tessera::kernels;
using namespace kernel_test;
using kernels::gemm_problem;
using tessera::dot_algorithm;

struct matrices {
  std::int64_t m, n, k;
  std::vector<float> a, b;

  matrices(std::int64_t rows, std::int64_t columns, std::int64_t depth, unsigned seed = 1)
      : m(rows), n(columns), k(depth), a(at(m * k)), b(at(k * n)) {
    std::mt19937 bits(seed);
    std::normal_distribution<float> normal;
    for (auto* array : {&a, &b})
      for (float& x : *array) x = normal(bits);
  }
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  gemm_problem<float> problem(std::vector<float>& c) const {
    gemm_problem<float> p;
    p.m = m, p.n = n, p.k = k;
    p.a = a.data(), p.lda = k;
    p.b = b.data(), p.ldb = n;
    c.resize(at(m * n));
    p.c = c.data(), p.ldc = n;
    return p;
  }
  std::vector<float> product(dot_algorithm algorithm = dot_algorithm::bf16_bf16_f32_x6) const {
    const tessera::default_dot_algorithm chosen(algorithm);
    std::vector<float> c;
    kernels::gemm(problem(c), true);
    return c;
  }

  /// Root of the mean of squares of errors, each relative to the sum of absolute products, in units of 2^-24.
  double error(const std::vector<float>& c) const {
    double sum = 0;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double exact = 0, size = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          const double term = static_cast<double>(a[at(i * k + p)]) * static_cast<double>(b[at(p * n + j)]);
          exact += term, size += std::abs(term);
        }
        const double off = (static_cast<double>(c[at(i * n + j)]) - exact) / size * 0x1p24;
        sum += off * off;
      }
    return std::sqrt(sum / static_cast<double>(m * n));
  }
};

bool same_row(const std::vector<float>& x, const std::vector<float>& y, std::int64_t i, std::int64_t n) {
  return same_bits(x.data() + i * n, y.data() + i * n, n);
}

TEST_CASE("products of floats in parts are no farther from the exact ones than by fused multiply-adds") {
  for (const std::int64_t k : {32, 100, 784, 4096})
    for (const float scale : {1.0f, 0x1p-40f, 0x1p40f}) {
      matrices in(40, 50, k, static_cast<unsigned>(k));
      for (float& x : in.a) x *= scale;
      const double parts = in.error(in.product()), fma = in.error(in.product(dot_algorithm::f32_f32_f32));
      INFO("depth " << k << " scale " << scale << " parts " << parts << " fma " << fma);
      CHECK(parts <= fma);
    }
}

TEST_CASE("products of numbers of one sign, which add up errors of one sign, are as near, too") {
  for (const std::int64_t k : {32, 1000}) {
    matrices in(40, 50, k);
    for (auto* array : {&in.a, &in.b})
      for (float& x : *array) x = std::abs(x);
    CHECK(in.error(in.product()) <= in.error(in.product(dot_algorithm::f32_f32_f32)));
  }
}

TEST_CASE("products of whole numbers are exact as long as their sums are below 2^24") {
  matrices in(33, 47, 500);
  std::mt19937 bits(3);
  for (float& x : in.a) x = static_cast<float>(bits() % 4001) - 2000;
  for (float& x : in.b) x = static_cast<float>(bits() % 17) - 8;
  CHECK(in.error(in.product()) == 0);
}

constexpr float odd_ones[] = {std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::max(),
                              std::numeric_limits<float>::denorm_min(),
                              -1e-40f,
                              0x1p-103f,
                              0x1p62f};

TEST_CASE("a number that has no parts changes no bit of other rows and columns") {
  const std::int64_t odd_row = 7, odd_column = 21;
  for (const std::int64_t m : {20, 150})
    for (const float odd : odd_ones)
      for (const std::int64_t step : {0, 40, 299}) {
        const matrices plain(m, 70, 300);
        const auto expected = plain.product();
        matrices in = plain;
        in.a[matrices::at(odd_row * in.k + step)] = odd;
        in.b[matrices::at(step * in.n + odd_column)] = odd;
        auto got = in.product();
        const auto fma = in.product(dot_algorithm::f32_f32_f32);
        INFO("number " << odd << " in step " << step << " of " << m << " rows");
        for (std::int64_t i = 0; i < m; ++i) {
          if (i != odd_row) got[matrices::at(i * in.n + odd_column)] = expected[matrices::at(i * in.n + odd_column)];
          if (i != odd_row) REQUIRE(same_row(got, expected, i, in.n));
        }
        for (std::int64_t j = 0; j < in.n; ++j) {
          const float x = got[matrices::at(odd_row * in.n + j)], y = fma[matrices::at(odd_row * in.n + j)];
          REQUIRE(std::isfinite(x) == std::isfinite(y));
          if (std::isfinite(y))
            REQUIRE(std::abs(x - y) <= 1e-5f * (std::abs(y) + 30 + 30 * std::min(std::abs(odd), 1e30f)));
        }
      }
}

TEST_CASE("rows and columns of numbers without parts are products of them by fused multiply-adds") {
  matrices in(70, 90, 128);
  for (std::int64_t p = 0; p < in.k; ++p) {
    for (const std::int64_t i : {3, 4, 69}) in.a[matrices::at(i * in.k + p)] *= 0x1p-120f;
    for (const std::int64_t j : {0, 31, 32}) in.b[matrices::at(p * in.n + j)] *= 0x1p70f;
  }
  const auto got = in.product(), fma = in.product(dot_algorithm::f32_f32_f32);
  for (const std::int64_t i : {3, 4, 69}) CHECK(same_row(got, fma, i, in.n));
  for (std::int64_t i = 0; i < in.m; ++i)
    for (const std::int64_t j : {0, 31, 32}) {
      CHECK(same_bits(&got[matrices::at(i * in.n + j)], &fma[matrices::at(i * in.n + j)], 1));
    }
  CHECK(in.error(got) < 20);
}

TEST_CASE("products with numbers that have no parts have the same bits on all threads, in cut rows and cut columns") {
  matrices in(192, 160, 700);
  std::mt19937 bits(5);
  for (auto* array : {&in.a, &in.b})
    for (int i = 0; i < 12; ++i) (*array)[bits() % array->size()] = i % 2 == 0 ? 1e-39f : 0x1p80f;
  const auto whole = in.product();
  std::vector<float> c;
  for (const int threads : {1, 2, 4})
    on_threads(threads, [&] {
      kernels::gemm(in.problem(c), threads > 1);
      REQUIRE(same_bits(c.data(), whole.data(), in.m * in.n));
    });
  const std::int64_t part = 48;
  for (std::int64_t i = 0; i < in.m; i += part) {
    gemm_problem<float> rows = in.problem(c);
    rows.m = part, rows.a += i * in.k, rows.c += i * in.n;
    kernels::gemm(rows, false);
    REQUIRE(same_bits(rows.c, whole.data() + i * in.n, part * in.n));
  }
  for (std::int64_t j = 0; j < in.n; j += 40) {
    gemm_problem<float> columns = in.problem(c);
    columns.n = 40, columns.b += j, columns.c += j;
    kernels::gemm(columns, false);
  }
  CHECK(same_bits(c.data(), whole.data(), in.m * in.n));
}

TEST_CASE("groups that share B have the bits of single products, also with numbers that have no parts") {
  const std::int64_t groups = 5, rows = 37;
  for (const bool odd : {false, true}) {
    matrices in(groups * rows, 70, 200);
    if (odd) in.a[matrices::at((3 * rows + 1) * in.k + 150)] = 1e-41f, in.b[40] = 0x1p90f;
    std::vector<float> expected, c;
    for (std::int64_t g = 0; g < groups; ++g) {
      gemm_problem<float> one = in.problem(expected);
      one.m = rows, one.a += g * rows * in.k, one.c += g * rows * in.n;
      kernels::gemm(one, false);
    }
    gemm_problem<float> p = in.problem(c);
    p.m = rows, p.groups = groups, p.a_stride = rows * in.k, p.b_stride = 0, p.c_stride = rows * in.n;
    for (const bool parallel : {false, true}) {
      kernels::gemm(p, parallel);
      REQUIRE(same_bits(c.data(), expected.data(), in.m * in.n));
    }
  }
}

TEST_CASE("groups that are summed have the bits of one product whose depth they share") {
  const matrices in(45, 70, 256);
  const auto expected = in.product();
  std::vector<float> c;
  gemm_problem<float> p = in.problem(c);
  p.k = 64, p.groups = 4, p.a_stride = 64, p.b_stride = 64 * in.n, p.c_stride = 0;
  kernels::gemm(p, true);
  CHECK(same_bits(c.data(), expected.data(), in.m * in.n));
}

TEST_CASE("an exchanged product has the bits of the product of which it is the transpose") {
  matrices in(45, 70, 300);
  in.a[1000] = 1e-41f;
  const auto expected = in.product();
  std::vector<float> c(expected.size());
  gemm_problem<float> p;
  p.m = in.n, p.n = in.m, p.k = in.k;
  p.a = in.b.data(), p.lda = in.n, p.a_transposed = true;
  p.b = in.a.data(), p.ldb = in.k, p.b_transposed = true;
  p.c = c.data(), p.ldc = in.m;
  p.exchanged = true;
  kernels::gemm(p, true);
  for (std::int64_t i = 0; i < in.m; ++i)
    for (std::int64_t j = 0; j < in.n; ++j)
      REQUIRE(same_bits(&c[matrices::at(j * in.m + i)], &expected[matrices::at(i * in.n + j)], 1));
}

TEST_CASE("accumulating adds the product of numbers without parts once") {
  matrices in(40, 40, 300);
  in.a[5] = 1e-41f;
  in.b[250 * 40 + 9] = 1e-41f;
  const auto product = in.product();
  std::vector<float> c;
  auto p = in.problem(c);
  std::fill(c.begin(), c.end(), 1000.0f);
  p.accumulate = true;
  kernels::gemm(p, false);
  for (std::size_t i = 0; i < c.size(); ++i) REQUIRE(std::abs(c[i] - (1000 + product[i])) < 1e-3f);
}

TEST_CASE("steps of the depth that are not read count as zeros of A") {
  for (const dot_algorithm algorithm : {dot_algorithm::f32_f32_f32, dot_algorithm::bf16_bf16_f32_x6})
    for (const std::int64_t k : {20, 300, 1024})
      for (const std::int64_t read : {std::int64_t{1}, k / 3, k - 1, k, k + 5}) {
        matrices in(45, 33, k);
        const tessera::default_dot_algorithm chosen(algorithm);
        std::vector<float> c;
        gemm_problem<float> p = in.problem(c);
        p.read = read;
        kernels::gemm(p, false);
        for (std::int64_t i = 0; i < in.m; ++i)
          for (std::int64_t step = read; step < k; ++step) in.a[matrices::at(i * k + step)] = 0;
        std::vector<float> expected;
        kernels::gemm(in.problem(expected), false);
        INFO("reads " << read << " of " << k);
        REQUIRE(same_bits(c.data(), expected.data(), in.m * in.n));
      }
}

TEST_CASE("the algorithm of products is chosen for a while") {
  REQUIRE(tessera::default_dot_algorithm::now() == dot_algorithm::bf16_bf16_f32_x6);
  {
    const tessera::default_dot_algorithm fma(dot_algorithm::f32_f32_f32);
    CHECK(tessera::default_dot_algorithm::now() == dot_algorithm::f32_f32_f32);
  }
  CHECK(tessera::default_dot_algorithm::now() == dot_algorithm::bf16_bf16_f32_x6);
}

}  // namespace
