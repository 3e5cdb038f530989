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

/// The median over rounds of how many times as long one contender took as another.
inline double median_ratio(const std::vector<double>& seconds, const std::vector<double>& others) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < seconds.size(); ++round) ratios.push_back(seconds[round] / others[round]);
  return median(ratios);
}

/// Seconds one call takes, `calls` being timed together.
inline double seconds_a_call(const std::function<void()>& run, int calls) {
  const auto begin = std::chrono::steady_clock::now();
  for (int call = 0; call < calls; ++call) run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / calls;
}

/// Contenders that take turns in each round, after one round that does not count. Figures are medians over rounds.
class turns {
 public:
  turns(const std::vector<contender>& contenders, int rounds, int calls) : seconds_(contenders.size()) {
    for (int round = -1; round < rounds; ++round)
      for (std::size_t i = 0; i < contenders.size(); ++i) {
        const double took = seconds_a_call(contenders[i].run, calls);
        if (round >= 0) seconds_[i].push_back(took);
      }
  }

  std::size_t size() const { return seconds_.size(); }

  /// Seconds of a call of the i-th contender.
  double seconds(std::size_t i) const { return median(seconds_[i]); }

  /// How many times as long the i-th took as the j-th.
  double ratio(std::size_t i, std::size_t j) const { return median_ratio(seconds_[i], seconds_[j]); }

 private:
  std::vector<std::vector<double>> seconds_;
};

}  // namespace bench
