// SPDX-License-Identifier: Apache-2.0
// Temporary memory of the programs of examples/remat, in MiB: `memory.<row>=ours,xla,target`, and `gflop.<row>`. Ours is
// the arena of the plan that the executor walks. XLA's figures are published ones; they do not depend on the machine.
#include "remat/rows.hpp"

#include <cstdio>

int main() {
  remat::for_each_row([](const remat::published& row, auto job) {
    const auto facts = remat::planned(job);
    const std::string name(row.name);
    std::printf("memory.%s=%.3f,%.3f,%.3f\n", name.c_str(), remat::mib(facts.memory.temp_size_in_bytes), row.xla,
                row.target);
    std::printf("gflop.%s=%.3f\n", name.c_str(), static_cast<double>(facts.cost.flops) / 1e9);
  });
}
