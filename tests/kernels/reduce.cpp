// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <tessera/kernels/naive.hpp>
#include <tessera/kernels/reduce.hpp>

#include "support.hpp"

namespace {

namespace kernels = tessera::kernels;
using namespace kernel_test;
using kernels::reduce_kind;

constexpr reduce_kind kinds[] = {reduce_kind::sum, reduce_kind::max, reduce_kind::min, reduce_kind::prod};

constexpr bool is_extremum(reduce_kind kind) { return kind == reduce_kind::max || kind == reduce_kind::min; }

/// Each order of summation is within n roundings of the exact sum, times the sum of absolute values; each order of
/// multiplication within n roundings of the exact product, unless that is subnormal; all else is exact.
template <class T>
bool agrees(reduce_kind kind, T value, T expected, std::int64_t n, T sum_of_magnitudes) {
  if constexpr (std::is_floating_point_v<T>) {
    const T roundings = static_cast<T>(2 * n) * epsilon<T>;
    if (kind == reduce_kind::prod)
      return close(value, expected, roundings * std::abs(expected) + std::numeric_limits<T>::min());
    return close(value, expected, kind == reduce_kind::sum ? roundings * sum_of_magnitudes : T(0));
  } else {
    return value == expected;
  }
}

template <class T>
void require_naive(reduce_kind kind, const guarded<T>& in, std::int64_t outer, std::int64_t n, std::int64_t inner,
                   edge side) {
  guarded<T> out(outer * inner, side), expected(outer * inner, side), scale(outer * inner, side);
  kernels::reduce(kind, in.data(), out.data(), outer, n, inner, true);
  kernels::naive::reduce(kind, in.data(), expected.data(), outer, n, inner);
  if constexpr (std::is_floating_point_v<T>) {
    std::vector<T> magnitude(in.data(), in.data() + in.size());
    for (T& x : magnitude) x = std::abs(x);
    kernels::naive::reduce(reduce_kind::sum, magnitude.data(), scale.data(), outer, n, inner);
  }
  INFO("kind " << static_cast<int>(kind) << " outer " << outer << " n " << n << " inner " << inner);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < out.size(); ++i)
    if (!agrees(kind, out[i], expected[i], n, scale[i])) ++wrong;
  REQUIRE(wrong == 0);
}

TEMPLATE_TEST_CASE("reduce is the naive loop for rows, columns and whole arrays of odd sizes", "", float, double,
                   std::int32_t, std::uint32_t, bool) {
  for (const reduce_kind kind : kinds) {
    if (std::is_same_v<TestType, bool> && !is_extremum(kind)) continue;
    for (std::int64_t outer : {1, 3})
      for (std::int64_t inner : {1, 2, 3, 7, 15, 16, 17, 31, 63, 64, 65, 130})
        for (std::int64_t n : {0, 1, 2, 5, 31, 32, 33, 63, 64, 65, 97, 200})
          for (const edge side : {edge::front, edge::back}) {
            guarded<TestType> in(outer * n * inner, side);
            fill_random(in, 5);
            require_naive(kind, in, outer, n, inner, side);
          }
  }
}

TEMPLATE_TEST_CASE("reduce is the naive loop for lines long enough to be cut into parts", "", float, double,
                   std::int32_t, bool) {
  for (const reduce_kind kind : kinds) {
    if (std::is_same_v<TestType, bool> && !is_extremum(kind)) continue;
    for (const auto& [outer, n] :
         {std::pair<std::int64_t, std::int64_t>{1, 1000003}, {2, 131072}, {3, 140001}, {70, 131999}}) {
      guarded<TestType> in(outer * n, edge::back);
      fill_random(in, 6);
      if constexpr (std::is_same_v<TestType, bool>)
        for (auto& x : in) x = kind == reduce_kind::min;
      in[outer * n - 1] = TestType(kind == reduce_kind::max);
      require_naive(kind, in, outer, n, 1, edge::back);
    }
  }
}

TEST_CASE("reduce without rows or columns writes nothing") {
  float out = 7;
  kernels::reduce<float>(reduce_kind::sum, nullptr, &out, 0, 5, 1, true);
  kernels::reduce<float>(reduce_kind::sum, nullptr, &out, 5, 5, 0, true);
  REQUIRE(out == 7);
}

TEST_CASE("reduce of nothing is 0, the least or the greatest value") {
  const auto of_nothing = []<class T>(reduce_kind kind, T start) {
    kernels::reduce<T>(kind, nullptr, &start, 1, 0, 1, false);
    return start;
  };
  REQUIRE(of_nothing(reduce_kind::sum, 5.0f) == 0.0f);
  REQUIRE(of_nothing(reduce_kind::max, 5.0f) == -std::numeric_limits<float>::infinity());
  REQUIRE(of_nothing(reduce_kind::min, 5.0) == std::numeric_limits<double>::infinity());
  REQUIRE(of_nothing(reduce_kind::max, std::int32_t{5}) == std::numeric_limits<std::int32_t>::min());
  REQUIRE(of_nothing(reduce_kind::min, std::uint32_t{5}) == std::numeric_limits<std::uint32_t>::max());
  REQUIRE(of_nothing(reduce_kind::max, true) == false);
  REQUIRE(of_nothing(reduce_kind::min, false) == true);
}

TEST_CASE("sum of ten million ones is ten million, along a line and down columns") {
  constexpr std::int64_t n = 10'000'000;
  const std::vector<float> ones(n, 1.0f);
  float total = 0;
  kernels::reduce(reduce_kind::sum, ones.data(), &total, 1, n, 1, true);
  REQUIRE(total == 1e7f);
  float columns[10] = {};
  kernels::reduce(reduce_kind::sum, ones.data(), columns, 1, n / 10, 10, true);
  for (const float column : columns) REQUIRE(column == 1e6f);
}

TEST_CASE("sum of ten million tenths stays within the stated bound of the exact sum") {
  constexpr std::int64_t n = 10'000'000;
  const std::vector<float> tenths(n, 0.1f);
  const double exact = static_cast<double>(0.1f) * static_cast<double>(n);
  const double bound = (32 + std::log2(static_cast<double>(n))) * std::exp2(-24) * exact;
  float total = 0, naive = 0;
  kernels::reduce(reduce_kind::sum, tenths.data(), &total, 1, n, 1, true);
  REQUIRE(std::abs(static_cast<double>(total) - exact) <= bound);
  kernels::naive::reduce(reduce_kind::sum, tenths.data(), &naive, 1, n, 1);
  REQUIRE(std::abs(static_cast<double>(naive) - exact) > bound);
}

TEMPLATE_TEST_CASE("max and min give NaN wherever the NaN stands", "", float, double) {
  for (const reduce_kind kind : {reduce_kind::max, reduce_kind::min})
    for (std::int64_t n : {1, 2, 17, 64, 100, 300})
      for (std::int64_t at = 0; at < n; ++at) {
        std::vector<TestType> line(static_cast<std::size_t>(n));
        fill_random(line, 8);
        line[static_cast<std::size_t>(at)] = std::numeric_limits<TestType>::quiet_NaN();
        TestType out = 0;
        kernels::reduce(kind, line.data(), &out, 1, n, 1, false);
        REQUIRE(std::isnan(out));
        const TestType* shards[] = {line.data(), line.data()};
        std::vector<TestType> all(line.size());
        kernels::add_shards(kind, all.data(), shards, 2, n, false);
        REQUIRE(std::isnan(all[static_cast<std::size_t>(at)]));
      }
  TestType out[3];
  const TestType nan = std::numeric_limits<TestType>::quiet_NaN();
  const TestType columns[] = {1, nan, 3, 4, 5, nan, 7, 8, 9};
  kernels::reduce(reduce_kind::max, columns, out, 1, 3, 3, false);
  REQUIRE(out[0] == 7);
  REQUIRE(std::isnan(out[1]));
  REQUIRE(std::isnan(out[2]));
}

TEST_CASE("infinities add up as they do in the naive loop") {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> line(100, 1.0f);
  line[3] = inf;
  float out = 0;
  kernels::reduce(reduce_kind::sum, line.data(), &out, 1, 100, 1, false);
  REQUIRE(out == inf);
  line[97] = -inf;
  kernels::reduce(reduce_kind::sum, line.data(), &out, 1, 100, 1, false);
  REQUIRE(std::isnan(out));
}

TEST_CASE("integer sums wrap around") {
  const std::int32_t greatest = std::numeric_limits<std::int32_t>::max();
  for (std::int64_t n : {2, 66}) {
    std::vector<std::int32_t> line(static_cast<std::size_t>(n), 0);
    line.front() = greatest, line.back() = 1;
    std::int32_t out = 0;
    kernels::reduce(reduce_kind::sum, line.data(), &out, 1, n, 1, false);
    REQUIRE(out == std::numeric_limits<std::int32_t>::min());
  }
}

TEST_CASE("reduce gives the same bits on 1, 2 and 4 threads, at any alignment, for one row or many") {
  for (const auto [outer, n, inner] : {std::array<std::int64_t, 3>{1, 1000003, 1},
                                       {40, 3001, 1},
                                       {2, 200000, 1},
                                       {1, 5000, 130},
                                       {7, 700, 10},
                                       {1, 1000, 1500},
                                       {2, 600, 1025},
                                       {70, 33000, 1}}) {
    const auto size = static_cast<std::size_t>(outer * inner);
    std::vector<float> in(static_cast<std::size_t>(outer * n * inner)), expected(size), shifted(in.size() + 16);
    fill_random(in, 9);
    kernels::reduce(reduce_kind::sum, in.data(), expected.data(), outer, n, inner, false);
    for (const int threads : {1, 2, 4})
      on_threads(threads, [&] {
        std::vector<float> out(size);
        kernels::reduce(reduce_kind::sum, in.data(), out.data(), outer, n, inner, true);
        REQUIRE(out == expected);
      });
    for (const std::ptrdiff_t shift : {1, 7}) {
      std::copy(in.begin(), in.end(), shifted.begin() + shift);
      std::vector<float> out(size);
      kernels::reduce(reduce_kind::sum, shifted.data() + shift, out.data(), outer, n, inner, true);
      REQUIRE(out == expected);
    }
    std::vector<float> last(static_cast<std::size_t>(inner));
    kernels::reduce(reduce_kind::sum, in.data() + (outer - 1) * n * inner, last.data(), 1, n, inner, true);
    REQUIRE(std::equal(last.begin(), last.end(), expected.end() - inner));
  }
}

TEMPLATE_TEST_CASE("add_shards combines shards half by half, also in place", "", float, double, std::int32_t,
                   std::uint32_t, bool) {
  for (const reduce_kind kind : kinds) {
    if (std::is_same_v<TestType, bool> && !is_extremum(kind)) continue;
    for (int shards : {1, 2, 3, 8})
      for (std::int64_t n : {0, 1, 15, 16, 17, 63, 511, 513, 40000})
        for (const edge side : {edge::front, edge::back}) {
          std::vector<std::unique_ptr<guarded<TestType>>> arrays;
          std::vector<const TestType*> in;
          for (int s = 0; s < shards; ++s) {
            arrays.push_back(std::make_unique<guarded<TestType>>(n, side));
            fill_random(*arrays.back(), static_cast<unsigned>(s));
            in.push_back(arrays.back()->data());
          }
          guarded<TestType> expected(n, side), out(n, side);
          kernels::naive::add_shards(kind, expected.data(), in.data(), shards, n);
          for (const int threads : {1, 2, 4})
            on_threads(threads, [&] { kernels::add_shards(kind, out.data(), in.data(), shards, n, true); });
          REQUIRE(same_bits(out.data(), expected.data(), n));
          kernels::add_shards(kind, arrays[0]->data(), in.data(), shards, n, true);
          REQUIRE(same_bits(arrays[0]->data(), expected.data(), n));
        }
  }
}

TEST_CASE("sums of shards that hold whole blocks of rows have the bits of the sum of all rows") {
  for (const int shards : {1, 2, 4, 8, 16})
    for (const auto& [rows, wide] : {std::pair{32, 10}, {64, 10}, {96, 33}, {160, 10}}) {
      const std::int64_t columns = wide;
      std::vector<float> all(static_cast<std::size_t>(shards * rows * columns));
      fill_random(all, 7U);
      const auto size = static_cast<std::size_t>(columns);
      std::vector<float> whole(size), parts(static_cast<std::size_t>(shards) * size), total(size);
      kernels::reduce(reduce_kind::sum, all.data(), whole.data(), 1, shards * rows, columns, false);
      kernels::reduce(reduce_kind::sum, all.data(), parts.data(), shards, rows, columns, false);
      std::vector<const float*> in;
      for (int s = 0; s < shards; ++s) in.push_back(parts.data() + s * columns);
      kernels::add_shards(reduce_kind::sum, total.data(), in.data(), shards, columns, false);
      INFO(shards << " shards of " << rows << " rows");
      REQUIRE(same_bits(total.data(), whole.data(), columns));
    }
}

TEST_CASE("reduce and add_shards refuse sums of bool, and add_shards no shards") {
  const bool in[] = {true, false};
  const bool* const shards[] = {in};
  bool out[2];
  REQUIRE_THROWS_WITH(kernels::reduce(reduce_kind::sum, in, out, 1, 2, 1, false),
                      "tessera: reduce: kind is sum for bool; it must be max (or) or min (and)");
  REQUIRE_THROWS_WITH(kernels::add_shards(reduce_kind::sum, out, shards, 1, 2, false),
                      "tessera: add_shards: kind is sum for bool; it must be max (or) or min (and)");
  REQUIRE_THROWS_AS(kernels::add_shards(reduce_kind::max, out, shards, 0, 2, false), tessera::value_error);
}

TEMPLATE_TEST_CASE("Lines that are made as they are reduced have the bits of lines in memory, each element made once",
                   "", float, double, std::int32_t, tessera::bfloat16) {
  for (const std::int64_t n : {65536, 70001, 1000003}) {
    std::vector<TestType> line(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < line.size(); ++i)
      line[i] = static_cast<TestType>(static_cast<float>(static_cast<std::int64_t>(i * 7919 % 1009) - 504) / 512.0F);
    for (const reduce_kind kind : {reduce_kind::sum, reduce_kind::max, reduce_kind::min})
      for (const int threads : {1, 4}) {
        tessera::compute_t<TestType> expected{}, found{};
        kernels::reduce(kind, line.data(), &expected, 1, n, 1, false);
        std::vector<std::uint8_t> times(line.size());
        const auto make = [&](std::int64_t first, std::int64_t count, TestType* to) {
          std::copy_n(line.data() + first, count, to);
          for (std::int64_t i = first; i < first + count; ++i) ++times[static_cast<std::size_t>(i)];
        };
        on_threads(threads, [&] { kernels::reduce_made<TestType>(kind, make, &found, n, true); });
        INFO(n);
        REQUIRE(same_bits(&found, &expected, 1));
        REQUIRE(std::all_of(times.begin(), times.end(), [](std::uint8_t each) { return each == 1; }));
      }
  }
}

TEMPLATE_TEST_CASE("Leaves of 32 rows combine to the bits of a reduction of all rows", "", float, double,
                   tessera::bfloat16) {
  using out_type = tessera::compute_t<TestType>;
  for (const auto& [rows, inner] : {std::pair{1, 5}, {32, 17}, {33, 64}, {300, 100}, {2081, 3}, {700, 1500}}) {
    std::vector<TestType> in(static_cast<std::size_t>(rows * inner));
    fill_random(in, 3U);
    const std::int64_t leaves = (rows + 31) / 32;
    const auto size = static_cast<std::size_t>(inner);
    std::vector<out_type> expected(size), found(size), leaf(static_cast<std::size_t>(leaves) * size);
    for (const reduce_kind kind : kinds) {
      on_threads(2, [&, kind, n = rows, columns = inner] {
        kernels::reduce(kind, in.data(), expected.data(), 1, n, columns, true);
      });
      for (std::int64_t i = 0; i < leaves; ++i)
        kernels::reduce(kind, in.data() + i * 32 * inner, leaf.data() + i * inner, 1,
                        std::min<std::int64_t>(32, rows - i * 32), inner, false);
      kernels::combine_leaves<TestType>(kind, leaf.data(), found.data(), leaves, inner);
      INFO(rows << " rows of " << inner);
      REQUIRE(same_bits(found.data(), expected.data(), inner));
    }
  }
}

}  // namespace
