// SPDX-License-Identifier: Apache-2.0
// Named optimisers: short chains of transformations. A learning rate is a number or a schedule.
#pragma once

#include <tessera/optim/transforms.hpp>

namespace tessera::optim {

/// p <- p - rate g. Source: optax.sgd.
template <class Rate>
auto sgd(Rate learning_rate) {
  return chain(scale_by_learning_rate(learning_rate));
}

/// m <- g + momentum m, p <- p - rate m. Source: optax.sgd.
template <class Rate>
auto sgd(Rate learning_rate, double momentum) {
  return chain(trace(momentum), scale_by_learning_rate(learning_rate));
}

/// Source: Kingma and Ba 2015; optax.adam.
template <class Rate>
auto adam(Rate learning_rate, double b1 = 0.9, double b2 = 0.999, double eps = 1e-8) {
  return chain(scale_by_adam(b1, b2, eps), scale_by_learning_rate(learning_rate));
}

/// Adam with weight decay added to its direction. Source: Loshchilov and Hutter 2019; optax.adamw.
template <class Rate>
auto adamw(Rate learning_rate, double b1 = 0.9, double b2 = 0.999, double eps = 1e-8, double weight_decay = 1e-4) {
  return chain(scale_by_adam(b1, b2, eps), add_decayed_weights(weight_decay), scale_by_learning_rate(learning_rate));
}

}  // namespace tessera::optim
