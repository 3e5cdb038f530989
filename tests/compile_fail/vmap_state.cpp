// SPDX-License-Identifier: Apache-2.0
// expect: tessera: vmap: the function changes a variable of a module, of which there is one for all examples
// note: int32[]
#include "cure.hpp"
#include "trained.hpp"

#include <tessera/transform/vmap.hpp>

struct counting {
  ts::nn::variable<ts::nn::batch_stat, ts::i32, ts::shape<>> calls;
  TESSERA_MODULE(counting, calls)
};
using rows_type = ts::tensor<ts::f32, ts::shape<4, 8>, P<>, cluster>;

inline constexpr auto step = [](auto& model, auto x) {
  const auto one = [&](auto row) {
    model.calls += 1;
    return ts::sin(row);
  };
  const auto rows = [&](auto carry, auto row) { return std::pair(carry, one(row)); };
  return CURE((ts::vmap(one)(x)), (ts::scan(rows, 0, x).second));
};
static_assert(ts::lowered<step, ts::nn::bound<counting, cluster>, rows_type>::collectives().all_gather == 0);
