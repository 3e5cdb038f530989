// SPDX-License-Identifier: Apache-2.0
// expect: tessera: device_put: elements are of a type that is no dtype; convert them to float, double, std::int32_t,
//         std::uint32_t or bool
#include "cure.hpp"
#include "trained.hpp"

#include <cstdint>
#include <vector>

auto put(const std::vector<CURE((std::uint8_t), (float))>& host) {
  return ts::device_put<ts::shape<4, 8>, P<"data">, cluster>(host);
}
