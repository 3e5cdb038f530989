// SPDX-License-Identifier: Apache-2.0
// The usual optimisers: short chains of transformations. A learning rate is a number or a schedule.
#pragma once

#include <tessera/optim/schedules.hpp>
#include <tessera/optim/transforms.hpp>

namespace tessera::optim {

/// p <- p - rate g. Source: optax.sgd.
template <class Rate>
auto sgd(Rate learning_rate) {
  return chain(scale_by_learning_rate(learning_rate));
}

/// m <- g + momentum m, p <- p - rate m; with `nesterov` p <- p - rate (g + momentum m). Source: optax.sgd.
template <class Rate>
auto sgd(Rate learning_rate, double momentum) {
  return chain(trace(momentum), scale_by_learning_rate(learning_rate));
}
template <class Rate>
auto sgd(Rate learning_rate, double momentum, nesterov_t) {
  return chain(trace(momentum, nesterov), scale_by_learning_rate(learning_rate));
}

/// `adam(1e-3)`, `adam(1e-3, {.b2 = 0.99})`, `adam<adam_form{.nesterov = true}>(1e-3, {})`. Source: Kingma and Ba 2015;
/// optax.adam.
template <class Rate>
auto adam(Rate learning_rate, double b1 = 0.9, double b2 = 0.999, double eps = 1e-8) {
  return chain(scale_by_adam(b1, b2, eps), scale_by_learning_rate(learning_rate));
}
template <adam_form Form = adam_form{}, class Rate>
auto adam(Rate learning_rate, adam_options o) {
  return chain(scale_by_adam<Form>(o), scale_by_learning_rate(learning_rate));
}

/// Numbers of AdamW, for `adamw(1e-3, {.weight_decay = 0.1})`.
struct adamw_options {
  double b1 = 0.9;
  double b2 = 0.999;
  double eps = 1e-8;
  double eps_root = 0;  ///< with adam_form{.eps_root = true} only
  double weight_decay = 1e-4;
};

/// Adam with weight decay added to its direction, for the variables that a mask chooses, or all. Source: Loshchilov and
/// Hutter 2019; optax.adamw.
template <class Rate>
auto adamw(Rate learning_rate, double b1 = 0.9, double b2 = 0.999, double eps = 1e-8, double weight_decay = 1e-4) {
  return chain(scale_by_adam(b1, b2, eps), add_decayed_weights(weight_decay), scale_by_learning_rate(learning_rate));
}
template <adam_form Form = adam_form{}, class Rate, class Mask = all_leaves>
auto adamw(Rate learning_rate, adamw_options o, Mask mask = {}) {
  return chain(scale_by_adam<Form>({o.b1, o.b2, o.eps, o.eps_root}), add_decayed_weights(o.weight_decay, mask),
               scale_by_learning_rate(learning_rate));
}

}  // namespace tessera::optim
