// SPDX-License-Identifier: Apache-2.0
// Timing of things that are compared: they alternate in one run, so that a slow moment of the machine hits all of them.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace bench {

struct contender {
  std::string name;
  std::function<void()> run;
};

/// For each contender the median over `rounds` of the seconds one call takes, `calls` being timed together; contenders
/// take turns in every round, after one round that does not count.
inline std::vector<double> median_seconds(const std::vector<contender>& contenders, int rounds, int calls) {
  std::vector<std::vector<double>> seen(contenders.size());
  for (int round = -1; round < rounds; ++round)
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const auto begin = std::chrono::steady_clock::now();
      for (int call = 0; call < calls; ++call) contenders[i].run();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (round >= 0) seen[i].push_back(took.count() / calls);
    }
  std::vector<double> medians;
  for (std::vector<double>& times : seen) {
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    medians.push_back(times[times.size() / 2]);
  }
  return medians;
}

}  // namespace bench
