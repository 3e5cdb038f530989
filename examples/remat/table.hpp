// SPDX-License-Identifier: Apache-2.0
// A table of programs: what each needs beside its arguments and results, as planned here and as published of XLA.
#pragma once

#include "remat/rows.hpp"

#include <cstdio>

namespace remat {

inline void print_head() { std::printf("%-36s %10s %10s %10s\n", "", "MiB", "XLA MiB", "GFLOP"); }

template <class Job>
void print_row(const char* name, double xla) {
  const ts::analysis::summary facts = planned(Job{});
  std::printf("%-36s %10.3f %10.3f %10.3f\n", name, mib(facts.memory.temp_size_in_bytes), xla,
              static_cast<double>(facts.cost.flops) / 1e9);
}

}  // namespace remat
