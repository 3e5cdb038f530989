// SPDX-License-Identifier: Apache-2.0
// expect: tessera: device_put: the type of a host array does not hold its extents; write device_put<shape<...>,
//         P<...>, mesh>(array)
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/runtime/tensor.hpp>

auto put(const std::vector<float>& host) {
  return ts::device_put<CURE((), (ts::shape<32, 64>, )) P<"data">, cluster>(host);
}
