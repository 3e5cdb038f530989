// SPDX-License-Identifier: Apache-2.0
// Loops on several threads: each number once, whoever takes it, and errors that leave them.
#include <tessera/kernels/parallel.hpp>

#include "support.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

using tessera::kernels::parallel_for;

TEST_CASE("a loop calls its function once for every number, for any count and number of threads") {
  for (const int threads : {1, 2, 3, 4})
    kernel_test::on_threads(threads, [] {
      for (const std::int64_t n : {0, 1, 2, 3, 5, 31, 32, 33, 63, 64, 65, 129, 1000, 4097})
        for (const bool parallel : {false, true}) {
          std::vector<std::atomic<int>> calls(static_cast<std::size_t>(n));
          parallel_for(n, parallel, [&](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
          CHECK(std::all_of(calls.begin(), calls.end(), [](const auto& c) { return c == 1; }));
        }
    });
}

TEST_CASE("a thread that is late does not hold up the rest of its range") {
  constexpr std::int64_t n = 32;
  for (const std::int64_t slow : {std::int64_t{0}, n / 2, n - 1})
    kernel_test::on_threads(2, [&] {
      std::atomic<std::int64_t> others{0};
      std::int64_t seen = 0;
      parallel_for(n, true, [&](std::int64_t i) {
        if (i != slow) {
          ++others;
          return;
        }
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (others < n - 1 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        seen = others;
      });
      CHECK(seen == n - 1);
    });
}

TEST_CASE("an error leaves a loop, what has not begun is left out, and the next loop runs") {
  kernel_test::on_threads(2, [] {
    std::atomic<std::int64_t> calls{0};
    const auto run = [&] {
      parallel_for(1 << 20, true, [&](std::int64_t) {
        if (++calls == 100) throw std::runtime_error("the hundredth");
      });
    };
    CHECK_THROWS_WITH(run(), "the hundredth");
    CHECK(calls < 1 << 19);
    std::atomic<std::int64_t> sum{0};
    parallel_for(100, true, [&](std::int64_t i) { sum += i; });
    CHECK(sum == 4950);
  });
}

TEST_CASE("loops may stand in loops") {
  kernel_test::on_threads(3, [] {
    std::vector<std::atomic<int>> calls(40 * 50);
    parallel_for(40, true, [&](std::int64_t i) {
      parallel_for(50, true, [&](std::int64_t j) { ++calls[static_cast<std::size_t>(50 * i + j)]; });
    });
    CHECK(std::all_of(calls.begin(), calls.end(), [](const auto& c) { return c == 1; }));
  });
}

#if defined(__linux__)

TEST_CASE("workers may run on every processor but that of the thread that starts a loop") {
  cpu_set_t mine;
  REQUIRE(sched_getaffinity(0, sizeof mine, &mine) == 0);
  if (CPU_COUNT(&mine) < 2) return;
  kernel_test::on_threads(2, [] {  // begin the worker while it may run everywhere
    parallel_for(2, true, [](std::int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); });
  });
  for (std::size_t processor = 0, seen = 0; seen < 2; ++processor) {
    if (!CPU_ISSET(processor, &mine)) continue;
    ++seen;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    kernel_test::on_threads(2, [&] {
      const std::thread::id caller = std::this_thread::get_id();
      cpu_set_t expected = mine;
      CPU_CLR(processor, &expected);
      std::atomic<bool> placed{false};
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (!placed && std::chrono::steady_clock::now() < end) {
        parallel_for(2, true, [&](std::int64_t) {
          cpu_set_t now;
          if (std::this_thread::get_id() == caller) std::this_thread::sleep_for(std::chrono::milliseconds(2));
          else if (sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &expected)) placed = true;
        });
      }
      CHECK(placed);
    });
    CHECK(sched_setaffinity(0, sizeof mine, &mine) == 0);
  }
}

#endif
