// SPDX-License-Identifier: Apache-2.0
// Work that runs along with a product gives the bits of the same work before or after it, and is done once.
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include <tessera/kernels/gemm.hpp>
#include <tessera/kernels/naive.hpp>

#include "support.hpp"

namespace {

namespace kernels = tessera::kernels;
using namespace kernel_test;
using kernels::gemm_problem;
using tessera::bfloat16;
using tessera::compute_t;
using tessera::float16;

/// A stored matrix of all groups, and how it is read: x * x + 1.
template <class T>
struct stored {
  std::vector<T> data;
  std::int64_t leading = 0;
  std::int64_t stride = 0;

  static T change(T x) { return static_cast<T>(compute_t<T>{x} * compute_t<T>{x} + compute_t<T>{1}); }

  static void run(const void* context, std::int64_t group, std::int64_t row, std::int64_t rows, std::int64_t column,
                  std::int64_t columns, T* to, std::int64_t leading) {
    const auto& from = *static_cast<const stored*>(context);
    if (from.stride == 0 && group != 0) throw tessera::shape_error("a source of one group is asked for another");
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        to[i * leading + j] =
            change(from.data.at(static_cast<std::size_t>(group * from.stride + (row + i) * from.leading + column + j)));
  }

  stored changed() const {
    stored copy = *this;
    for (T& x : copy.data) x = change(x);
    return copy;
  }
};

template <class T>
stored<T> make(std::int64_t rows, std::int64_t columns, std::int64_t groups, unsigned seed) {
  stored<T> made;
  made.leading = columns, made.stride = groups > 1 ? rows * columns : 0;
  made.data.resize(static_cast<std::size_t>(groups * rows * columns));
  fill_random(made.data, seed);
  return made;
}

/// Writes 3 c + 1 over C and counts how often each element was there.
template <class T>
struct finishing {
  gemm_problem<T> problem;
  mutable std::vector<std::atomic<int>> seen;

  explicit finishing(const gemm_problem<T>& p)
      : problem(p), seen(static_cast<std::size_t>((p.c_stride == 0 ? 1 : p.groups) * p.m * p.n)) {}

  static void run(const void* context, std::int64_t group, std::int64_t row, std::int64_t rows, std::int64_t column,
                  std::int64_t columns) {
    const auto& self = *static_cast<const finishing*>(context);
    const auto& p = self.problem;
    for (std::int64_t i = row; i < row + rows; ++i)
      for (std::int64_t j = column; j < column + columns; ++j) {
        auto& c = p.c[group * p.c_stride + i * p.ldc + j];
        c = 3 * c + 1;
        ++self.seen[static_cast<std::size_t>((group * p.m + i) * p.n + j)];
      }
  }
};

struct sizes {
  std::int64_t m, n, k, groups;
  bool shared_b, summed;
};

constexpr sizes cases[] = {
    {1, 1, 1, 1, false, false},      {5, 10, 0, 2, false, false},     {13, 33, 17, 1, false, false},
    {97, 300, 530, 1, false, false}, {300, 700, 70, 1, false, false}, {7, 3000, 260, 1, false, false},
    {1300, 40, 40, 1, false, false}, {33, 65, 40, 3, false, false},   {130, 90, 300, 3, true, false},
    {20, 70, 32, 9, false, true},    {61, 40, 300, 3, false, true},   {40, 100, 2100, 1, false, false},
    {300, 1, 530, 1, false, false},  {70, 1, 130, 3, true, false},    {40, 1, 300, 3, false, true},
    {300, 10, 130, 1, false, false}, {70, 3, 130, 3, true, false},    {50, 7, 300, 3, false, true},
    {600, 16, 40, 2, false, false},  {41, 700, 330, 2, false, false}, {32, 700, 330, 2, false, false},
    {16, 700, 330, 2, false, false}, {32, 700, 330, 3, true, false},  {16, 700, 330, 3, true, false},
    {32, 700, 330, 3, false, true},  {16, 700, 330, 3, false, true},  {3, 260, 330, 2, false, false},
    {9, 260, 330, 2, true, false},
};

template <class T>
gemm_problem<T> problem_of(const sizes& s, int form, const stored<T>& a, const stored<T>& b, std::int64_t ldc) {
  gemm_problem<T> p;
  p.m = s.m, p.n = s.n, p.k = s.k, p.groups = s.groups;
  p.a_transposed = form & 1, p.b_transposed = form & 2;
  p.a = a.data.data(), p.lda = a.leading, p.a_stride = a.stride;
  p.b = b.data.data(), p.ldb = b.leading, p.b_stride = b.stride;
  p.ldc = ldc, p.c_stride = s.summed ? 0 : s.m * ldc;
  return p;
}

/// All four ways of reading or making operands give one result; finishing work then changes each of its elements once.
template <class T>
void check(const sizes& s, int form, bool accumulate) {
  const auto a = make<T>(form & 1 ? s.k : s.m, form & 1 ? s.m : s.k, s.groups, 1);
  const auto b = make<T>(form & 2 ? s.n : s.k, form & 2 ? s.k : s.n, s.shared_b ? 1 : s.groups, 2);
  const auto changed_a = a.changed(), changed_b = b.changed();
  gemm_problem<T> p = problem_of(s, form, changed_a, changed_b, s.n == 1 ? 1 : s.n + 3);
  p.accumulate = accumulate;
  std::vector<compute_t<T>> before(static_cast<std::size_t>(s.groups * s.m * p.ldc));
  fill_random(before, 3);
  auto expected = before;
  p.c = expected.data();
  kernels::gemm(p, false);
  finishing<T> afterwards(p);
  for (std::int64_t g = 0; g < (s.summed ? 1 : s.groups); ++g) finishing<T>::run(&afterwards, g, 0, s.m, 0, s.n);
  for (int made = 0; made < 4; ++made)
    for (const int threads : {1, 4}) {
      auto c = before;
      gemm_problem<T> q = p;
      q.c = c.data();
      if (made & 1) q.a = nullptr, q.lda = 0, q.a_source = {stored<T>::run, &a};
      if (made & 2) q.b = nullptr, q.ldb = 0, q.b_source = {stored<T>::run, &b};
      const finishing<T> along(q);
      q.finish = {finishing<T>::run, &along};
      on_threads(threads, [&] { kernels::gemm(q, threads > 1); });
      INFO(s.m << " x " << s.k << " x " << s.n << ", groups " << s.groups << ", form " << form << ", made " << made
               << ", threads " << threads);
      std::int64_t not_once = 0;
      for (const auto& times : along.seen) not_once += times != 1;
      REQUIRE(not_once == 0);
      REQUIRE(same_bits(c.data(), expected.data(), static_cast<std::int64_t>(c.size())));
    }
}

TEMPLATE_TEST_CASE("operands made while they are packed and work on finished elements give the bits of three passes",
                   "", float, double, bfloat16, float16) {
  for (const sizes& s : cases)
    for (int form = 0; form < 4; ++form) check<TestType>(s, form, (s.m + form) % 2 == 0);
}

TEST_CASE("finishing work is told of no empty part where threads are more than columns") {
  const sizes s{16, 40, 16000, 1, false, false};
  const auto a = make<double>(s.m, s.k, 1, 1), b = make<double>(s.n, s.k, 1, 2);
  gemm_problem<double> p = problem_of(s, 2, a, b, s.n);
  std::vector<double> c(static_cast<std::size_t>(s.m * s.n)), expected(c.size());
  p.c = expected.data();
  kernels::gemm(p, false);
  const finishing<double> afterwards(p);
  finishing<double>::run(&afterwards, 0, 0, s.m, 0, s.n);
  p.c = c.data();
  const finishing<double> along(p);
  p.finish = {finishing<double>::run, &along};
  on_threads(64, [&] { kernels::gemm(p, true); });
  REQUIRE(same_bits(c.data(), expected.data(), s.m * s.n));
}

TEST_CASE("the naive product asks its sources and tells of finished elements, too") {
  const sizes s{7, 9, 11, 2, true, false};
  const auto a = make<float>(s.m, s.k, s.groups, 1), b = make<float>(s.k, s.n, 1, 2);
  const auto changed_a = a.changed(), changed_b = b.changed();
  gemm_problem<float> p = problem_of(s, 0, changed_a, changed_b, s.n);
  std::vector<float> expected(static_cast<std::size_t>(s.groups * s.m * s.n)), c(expected.size());
  p.c = expected.data();
  kernels::naive::gemm(p);
  for (float& x : expected) x = 3 * x + 1;
  p.c = c.data(), p.a = p.b = nullptr;
  p.a_source = {stored<float>::run, &a}, p.b_source = {stored<float>::run, &b};
  const finishing<float> along(p);
  p.finish = {finishing<float>::run, &along};
  kernels::naive::gemm(p);
  REQUIRE(c == expected);
}

TEST_CASE("finishing work and sources come in rectangles that are worth a call") {
  struct count {
    std::atomic<std::int64_t> rows{0}, elements{0};
    static void make(const void* context, std::int64_t, std::int64_t, std::int64_t rows, std::int64_t,
                     std::int64_t columns, float* to, std::int64_t leading) {
      for (std::int64_t i = 0; i < rows; ++i) std::fill_n(to + i * leading, columns, 1.0F);
      add(context, rows, columns);
    }
    static void finish(const void* context, std::int64_t, std::int64_t, std::int64_t rows, std::int64_t,
                       std::int64_t columns) {
      add(context, rows, columns);
    }
    static void add(const void* context, std::int64_t rows, std::int64_t columns) {
      auto& self = *static_cast<count*>(const_cast<void*>(context));
      self.rows += rows, self.elements += rows * columns;
    }
  };
  for (int form = 0; form < 4; ++form) {
    count a, b, c;
    gemm_problem<float> p;
    std::vector<float> product(std::size_t{1000 * 1000});
    p.m = p.n = p.k = p.ldc = 1000, p.c = product.data();
    p.a_transposed = form & 1, p.b_transposed = form & 2;
    p.a_source = {count::make, &a}, p.b_source = {count::make, &b}, p.finish = {count::finish, &c};
    kernels::gemm(p, false);
    CHECK(c.elements == 1000 * 1000);
    CHECK(b.elements == 1000 * 1000);
    CHECK(a.elements <= 4 * 1000 * 1000);
    constexpr std::int64_t depth =
        1000 / kernels::detail::ceil_div(1000, kernels::detail::gemm_depth);  // of a block, in equal parts
    for (const count* made : {&a, &b, &c}) CHECK(made->elements / made->rows >= depth);
    CHECK(std::all_of(product.begin(), product.end(), [](float x) { return x == 1000; }));
  }
}

}  // namespace
