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

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Seconds one call takes, `calls` being timed together.
inline double seconds_a_call(const std::function<void()>& run, int calls) {
  const auto begin = std::chrono::steady_clock::now();
  for (int call = 0; call < calls; ++call) run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls;
}

/// For each contender the median over `rounds` of the seconds one call takes, `calls` being timed together; contenders
/// take turns in every round, after one round that does not count.
inline std::vector<double> median_seconds(const std::vector<contender>& contenders, int rounds, int calls) {
  std::vector<std::vector<double>> seen(contenders.size());
  for (int round = -1; round < rounds; ++round)
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const double took = seconds_a_call(contenders[i].run, calls);
      if (round >= 0) seen[i].push_back(took);
    }
  std::vector<double> medians;
  for (const std::vector<double>& times : seen) medians.push_back(median(times));
  return medians;
}

}  // namespace bench
