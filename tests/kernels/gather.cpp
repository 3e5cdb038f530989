// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters do what the plain loops do, whatever the indices.
#include "support.hpp"

#include <tessera/kernels/gather.hpp>
#include <tessera/kernels/naive.hpp>

#include <catch2/catch.hpp>

#include <limits>
#include <random>
#include <vector>

using namespace tessera::kernels;
using namespace kernel_test;

namespace {

template <class T>
std::vector<T> random_numbers(std::mt19937& bits, std::int64_t n) {
  std::vector<T> x(static_cast<std::size_t>(n));
  for (T& v : x) {
    v = static_cast<T>(static_cast<int>(bits() % 200) - 100);
    if constexpr (std::is_floating_point_v<T>) {
      if (bits() % 17 == 0) v = std::numeric_limits<T>::infinity();
      if (bits() % 19 == 0) v = -std::numeric_limits<T>::infinity();
    }
  }
  return x;
}

template <class T>
void compare(int times, std::int64_t largest) {
  std::mt19937 bits(11);
  const auto pick = [&](std::int64_t n) { return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n)); };
  for (int i = 0; i < times; ++i) {
    gather_problem p{1 + pick(3), 1 + pick(3), 1 + pick(largest), pick(largest), 1 + pick(largest)};
    p.whole = p.n * (1 + pick(2));
    p.first = p.whole == p.n ? 0 : p.n * pick(2);
    p.pointwise = pick(2) == 0;
    if (p.pointwise) p.outer = 1;
    p.mode = static_cast<index_mode>(pick(3));
    p.kind = static_cast<scatter_kind>(pick(4));
    p.has_sign = pick(4) != 0;
    std::vector<std::int32_t> indices(static_cast<std::size_t>(p.batch * p.m * (p.pointwise ? p.inner : 1)));
    for (std::int32_t& index : indices)
      index = static_cast<std::int32_t>(pick(4 * p.whole) - (p.has_sign ? 2 * p.whole : 0));
    const edge side = edges[i / 2 % 2];
    const guarded<std::int32_t> at(indices, side);
    p.indices = at.data();
    const std::vector<T> array = random_numbers<T>(bits, p.array_size());
    const std::vector<T> updates = random_numbers<T>(bits, p.chosen_size());

    std::vector<T> expected(updates.size(), T(42));
    const guarded<T> from(array, side), added(updates, side);
    guarded<T> found(expected, side);
    naive::gather(p, array.data(), expected.data());
    gather(p, from.data(), found.data(), i % 2 == 0);
    CHECK(same_bits(found.data(), expected.data(), found.size()));

    guarded<T> changed(array, side);
    std::vector<T> changed_plainly = array;
    naive::scatter(p, changed_plainly.data(), updates.data());
    scatter(p, changed.data(), added.data(), i % 2 == 0);
    CHECK(same_bits(changed.data(), changed_plainly.data(), changed.size()));
  }
}

}  // namespace

TEST_CASE("Elements that indices name are read and written as the plain loops do") {
  compare<float>(200, 9);
  compare<double>(200, 9);
  compare<std::int32_t>(200, 9);
  compare<std::uint32_t>(200, 9);
  compare<float>(10, 300);
}

TEST_CASE("The most distant integers are indices like others") {
  const std::int32_t far[] = {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max(), -3};
  const float array[] = {1, 2, 3};
  for (const auto& [mode, expected] : {std::pair{index_mode::drop, std::vector<float>{0, 0, 1}},
                                       {index_mode::clip, {1, 3, 1}},
                                       {index_mode::wrap, {2, 2, 1}}}) {
    gather_problem p{1, 1, 3, 3, 1, 3};
    p.mode = mode;
    p.indices = far;
    std::vector<float> out(3);
    gather(p, array, out.data(), false);
    CHECK(out == expected);
  }
}
