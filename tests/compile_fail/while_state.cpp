// SPDX-License-Identifier: Apache-2.0
// expect: tessera: while_loop: the condition changes a variable; change it in the body
#include "cure.hpp"
#include "trained.hpp"

#include <tessera/ops/control.hpp>

struct counting {
  ts::nn::variable<ts::nn::batch_stat, ts::i32, ts::shape<>> calls;
  TESSERA_MODULE(counting, calls)
};
using rows_type = ts::tensor<ts::f32, ts::shape<8>, P<>, cluster>;

inline constexpr auto step = [](auto& model, auto x) {
  return ts::while_loop(
      [&](auto) {
        CURE((model.calls += 1;), ())
        return model.calls < 10;
      },
      [&](auto h) {
        CURE((), (model.calls += 1;))
        return ts::sin(h);
      },
      x);
};
static_assert(ts::lowered<step, ts::nn::bound<counting, cluster>, rows_type>::collectives().all_gather == 0);
