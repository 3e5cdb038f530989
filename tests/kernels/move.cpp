// SPDX-License-Identifier: Apache-2.0
// The tuned copy writes what the plain loop writes, and nothing else.
#include "support.hpp"

#include <tessera/kernels/move.hpp>
#include <tessera/kernels/naive.hpp>

#include <catch2/catch.hpp>

#include <cstdlib>
#include <random>
#include <vector>

using namespace kernel_test;
using tessera::kernels::move_problem;

namespace {

/// A random pattern: extents up to `largest`, strides in any order with gaps and either sign, on both sides.
struct pattern {
  move_problem p{};
  std::int64_t from_size = 1, to_size = 1;
  std::int64_t from_start = 0, to_start = 0;

  pattern(std::mt19937& bits, std::int64_t largest) {
    p.rank = static_cast<int>(bits() % 5);
    for (int d = 0; d < p.rank; ++d) p.extents[d] = static_cast<std::int64_t>(bits()) % (largest + 1);
    spread(bits, p.from_strides, from_size, from_start);
    spread(bits, p.to_strides, to_size, to_start);
  }

  void spread(std::mt19937& bits, std::int64_t (&strides)[tessera::max_rank], std::int64_t& size,
              std::int64_t& start) const {
    std::int64_t stride = 1 + (bits() % 4 == 0 ? 1 : 0);
    std::int64_t last = 0;
    for (int d = p.rank - 1; d >= 0; --d) {
      const std::int64_t extent = std::max<std::int64_t>(p.extents[d], 1);
      const bool backwards = bits() % 3 == 0;
      strides[d] = backwards ? -stride : stride;
      if (backwards) start += (extent - 1) * stride;
      stride = stride * extent + static_cast<std::int64_t>(bits() % 2);
    }
    for (int d = 0; d < p.rank; ++d) last += (std::max<std::int64_t>(p.extents[d], 1) - 1) * std::abs(strides[d]);
    size = last + 1;
  }
};

template <class T>
void compare(std::int64_t largest, int times) {
  std::mt19937 bits(7);
  for (int i = 0; i < times; ++i) {
    const pattern with(bits, largest);
    std::vector<T> from(static_cast<std::size_t>(with.from_size));
    for (T& x : from) x = static_cast<T>(bits() % 251);
    std::vector<T> expected(static_cast<std::size_t>(with.to_size), T(99));
    const guarded<T> source(from, edges[i / 2 % 2]);
    guarded<T> found(expected, edges[i / 2 % 2]);
    tessera::kernels::naive::move(from.data() + with.from_start, expected.data() + with.to_start, with.p);
    tessera::kernels::move(source.data() + with.from_start, found.data() + with.to_start, with.p, i % 2 == 0);
    CHECK(found.values() == expected);
  }
}

}  // namespace

TEST_CASE("Elements are copied from any regular places to any others") {
  compare<std::uint8_t>(7, 200);
  compare<float>(9, 200);
  compare<double>(9, 200);
}

TEST_CASE("Long rows and many rows are copied in parts") {
  for (const auto& [rows, columns] : {std::pair{3, 40000}, {40000, 3}, {1, 16385}, {0, 5}, {5, 0}}) {
    move_problem p{2, {rows, columns}, {columns, 1}, {columns + 2, 1}};
    std::vector<int> from(static_cast<std::size_t>(rows * columns));
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<int>(i);
    std::vector<int> expected(static_cast<std::size_t>(rows * (columns + 2)), -1);
    std::vector<int> found = expected;
    tessera::kernels::naive::move(from.data(), expected.data(), p);
    tessera::kernels::move(from.data(), found.data(), p, true);
    CHECK(found == expected);
  }
}
