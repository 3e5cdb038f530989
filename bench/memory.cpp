// SPDX-License-Identifier: Apache-2.0
// Temporary memory of the programs of examples/remat, in MiB: `memory.<row>=ours,xla,target`, and `gflop.<row>`; in
// bfloat16 `memory.bf16.<row>=ours,target,share of float32`, the target being 0.55 of float32. Ours is
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
  remat::for_each_pair([](const char* name, auto wide, auto narrow) {
    const double whole = remat::mib(remat::planned(wide).memory.temp_size_in_bytes);
    const double ours = remat::mib(remat::planned(narrow).memory.temp_size_in_bytes);
    std::printf("memory.bf16.%s=%.3f,%.3f,%.3f\n", name, ours, 0.55 * whole, ours / whole);
  });
}
