// SPDX-License-Identifier: Apache-2.0
// What the thread sanitizer makes of loops: what stands before and after one is ordered with it; with an argument, all
// threads of each loop add to one number, which is a race.
#include <tessera/kernels/parallel.hpp>

#include "kernels/support.hpp"

#include <cstdint>
#include <vector>

int main(int count, char**) {
  const bool race = count > 1;
  std::vector<std::int64_t> values(100000, 1);
  std::int64_t sum = 0;
  kernel_test::on_threads(4, [&] {
    for (int loop = 0; loop < 20; ++loop) {
      for (std::int64_t& value : values) ++value;
      tessera::kernels::parallel_for(static_cast<std::int64_t>(values.size()), true, [&](std::int64_t i) {
        values[static_cast<std::size_t>(i)] %= 7;
        if (race) sum += i;
      });
      for (const std::int64_t value : values) sum += value;
    }
  });
  return sum > 0 ? 0 : 1;
}
