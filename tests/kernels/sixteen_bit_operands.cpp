// SPDX-License-Identifier: Apache-2.0
// Kernels that read 16-bit numbers give the bits of the same kernels on those numbers as floats.
#include <atomic>
#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include <tessera/kernels/gemm.hpp>
#include <tessera/kernels/gemm_rounded.hpp>
#include <tessera/kernels/naive.hpp>
#include <tessera/kernels/reduce.hpp>

#include "support.hpp"

namespace {

namespace kernels = tessera::kernels;
using namespace kernel_test;
using kernels::reduce_kind;
using tessera::bfloat16;
using tessera::float16;

template <class T>
std::vector<float> widened(const guarded<T>& from) {
  std::vector<float> wide;
  for (std::int64_t i = 0; i < from.size(); ++i) wide.push_back(float{from[i]});
  return wide;
}

std::vector<float> magnitudes(std::vector<float> x) {
  for (float& value : x) value = std::abs(value);
  return x;
}

using gemm_of_small = kernels::gemm_problem<bfloat16>;

/// Random numbers with special ones among them.
template <class T>
void fill(guarded<T>& values, unsigned seed) {
  fill_random(values, seed);
  const std::vector<T> special = special_numbers<T>();
  std::mt19937 bits(seed + 1);
  for (T& x : values)
    if (bits() % 50 == 0) x = special[bits() % special.size()];
}

template <class T>
void check_product(std::int64_t m, std::int64_t n, std::int64_t k, bool a_transposed, bool b_transposed, edge side) {
  guarded<T> a(m * k, side), b(k * n, side);
  fill_random(a, 3), fill_random(b, 4);
  const std::vector<float> wide_a = widened(a), wide_b = widened(b);
  guarded<float> c(m * n, side);
  std::vector<float> expected(static_cast<std::size_t>(m * n));
  std::vector<float> scale(static_cast<std::size_t>(m * n));
  const auto multiply = [&]<class U>(const U* left, const U* right, float* to) {
    kernels::gemm_problem<U> p;
    p.m = m, p.n = n, p.k = k, p.a_transposed = a_transposed, p.b_transposed = b_transposed;
    p.a = left, p.b = right, p.c = to;
    p.lda = a_transposed ? m : k, p.ldb = b_transposed ? k : n, p.ldc = n;
    kernels::gemm(p, true);
  };
  multiply(a.data(), b.data(), c.data());
  multiply(wide_a.data(), wide_b.data(), expected.data());
  multiply(magnitudes(wide_a).data(), magnitudes(wide_b).data(), scale.data());
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < m * n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    wrong += !close(c[i], expected[at], static_cast<float>(k) * epsilon<float> * scale[at]);
  }
  INFO(m << " x " << n << " x " << k << (a_transposed ? " A^T" : "") << (b_transposed ? " B^T" : ""));
  CHECK(wrong == 0);
}

std::vector<float> bits_of_product(const gemm_of_small& p) {
  std::vector<float> c(static_cast<std::size_t>(p.m * p.n));
  gemm_of_small run = p;
  run.c = c.data();
  kernels::gemm(run, true);
  return c;
}

}  // namespace

TEMPLATE_TEST_CASE("a product of 16-bit numbers is summed in float", "", bfloat16, float16) {
  for (std::int64_t m : {1, 5, 13, 40})
    for (std::int64_t n : {1, 10, 33, 64})
      for (std::int64_t k : {1, 7, 65, 600})
        for (const bool at : {false, true})
          for (const bool bt : {false, true})
            for (const edge side : {edge::front, edge::back}) check_product<TestType>(m, n, k, at, bt, side);
}

TEST_CASE("an element of a product of bfloat16 has the same bits in any matrix, stored in any way, on any thread") {
  constexpr std::int64_t m = 70, n = 65, k = 2500;
  guarded<bfloat16> a(m * k, edge::back), b(k * n, edge::back), turned_a(k * m, edge::back),
      turned_b(n * k, edge::back);
  fill_random(a, 1), fill_random(b, 2);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t p = 0; p < k; ++p) turned_a[p * m + i] = a[i * k + p];
  for (std::int64_t p = 0; p < k; ++p)
    for (std::int64_t j = 0; j < n; ++j) turned_b[j * k + p] = b[p * n + j];
  gemm_of_small whole;
  whole.m = m, whole.n = n, whole.k = k, whole.a = a.data(), whole.b = b.data();
  whole.lda = k, whole.ldb = whole.ldc = n;
  std::vector<float> expected;
  on_threads(1, [&] { expected = bits_of_product(whole); });
  gemm_of_small turned = whole;
  turned.a_transposed = turned.b_transposed = true, turned.a = turned_a.data(), turned.b = turned_b.data();
  turned.lda = m, turned.ldb = k;
  for (const int threads : {1, 2, 4})
    on_threads(threads, [&] { CHECK(same_bits(bits_of_product(turned).data(), expected.data(), m * n)); });
  gemm_of_small corner = whole;
  corner.m = 33, corner.n = 1, corner.a = a.data() + 37 * k, corner.b = b.data() + 64, corner.ldc = 1;
  const std::vector<float> found = bits_of_product(corner);
  for (std::int64_t i = 0; i < 33; ++i)
    CHECK(found[static_cast<std::size_t>(i)] == expected[static_cast<std::size_t>((37 + i) * n + 64)]);
}

TEST_CASE("groups of products of bfloat16 are apart, or summed") {
  constexpr std::int64_t m = 20, n = 40, k = 50, groups = 3;
  guarded<bfloat16> a(groups * m * k, edge::back), b(groups * k * n, edge::back);
  fill_random(a, 1), fill_random(b, 2);
  gemm_of_small one;
  one.m = m, one.n = n, one.k = k, one.lda = k, one.ldb = one.ldc = n;
  std::vector<float> apart, sums(static_cast<std::size_t>(m * n));
  for (std::int64_t g = 0; g < groups; ++g) {
    one.a = a.data() + g * m * k, one.b = b.data() + g * k * n;
    const std::vector<float> product = bits_of_product(one);
    apart.insert(apart.end(), product.begin(), product.end());
  }
  gemm_of_small all = one;
  all.a = a.data(), all.b = b.data(), all.groups = groups, all.a_stride = m * k, all.b_stride = k * n;
  all.c_stride = m * n;
  std::vector<float> found(apart.size());
  all.c = found.data();
  kernels::gemm(all, true);
  CHECK(found == apart);
  all.c_stride = 0, all.c = sums.data();
  kernels::gemm(all, true);
  for (std::size_t i = 0; i < sums.size(); ++i)
    CHECK(std::abs(sums[i] - (apart[i] + apart[i + sums.size()] + apart[i + 2 * sums.size()])) < 1e-5F);
}

TEMPLATE_TEST_CASE("16-bit numbers are reduced in float", "", bfloat16, float16) {
  for (const reduce_kind kind : {reduce_kind::sum, reduce_kind::max, reduce_kind::min, reduce_kind::prod})
    for (const auto& [outer, n, inner] : std::vector<std::array<std::int64_t, 3>>{
             {1, 0, 3}, {2, 1, 1}, {3, 97, 1}, {1, 70001, 1}, {2, 33, 7}, {1, 200, 65}, {3, 64, 16}})
      for (const edge side : {edge::front, edge::back}) {
        guarded<TestType> in(outer * n * inner, side);
        fill(in, 5);
        const std::vector<float> wide = widened(in);
        guarded<float> out(outer * inner, side);
        std::vector<float> expected(static_cast<std::size_t>(outer * inner));
        kernels::reduce(kind, in.data(), out.data(), outer, n, inner, true);
        kernels::reduce(kind, wide.data(), expected.data(), outer, n, inner, true);
        CHECK(same_bits(out.data(), expected.data(), outer * inner));
      }
}

TEMPLATE_TEST_CASE("shards of 16-bit numbers are added up in float and rounded once", "", bfloat16, float16) {
  for (const int shards : {1, 2, 5, 8})
    for (const std::int64_t n : {1, 17, 100}) {
      std::vector<std::unique_ptr<guarded<TestType>>> in;
      std::vector<std::vector<float>> wide;
      std::vector<const TestType*> small;
      std::vector<const float*> large;
      for (int s = 0; s < shards; ++s) {
        in.push_back(std::make_unique<guarded<TestType>>(n, edge::back));
        fill(*in.back(), static_cast<unsigned>(s));
        wide.push_back(widened(*in.back()));
        small.push_back(in.back()->data()), large.push_back(wide.back().data());
      }
      guarded<TestType> out(n, edge::back);
      std::vector<TestType> naive(static_cast<std::size_t>(n));
      std::vector<float> expected(static_cast<std::size_t>(n));
      kernels::add_shards(reduce_kind::sum, out.data(), small.data(), shards, n, true);
      kernels::naive::add_shards(reduce_kind::sum, naive.data(), small.data(), shards, n);
      kernels::add_shards(reduce_kind::sum, expected.data(), large.data(), shards, n, true);
      for (std::int64_t i = 0; i < n; ++i) {
        CHECK(out[i].bits() == TestType(expected[static_cast<std::size_t>(i)]).bits());
        CHECK((out[i].bits() == naive[static_cast<std::size_t>(i)].bits() || out[i] != out[i]));
      }
    }
}

TEST_CASE("long sums of 16-bit numbers lose nothing") {
  const std::vector<bfloat16> brain(70000, bfloat16(1));
  const std::vector<float16> half(20000, float16(1));
  float sum = 0;
  kernels::reduce(reduce_kind::sum, brain.data(), &sum, 1, 70000, 1, true);
  CHECK(sum == 70000);
  kernels::reduce(reduce_kind::sum, half.data(), &sum, 1, 20000, 1, true);
  CHECK(sum == 20000);
}

namespace {

/// The product by way of a float array, rounded at the end.
template <class T>
std::vector<T> rounded_later(const kernels::gemm_problem<T>& p, std::int64_t elements) {
  std::vector<float> c(static_cast<std::size_t>(elements));
  kernels::gemm_problem<T> run = p;
  run.c = c.data();
  kernels::gemm(run, true);
  std::vector<T> result;
  for (const float x : c) result.push_back(T(x));
  return result;
}

/// Counts how often finishing work sees each element, and with the value it has at last.
template <class T>
struct seen_elements {
  const T* c;
  std::int64_t m, n;
  std::vector<std::atomic<int>> times = std::vector<std::atomic<int>>(0);
  std::vector<T> values{};

  static void run(const void* context, std::int64_t group, std::int64_t row, std::int64_t rows, std::int64_t column,
                  std::int64_t columns) {
    auto& seen = *const_cast<seen_elements*>(static_cast<const seen_elements*>(context));
    for (std::int64_t i = row; i < row + rows; ++i)
      for (std::int64_t j = column; j < column + columns; ++j) {
        const auto at = static_cast<std::size_t>((group * seen.m + i) * seen.n + j);
        ++seen.times[at];
        seen.values[at] = seen.c[at];
      }
  }
};

template <class T>
void check_rounded(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t groups, bool a_transposed,
                   bool b_transposed, bool shared, bool made, edge side) {
  guarded<T> a(groups * m * k, side), b((shared ? 1 : groups) * k * n, side), c(groups * m * n, side);
  fill_random(a, 5), fill_random(b, 6);
  kernels::gemm_problem<T> p;
  p.m = m, p.n = n, p.k = k, p.groups = groups, p.a_transposed = a_transposed, p.b_transposed = b_transposed;
  p.a = a.data(), p.b = b.data();
  p.lda = a_transposed ? m : k, p.ldb = b_transposed ? k : n, p.ldc = n;
  p.a_stride = m * k, p.b_stride = shared ? 0 : k * n, p.c_stride = m * n;
  const std::vector<T> expected = rounded_later(p, groups * m * n);
  struct stored {
    const T* data;
    std::int64_t stride, leading;
    static void copy(const void* context, std::int64_t group, std::int64_t row, std::int64_t rows, std::int64_t column,
                     std::int64_t columns, T* to, std::int64_t leading) {
      const auto& s = *static_cast<const stored*>(context);
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j)
          to[i * leading + j] = s.data[group * s.stride + (row + i) * s.leading + column + j];
    }
  };
  const stored whole_a{p.a, p.a_stride, p.lda}, whole_b{p.b, p.b_stride, p.ldb};
  if (made) {
    p.a_source = {&stored::copy, &whole_a}, p.b_source = {&stored::copy, &whole_b};
    p.a = p.b = nullptr;
  }
  seen_elements<T> seen{c.data(), m, n};
  seen.times = std::vector<std::atomic<int>>(static_cast<std::size_t>(groups * m * n));
  seen.values.resize(static_cast<std::size_t>(groups * m * n));
  p.finish = {&seen_elements<T>::run, &seen};
  p.rounded = c.data();
  kernels::gemm_rounded(p, true);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < groups * m * n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    wrong += c[i].bits() != expected[at].bits() || seen.times[at] != 1 || seen.values[at].bits() != c[i].bits();
  }
  INFO(m << " x " << n << " x " << k << ", " << groups << " groups");
  CHECK(wrong == 0);
}

}  // namespace

TEMPLATE_TEST_CASE("a product that is rounded block by block has the bits of one rounded at the end", "", bfloat16,
                   float16) {
  on_threads(2, [] {
    for (const edge side : edges)
      for (const bool made : {false, true})
        for (const bool at : {false, true})
          for (const bool bt : {false, true}) {
            check_rounded<TestType>(7, 33, 20, 1, at, bt, false, made, side);
            check_rounded<TestType>(530, 70, 300, 1, at, bt, false, made, side);
            check_rounded<TestType>(40, 1030, 64, 1, at, bt, false, made, side);
            check_rounded<TestType>(20, 40, 50, 3, at, bt, false, made, side);
            check_rounded<TestType>(20, 40, 50, 3, at, bt, true, made, side);
          }
  });
}

TEST_CASE("groups that are summed are rounded once, and a product of depth 0 is zeros") {
  constexpr std::int64_t m = 20, n = 40, k = 50, groups = 3;
  guarded<bfloat16> a(groups * m * k, edge::back), b(groups * k * n, edge::back), c(m * n, edge::back);
  fill_random(a, 1), fill_random(b, 2);
  gemm_of_small p;
  p.m = m, p.n = n, p.k = k, p.groups = groups, p.a = a.data(), p.b = b.data(), p.lda = k, p.ldb = p.ldc = n;
  p.a_stride = m * k, p.b_stride = k * n, p.c_stride = 0;
  const std::vector<bfloat16> expected = rounded_later(p, m * n);
  p.rounded = c.data();
  kernels::gemm_rounded(p, true);
  for (std::int64_t i = 0; i < m * n; ++i) CHECK(c[i].bits() == expected[static_cast<std::size_t>(i)].bits());
  p.k = 0, p.lda = 0;
  p.rounded = c.data();
  kernels::gemm_rounded(p, true);
  for (std::int64_t i = 0; i < m * n; ++i) CHECK(c[i].bits() == 0);
}
