// SPDX-License-Identifier: Apache-2.0
// Windows are added up as the plain loop does, in any number of threads.
#include "support.hpp"

#include <tessera/kernels/naive.hpp>
#include <tessera/kernels/overlap_add.hpp>

#include <catch2/catch.hpp>

#include <random>
#include <vector>

using namespace tessera::kernels;
using namespace kernel_test;

namespace {

template <class T>
void compare(int times, std::int64_t largest) {
  std::mt19937 bits(3);
  const auto pick = [&](std::int64_t n) { return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n)); };
  const auto draw = [&] {
    overlap_windows w{1, pick(5), 1 + pick(3), 1 + pick(3), 1 + pick(2)};
    w.extent = (w.count == 0 ? 0 : (w.count - 1) * w.stride) + (w.size - 1) * w.dilation + 1 + pick(3);
    return w;
  };
  for (int i = 0; i < times; ++i) {
    const overlap_problem p{pick(4), 1 + pick(largest), {draw(), draw()}};
    std::vector<T> in(static_cast<std::size_t>(p.size()));
    for (T& x : in) x = static_cast<T>(pick(100));
    std::vector<T> expected(static_cast<std::size_t>(p.outer * p.windows[0].extent * p.windows[1].extent * p.inner),
                            T(7));
    const guarded<T> windows(in, edges[i / 2 % 2]);
    guarded<T> found(expected, edges[i / 2 % 2]);
    naive::overlap_add(p, in.data(), expected.data());
    overlap_add(p, windows.data(), found.data(), i % 2 == 0);
    CHECK(found.values() == expected);
  }
}

}  // namespace

TEST_CASE("Windows are added up where they overlap") {
  compare<float>(100, 9);
  compare<double>(100, 33);
  compare<std::int32_t>(100, 9);
  compare<std::uint32_t>(50, 9);
}
