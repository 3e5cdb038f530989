// SPDX-License-Identifier: Apache-2.0
// Limits on threads: bits do not depend on them, and steps called from a program's own tasks share its threads.
#include <tessera/kernels/parallel.hpp>
#include <tessera/tessera.hpp>

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <vector>

namespace ts = tessera;

namespace {

inline constexpr auto step = [](auto x, auto w) { return ts::sum<0>(ts::tanh(ts::matmul(x, w))); };

auto run_step() {
  std::vector<float> host(256 * 256);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = 0.01f * static_cast<float>(i % 17) - 0.08f;
  const auto x = ts::device_put<ts::shape<256, 256>, ts::P<>, ts::mesh<>>(host);
  return ts::jit<step>(x, x).to_vector();
}

}  // namespace

TEST_CASE("max_threads limits threads while it lives, and the lowest limit holds") {
  const int before = ts::max_threads::now();
  {
    const ts::max_threads two(2);
    const ts::max_threads one(1);
    CHECK(ts::max_threads::now() == 1);
    CHECK(ts::kernels::concurrency() == 1);
  }
  CHECK(ts::max_threads::now() == before);
}

TEST_CASE("max_threads refuses less than one thread") {
  CHECK_THROWS_WITH(ts::max_threads(0), "max_threads: 0 threads asked for; it must be at least 1");
  CHECK_THROWS_AS(ts::max_threads(-3), ts::value_error);
}

TEST_CASE("a step gives the same bits under any limit and from any arena") {
  const auto expected = run_step();
  tbb::task_arena four(4);
  CHECK(four.execute([] { return run_step(); }) == expected);
  const ts::max_threads one(1);
  CHECK(run_step() == expected);
}

TEST_CASE("steps called from tasks of the user's program run side by side without more threads than it has") {
  const auto expected = run_step();
  tbb::enumerable_thread_specific<int> calls(0);
  std::vector<int> equal(64, 0);
  tbb::parallel_for(0, 64, [&](int i) {
    equal[static_cast<std::size_t>(i)] = run_step() == expected;
    ++calls.local();
  });
  CHECK(std::count(equal.begin(), equal.end(), 1) == 64);
  CHECK(calls.size() <= static_cast<std::size_t>(ts::max_threads::now()));
}
