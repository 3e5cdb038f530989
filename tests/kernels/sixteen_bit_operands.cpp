// SPDX-License-Identifier: Apache-2.0
// Kernels that read 16-bit numbers give the bits of the same kernels on those numbers as floats.
#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include <tessera/kernels/gemm.hpp>
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
  const auto multiply = [&]<class U>(const U* left, const U* right, float* to) {
    kernels::gemm_problem<U> p;
    p.m = m, p.n = n, p.k = k, p.a_transposed = a_transposed, p.b_transposed = b_transposed;
    p.a = left, p.b = right, p.c = to;
    p.lda = a_transposed ? m : k, p.ldb = b_transposed ? k : n, p.ldc = n;
    kernels::gemm(p, true);
  };
  multiply(a.data(), b.data(), c.data());
  multiply(wide_a.data(), wide_b.data(), expected.data());
  INFO(m << " x " << n << " x " << k << (a_transposed ? " A^T" : "") << (b_transposed ? " B^T" : ""));
  CHECK(same_bits(c.data(), expected.data(), m * n));
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
