// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include <catch2/catch.hpp>

#include <tessera/kernels/gemm.hpp>
#include <tessera/kernels/naive.hpp>

#include "support.hpp"

namespace {
std::atomic<long> allocations = 0;
}

[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

namespace kernels = tessera::kernels;
using namespace kernel_test;
using kernels::gemm_problem;

enum class grouping { batched, shared_b, summed_c };

/// A problem and its operands, each between guard pages, with leading dimensions and strides that are odd where
/// `loose`.
template <class T>
struct instance {
  instance(std::int64_t m, std::int64_t n, std::int64_t k, bool a_transposed = false, bool b_transposed = false,
           std::int64_t groups = 1, grouping kind = grouping::batched, edge side = edge::back, std::int64_t loose = 0)
      : problem(shape(m, n, k, a_transposed, b_transposed, groups, kind, loose)),
        a(length(a_transposed ? k : m, problem.lda, a_transposed ? m : k, problem.a_stride, groups), side),
        b(length(b_transposed ? n : k, problem.ldb, b_transposed ? k : n, problem.b_stride, groups), side),
        c(length(m, problem.ldc, n, problem.c_stride, groups), side) {
    fill_random(a, 1), fill_random(b, 2), fill_random(c, 3);
    problem.a = a.data(), problem.b = b.data(), problem.c = c.data();
  }

  static gemm_problem<T> shape(std::int64_t m, std::int64_t n, std::int64_t k, bool a_transposed, bool b_transposed,
                               std::int64_t groups, grouping kind, std::int64_t loose) {
    gemm_problem<T> p;
    p.m = m, p.n = n, p.k = k, p.groups = groups;
    p.a_transposed = a_transposed, p.b_transposed = b_transposed;
    p.lda = (a_transposed ? m : k) + loose;
    p.ldb = (b_transposed ? k : n) + 3 * loose;
    p.ldc = n + 5 * loose;
    p.a_stride = (a_transposed ? k : m) * p.lda + loose;
    p.b_stride = kind == grouping::shared_b ? 0 : (b_transposed ? n : k) * p.ldb + loose;
    p.c_stride = kind == grouping::summed_c ? 0 : m * p.ldc + loose;
    return p;
  }

  /// Elements from the first to the last that the problem may touch, and not one more.
  static std::int64_t length(std::int64_t rows, std::int64_t leading, std::int64_t row, std::int64_t stride,
                             std::int64_t groups) {
    return rows == 0 || row == 0 ? 0 : (groups - 1) * stride + (rows - 1) * leading + row;
  }

  gemm_problem<T> problem;
  guarded<T> a, b, c;
};

template <class T>
std::vector<T> product(const instance<T>& in, bool accumulate, void (*multiply)(const gemm_problem<T>&, bool),
                       bool parallel) {
  std::vector<T> c(in.c.data(), in.c.data() + in.c.size());
  gemm_problem<T> p = in.problem;
  p.c = c.data(), p.accumulate = accumulate;
  multiply(p, parallel);
  return c;
}

/// The naive product of absolute values: the scale of the rounding errors of each element.
template <class T>
std::vector<T> magnitudes(const instance<T>& in, bool accumulate) {
  std::vector<T> a(in.a.data(), in.a.data() + in.a.size()), b(in.b.data(), in.b.data() + in.b.size());
  std::vector<T> c(in.c.data(), in.c.data() + in.c.size());
  for (auto* array : {&a, &b, &c})
    for (T& x : *array) x = std::abs(x);
  gemm_problem<T> p = in.problem;
  p.a = a.data(), p.b = b.data(), p.c = c.data(), p.accumulate = accumulate;
  kernels::naive::gemm(p);
  return c;
}

/// Both products are within (terms + 1) roundings of the exact one, so they differ by at most twice that. The gaps
/// between rows and groups must keep what they held.
template <class T>
void require_naive(instance<T>& in, bool accumulate) {
  const auto expected = product<T>(in, accumulate, kernels::naive::gemm<T>, false);
  const auto scale = magnitudes(in, accumulate);
  gemm_problem<T> p = in.problem;
  p.accumulate = accumulate;
  kernels::gemm(p, true);
  const T roundings = static_cast<T>(2 * (p.k * p.groups + 1));
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < in.c.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!close(in.c[i], expected[at], roundings * epsilon<T> * scale[at])) ++wrong;
  }
  INFO("m " << p.m << " n " << p.n << " k " << p.k << " a_transposed " << p.a_transposed << " b_transposed "
            << p.b_transposed << " lda " << p.lda << " groups " << p.groups << " strides " << p.a_stride << ' '
            << p.b_stride << ' ' << p.c_stride << " accumulate " << accumulate);
  REQUIRE(wrong == 0);
}

TEMPLATE_TEST_CASE("gemm is the naive product for odd sizes, all transpositions and leading dimensions", "", float,
                   double) {
  for (std::int64_t m : {1, 2, 5, 11, 12, 13, 25, 97})
    for (std::int64_t n : {1, 7, 15, 16, 17, 31, 32, 33, 65})
      for (std::int64_t k : {1, 2, 7, 15, 16, 17, 100, 257})
        for (int form = 0; form < 4; ++form) {
          const bool loose = (m + n + k + form) % 2 == 0;
          instance<TestType> in(m, n, k, form & 1, form & 2, 1, grouping::batched, loose ? edge::front : edge::back,
                                loose ? 1 : 0);
          require_naive(in, (m + n) % 3 == 0);
        }
}

TEMPLATE_TEST_CASE("gemm is the naive product where it is cut into several cache blocks", "", float, double) {
  for (int form = 0; form < 4; ++form) {
    instance<TestType> deep(37, 45, 1500, form & 1, form & 2);
    require_naive(deep, false);
    instance<TestType> tall(1200, 33, 300, form & 1, form & 2, 1, grouping::batched, edge::front);
    require_naive(tall, true);
    instance<TestType> wide(26, 3300, 270, form & 1, form & 2, 1, grouping::batched, edge::back, 1);
    require_naive(wide, false);
    instance<TestType> low(41, 2100, 270, form & 1, form & 2, 1, grouping::batched, edge::front, 1);
    require_naive(low, true);
    instance<TestType> lower(13, 5500, 270, form & 1, form & 2);
    require_naive(lower, false);
  }
  instance<TestType> rows_of_a_page(203, 517, 1030, false, false);
  require_naive(rows_of_a_page, true);
}

TEMPLATE_TEST_CASE("gemm is the naive product for groups: batched, with a shared B, and summed into one C", "", float,
                   double) {
  for (const grouping kind : {grouping::batched, grouping::shared_b, grouping::summed_c})
    for (std::int64_t groups : {2, 7})
      for (std::int64_t m : {1, 13, 32})
        for (std::int64_t n : {10, 33, 65})
          for (std::int64_t k : {1, 5, 32, 130})
            for (int form = 0; form < 4; ++form) {
              const edge side = (m + n + k) % 3 == 0 ? edge::front : edge::back;
              instance<TestType> in(m, n, k, form & 1, form & 2, groups, kind, side, (m + k + form) % 2);
              require_naive(in, form == 1);
            }
}

TEST_CASE("gemm reads no step that it is told not to read") {
  const std::int64_t k = 330, read = 200;
  for (const auto [m, n] : {std::array<std::int64_t, 2>{41, 700}, {7, 300}, {300, 10}, {130, 140}})
    for (int form = 0; form < 4; ++form) {
      instance<float> in(m, n, k, form & 1, form & 2);
      gemm_problem<float>& p = in.problem;
      constexpr float nan = std::numeric_limits<float>::quiet_NaN();
      for (std::int64_t s = read; s < k; ++s) {
        for (std::int64_t i = 0; i < m; ++i) in.a[form & 1 ? s * p.lda + i : i * p.lda + s] = nan;
        for (std::int64_t j = 0; j < n; ++j) in.b[form & 2 ? j * p.ldb + s : s * p.ldb + j] = nan;
      }
      p.read = read;
      const auto c = product<float>(in, false, kernels::gemm<float>, true);
      p.k = read;
      const auto expected = product<float>(in, false, kernels::naive::gemm<float>, false);
      const auto scale = magnitudes(in, false);
      for (std::size_t i = 0; i < c.size(); ++i)
        REQUIRE(close(c[i], expected[i], 2 * static_cast<float>(read + 1) * epsilon<float> * scale[i]));
    }
}

TEST_CASE("gemm sums groups that share both operands, and batches that share A") {
  instance<float> both(13, 17, 40, false, false, 3, grouping::summed_c);
  both.problem.b_stride = 0;
  require_naive(both, false);
  instance<float> left(13, 17, 40, true, false, 3);
  left.problem.a_stride = 0;
  require_naive(left, false);
  for (const std::int64_t m : {16, 32}) {
    instance<float> low(m, 700, 330, false, true, 2);
    low.problem.a_stride = 0;
    require_naive(low, false);
  }
}

TEMPLATE_TEST_CASE("gemm lets NaN and infinity through, also times zero", "", float, double) {
  using limits = std::numeric_limits<TestType>;
  for (int form = 0; form < 4; ++form)
    for (std::int64_t k : {3, 40, 300}) {
      instance<TestType> in(29, 50, k, form & 1, form & 2, 1, grouping::batched, edge::back, 1);
      std::mt19937 bits(7);
      for (auto* array : {&in.a, &in.b})
        for (TestType& x : *array)
          if (bits() % 4 == 0) x = 0;
      const TestType odd[] = {limits::infinity(), -limits::infinity(), limits::quiet_NaN()};
      for (int i = 0; i < 3; ++i) {
        in.a[static_cast<std::int64_t>(bits() % 40)] = odd[i];
        in.b[static_cast<std::int64_t>(bits() % 40)] = odd[i];
      }
      require_naive(in, false);
    }
  instance<TestType> in(1, 1, 1);
  in.a[0] = 0, in.b[0] = limits::infinity();
  kernels::gemm(in.problem, false);
  REQUIRE(std::isnan(in.c[0]));
}

TEST_CASE("gemm keeps infinity in one row and one column") {
  instance<float> in(30, 40, 20);
  in.a[7 * 20 + 3] = std::numeric_limits<float>::infinity();
  kernels::gemm(in.problem, false);
  for (std::int64_t i = 0; i < 30; ++i)
    for (std::int64_t j = 0; j < 40; ++j) REQUIRE(std::isfinite(in.c[i * 40 + j]) == (i != 7));
}

TEST_CASE(
    "gemm of depth 0 gives zeros, or leaves C when accumulating; without rows, columns or groups it does nothing") {
  instance<float> in(5, 7, 0, false, false, 2, grouping::batched, edge::back, 1);
  const std::vector<float> before(in.c.begin(), in.c.end());
  in.problem.accumulate = true;
  kernels::gemm(in.problem, true);
  REQUIRE(std::vector<float>(in.c.begin(), in.c.end()) == before);
  require_naive(in, false);
  instance<float> no_rows(0, 7, 3), no_columns(5, 0, 3), no_groups(5, 7, 3);
  no_groups.problem.groups = 0;
  const std::vector<float> kept(no_groups.c.begin(), no_groups.c.end());
  for (auto* empty : {&no_rows, &no_columns, &no_groups}) kernels::gemm(empty->problem, true);
  REQUIRE(std::vector<float>(no_groups.c.begin(), no_groups.c.end()) == kept);
}

TEST_CASE("gemm takes pointers of any alignment") {
  for (std::int64_t shift = 1; shift < 16; ++shift) {
    instance<float> in(26, 45, 33);
    std::vector<float> a(static_cast<std::size_t>(in.a.size() + 16)), b(static_cast<std::size_t>(in.b.size() + 16));
    std::copy(in.a.begin(), in.a.end(), a.begin() + shift);
    std::copy(in.b.begin(), in.b.end(), b.begin() + shift);
    kernels::gemm(in.problem, false);
    const std::vector<float> aligned(in.c.begin(), in.c.end());
    in.problem.a = a.data() + shift, in.problem.b = b.data() + shift;
    kernels::gemm(in.problem, false);
    REQUIRE(same_bits(in.c.data(), aligned.data(), in.c.size()));
  }
}

TEMPLATE_TEST_CASE("gemm gives the same bits on 1, 2 and 4 threads and without TBB", "", float, double) {
  for (const grouping kind : {grouping::batched, grouping::shared_b, grouping::summed_c})
    for (const auto [m, n, k, groups] : {std::array<std::int64_t, 4>{130, 140, 530, 3},
                                         {32, 256, 784, 8},
                                         {12, 32, 3000, 1},
                                         {500, 10, 128, 1},
                                         {12, 700, 300, 1},
                                         {24, 256, 300, 1},
                                         {1, 700, 300, 2}})
      for (const bool b_transposed : {false, true}) {
        const instance<TestType> in(m, n, k, false, b_transposed, groups, kind);
        const auto serial = product<TestType>(in, false, kernels::gemm<TestType>, false);
        for (const int threads : {1, 2, 4})
          on_threads(threads, [&] {
            const auto c = product<TestType>(in, false, kernels::gemm<TestType>, true);
            REQUIRE(same_bits(c.data(), serial.data(), in.c.size()));
          });
      }
}

TEST_CASE("gemm gives the same bits however its operands are stored") {
  const std::int64_t m = 61, n = 75, k = 700;
  const instance<float> plain(m, n, k);
  const auto expected = product<float>(plain, false, kernels::gemm<float>, false);
  for (int form = 1; form < 4; ++form) {
    instance<float> in(m, n, k, form & 1, form & 2, 1, grouping::batched, edge::front, 1);
    const auto& p = in.problem;
    for (std::int64_t d = 0; d < k; ++d) {
      for (std::int64_t i = 0; i < m; ++i) in.a[p.a_transposed ? d * p.lda + i : i * p.lda + d] = plain.a[i * k + d];
      for (std::int64_t j = 0; j < n; ++j) in.b[p.b_transposed ? j * p.ldb + d : d * p.ldb + j] = plain.b[d * n + j];
    }
    kernels::gemm(p, true);
    for (std::int64_t i = 0; i < m; ++i) REQUIRE(same_bits(in.c.data() + i * p.ldc, expected.data() + i * n, n));
  }
}

TEST_CASE("gemm of rows or columns cut into shards has the bits of the whole") {
  const std::int64_t m = 256, n = 96, k = 784, shards = 8;
  const instance<float> whole(m, n, k);
  const auto expected = product<float>(whole, false, kernels::gemm<float>, false);
  std::vector<float> c(expected.size());
  gemm_problem<float> rows = whole.problem;
  rows.c = c.data(), rows.m = m / shards, rows.groups = shards;
  rows.a_stride = rows.m * k, rows.b_stride = 0, rows.c_stride = rows.m * n;
  kernels::gemm(rows, true);
  REQUIRE(same_bits(c.data(), expected.data(), m * n));
  gemm_problem<float> columns = whole.problem;
  columns.c = c.data(), columns.n = n / shards, columns.groups = shards;
  columns.a_stride = 0, columns.b_stride = columns.n, columns.c_stride = columns.n;
  std::fill(c.begin(), c.end(), 0.0f);
  kernels::gemm(columns, true);
  REQUIRE(same_bits(c.data(), expected.data(), m * n));
}

TEMPLATE_TEST_CASE("gemm of a few columns has the bits it has in a wider product", "", float, double) {
  const std::int64_t m = 301, n = 40, k = 300;
  for (int form = 0; form < 4; ++form)
    for (const bool accumulate : {false, true}) {
      const instance<TestType> whole(m, n, k, form & 1, form & 2);
      const auto expected = product<TestType>(whole, accumulate, kernels::gemm<TestType>, false);
      for (const std::int64_t columns : {1, 2, 3, 8, 10, 15, 16, 17})
        for (const std::int64_t ldc : {columns, columns + 3}) {
          const std::int64_t first = n - columns;
          std::vector<TestType> c(static_cast<std::size_t>(m * ldc), TestType{7});
          for (std::int64_t i = 0; i < m; ++i) std::copy_n(whole.c.data() + i * n + first, columns, c.data() + i * ldc);
          gemm_problem<TestType> p = whole.problem;
          p.b += form & 2 ? first * p.ldb : first;
          p.n = columns, p.ldc = ldc, p.c = c.data(), p.accumulate = accumulate;
          kernels::gemm(p, true);
          for (std::int64_t i = 0; i < m; ++i) {
            REQUIRE(same_bits(c.data() + i * ldc, expected.data() + i * n + first, columns));
            REQUIRE(
                std::all_of(c.data() + i * ldc + columns, c.data() + (i + 1) * ldc, [](TestType x) { return x == 7; }));
          }
        }
    }
}

TEST_CASE("gemm summed over shards of the depth has the bits of the whole") {
  const std::int64_t m = 100, n = 90, k = 256 * 3, shards = 8;
  const instance<float> whole(m, n, k, true, false);
  const auto expected = product<float>(whole, false, kernels::gemm<float>, false);
  std::vector<float> c(expected.size());
  gemm_problem<float> p = whole.problem;
  p.c = c.data(), p.k = k / shards, p.groups = shards;
  p.a_stride = p.k * m, p.b_stride = p.k * n, p.c_stride = 0;
  kernels::gemm(p, true);
  REQUIRE(same_bits(c.data(), expected.data(), m * n));
}

TEST_CASE("gemm called from many tasks at once, each of them parallel, has the bits of calls one by one") {
  constexpr std::int64_t tasks = 24;
  std::vector<std::unique_ptr<instance<float>>> problems;
  std::vector<std::vector<float>> expected;
  for (std::int64_t i = 0; i < tasks; ++i) {
    const bool low = i % 4 == 3;  // a few rows times a transposed matrix
    problems.push_back(low ? std::make_unique<instance<float>>(i % 8 == 3 ? 16 : 32, 700, 330, false, true)
                           : std::make_unique<instance<float>>(40 + 7 * i, 64 + 3 * i, 200 + 31 * i, i & 1, i & 2));
    expected.push_back(product<float>(*problems.back(), false, kernels::gemm<float>, false));
  }
  for (const int threads : {2, 4})
    on_threads(threads, [&] {
      for (int round = 0; round < 20; ++round) {
        std::vector<char> same(static_cast<std::size_t>(tasks));
        kernels::parallel_for(tasks, true, [&](std::int64_t i) {
          const auto at = static_cast<std::size_t>(i);
          const auto c = product<float>(*problems[at], false, kernels::gemm<float>, true);
          same[at] = same_bits(c.data(), expected[at].data(), problems[at]->c.size());
        });
        REQUIRE(same == std::vector<char>(same.size(), true));
      }
    });
}

TEST_CASE("gemm allocates nothing once its thread has run one") {
  const instance<float> in(100, 100, 600, true, true);
  kernels::gemm(in.problem, false);
  const long before = allocations;
  for (int i = 0; i < 3; ++i) kernels::gemm(in.problem, false);
  REQUIRE(allocations == before);
}

TEST_CASE("gemm refuses negative sizes and leading dimensions shorter than a row") {
  const instance<float> in(5, 7, 3);
  const auto message = [&](auto&& change) {
    gemm_problem<float> p = in.problem;
    change(p);
    try {
      kernels::gemm(p, false);
    } catch (const tessera::shape_error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  REQUIRE(message([](auto& p) { p.m = -1; }) == "tessera: gemm: m is -1; it must be at least 0");
  REQUIRE(message([](auto& p) { p.n = -2; }) == "tessera: gemm: n is -2; it must be at least 0");
  REQUIRE(message([](auto& p) { p.k = -3; }) == "tessera: gemm: k is -3; it must be at least 0");
  REQUIRE(message([](auto& p) { p.groups = -4; }) == "tessera: gemm: groups is -4; it must be at least 0");
  REQUIRE(message([](auto& p) { p.lda = 2; }) ==
          "tessera: gemm: lda is 2; it must be at least the length of a stored row of A, 3");
  REQUIRE(message([](auto& p) { p.ldb = 6; }) ==
          "tessera: gemm: ldb is 6; it must be at least the length of a stored row of B, 7");
  REQUIRE(message([](auto& p) { p.ldc = 6; }) ==
          "tessera: gemm: ldc is 6; it must be at least the length of a row of C, 7");
}

}  // namespace
