// SPDX-License-Identifier: Apache-2.0
// A residual model of LAYERS equal layers and one Adam step, to see how compiling grows with a model. With TRACE_ONLY
// the step is traced, lowered and asserted on, but no kernel is compiled.
#include <tessera/tessera.hpp>

namespace ts = tessera;

using cluster = ts::mesh<ts::axis<"data", 8>>;

struct model {
  std::array<ts::nn::linear<64, 64>, LAYERS> layers;
  TESSERA_MODULE(model, layers)

  constexpr auto operator()(auto x) {
    for (auto& layer : layers) x = x + ts::relu(layer(x));
    return x;
  }
};

inline constexpr auto loss = [](auto& m, auto x) { return ts::mean(ts::square(m(x))); };

inline constexpr auto train_step = [](auto& m, auto& optimizer, auto x) {
  auto [l, grads] = ts::value_and_grad(loss)(m, x);
  optimizer.update(m, grads);
  return l;
};

using bound_model = ts::nn::bound<model, cluster>;
using optimizer = decltype(ts::nn::optimizer<ts::nn::param>(std::declval<bound_model&>(), ts::optim::adam(1e-3)));
using batch = ts::tensor<ts::f32, ts::shape<64, 64>, ts::P<"data">, cluster>;
using step = ts::lowered<train_step, bound_model, optimizer, batch>;
static_assert(step::collectives().all_reduce == 1);

#ifndef TRACE_ONLY
float run(bound_model& m, optimizer& o, batch& x) { return ts::jit<train_step>(m, o, x).item(); }
#endif
