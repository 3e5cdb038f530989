// SPDX-License-Identifier: Apache-2.0
// Optimisers with one moment or none: RMSProp, Adagrad, Lion, LARS, LAMB.
#pragma once

#include <tessera/optim/optimizers.hpp>
#include <tessera/optim/scaling.hpp>

namespace tessera::optim {

/// What is compiled into scale_by_rms: eps within the root, as Optax has it, or added to it; 1 / (1 - decay^t) on the
/// moment; the mean subtracted (scale_by_stddev).
struct rms_form {
  bool eps_in_sqrt = true;
  bool bias_correction = false;
  bool centered = false;
};

/// v <- decay v + (1 - decay) g^2, u <- g / sqrt(v + eps). Source: Hinton 2012; Graves 2013 for the centred one;
/// optax.scale_by_rms, optax.scale_by_stddev.
template <rms_form Form = rms_form{}>
struct scale_by_rms_t {
  nn::scalar decay, rest, eps, initial_scale;

  template <class Model, class Wrt>
  struct state {
    std::conditional_t<Form.bias_correction, counter, empty_state> count;
    std::conditional_t<Form.centered, like<Model, Wrt>, empty_state> mu;
    like<Model, Wrt> nu;
    TESSERA_MODULE(state, count, mu, nu)
  };

  TESSERA_MODULE(scale_by_rms_t, decay, rest, eps, initial_scale)

  template <class State>
  constexpr void update(values& updates, const values&, State& s) const {
    using namespace value_math;
    value correct{};
    if constexpr (Form.bias_correction) correct = correction(traced_number(decay), count_up(s.count));
    values v = values_of(s.nu), m = values_of(s.mu);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const value g = updates[i];
      const value small = number_for(g, traced_number(eps));
      v[i] = moving_average(v[i], square(g), traced_number(decay), traced_number(rest));
      value second = v[i];
      if (Form.centered) {
        m[i] = moving_average(m[i], g, traced_number(decay), traced_number(rest));
        second = second - square(m[i]);
      }
      if (Form.bias_correction) second = second * number_for(g, correct);
      updates[i] = Form.eps_in_sqrt ? g * rsqrt(second + small) : g / (sqrt(second) + small);
    }
    assign(s.nu, v);
    if constexpr (Form.centered) assign(s.mu, m);
  }

  template <class State>
  void start(State& s, std::span<const runtime::storage_ptr>) const {
    fill_arrays(s.nu, static_cast<double>(number_of(initial_scale)));
  }
};

struct rmsprop_options {
  double decay = 0.9;
  double eps = 1e-8;
  double initial_scale = 0;
};
template <rms_form Form = rms_form{}>
scale_by_rms_t<Form> scale_by_rms(rmsprop_options o = {}) {
  checked("decay", o.decay, 0, 1), checked("eps", o.eps, 0, 1), checked("initial_scale", o.initial_scale, 0, 1e9);
  return {nn::make_scalar(o.decay), nn::make_scalar(1 - o.decay), nn::make_scalar(o.eps),
          nn::make_scalar(o.initial_scale)};
}
inline auto scale_by_stddev(rmsprop_options o = {}) { return scale_by_rms<rms_form{.centered = true}>(o); }

/// `rmsprop(1e-3)`, `rmsprop(1e-3, {.decay = 0.99})`, with momentum `rmsprop(1e-3, {}, 0.9)` and `nesterov`; the
/// centred one `rmsprop<rms_form{.centered = true}>(1e-3)`. Source: optax.rmsprop.
template <rms_form Form = rms_form{}, class Rate>
auto rmsprop(Rate learning_rate, rmsprop_options o = {}) {
  return chain(scale_by_rms<Form>(o), scale_by_learning_rate(learning_rate));
}
template <rms_form Form = rms_form{}, class Rate, class... Nesterov>
auto rmsprop(Rate learning_rate, rmsprop_options o, double momentum, Nesterov... ahead) {
  return chain(scale_by_rms<Form>(o), scale_by_learning_rate(learning_rate), trace(momentum, ahead...));
}

/// s <- s + g^2, u <- g / sqrt(s + eps), 0 where s is 0. Source: Duchi and others 2011; optax.scale_by_rss.
struct scale_by_rss_t {
  nn::scalar initial_accumulator_value, eps;

  template <class Model, class Wrt>
  using state = like<Model, Wrt>;

  TESSERA_MODULE(scale_by_rss_t, initial_accumulator_value, eps)

  template <class State>
  constexpr void update(values& updates, const values&, State& sums) const {
    using namespace value_math;
    values s = values_of(sums);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const value g = updates[i];
      s[i] = s[i] + square(g);
      const value zero = graph::number_like(g, 0);
      updates[i] = graph::select(less(zero, s[i]), g * rsqrt(s[i] + number_for(g, traced_number(eps))), zero);
    }
    assign(sums, s);
  }

  template <class State>
  void start(State& sums, std::span<const runtime::storage_ptr>) const {
    fill_arrays(sums, static_cast<double>(number_of(initial_accumulator_value)));
  }
};

struct adagrad_options {
  double initial_accumulator_value = 0.1;
  double eps = 1e-7;
};
inline scale_by_rss_t scale_by_rss(adagrad_options o = {}) {
  return {nn::make_scalar(checked("initial_accumulator_value", o.initial_accumulator_value, 0, 1e9)),
          nn::make_scalar(checked("eps", o.eps, 0, 1))};
}
/// Source: optax.adagrad.
template <class Rate>
auto adagrad(Rate learning_rate, adagrad_options o = {}) {
  return chain(scale_by_rss(o), scale_by_learning_rate(learning_rate));
}

/// u <- sign(b1 m + (1 - b1) g), m <- b2 m + (1 - b2) g. Source: Chen and others 2023; optax.scale_by_lion.
template <class Map = same_type>
struct scale_by_lion_t {
  nn::scalar b1, rest1, b2, rest2;

  template <class Model, class Wrt>
  using state = like<Model, Wrt, Map>;

  TESSERA_MODULE(scale_by_lion_t, b1, rest1, b2, rest2)

  template <class State>
  constexpr void update(values& updates, const values&, State& momentum) const {
    values m = values_of(momentum);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const graph::value g = updates[i];
      updates[i] = stored(value_math::sign(moving_average(m[i], g, traced_number(b1), traced_number(rest1))), g);
      m[i] = stored(moving_average(m[i], g, traced_number(b2), traced_number(rest2)), m[i]);
    }
    assign(momentum, m);
  }
};

struct lion_options {
  double b1 = 0.9;
  double b2 = 0.99;
  double weight_decay = 1e-3;
};
inline scale_by_lion_t<> scale_by_lion(double b1 = 0.9, double b2 = 0.99) {
  checked("b1", b1, 0, 1), checked("b2", b2, 0, 1);
  return {nn::make_scalar(b1), nn::make_scalar(1 - b1), nn::make_scalar(b2), nn::make_scalar(1 - b2)};
}
/// Source: optax.lion.
template <class Rate, class Mask = all_leaves>
auto lion(Rate learning_rate, lion_options o = {}, Mask mask = {}) {
  return chain(scale_by_lion(o.b1, o.b2), add_decayed_weights(o.weight_decay, mask),
               scale_by_learning_rate(learning_rate));
}

struct lars_options {
  double weight_decay = 0;
  double trust_coefficient = 0.001;
  double eps = 0;
  double momentum = 0.9;
};
/// Momentum of gradients whose length is measured by their parameters. Source: You and others 2017; optax.lars.
template <class Rate, class Mask = all_leaves, class... Nesterov>
auto lars(Rate learning_rate, lars_options o = {}, Mask mask = {}, Nesterov... ahead) {
  return chain(add_decayed_weights(o.weight_decay, mask),
               scale_by_trust_ratio({.trust_coefficient = o.trust_coefficient, .eps = o.eps}),
               scale_by_learning_rate(learning_rate), trace(o.momentum, ahead...));
}

struct lamb_options {
  double b1 = 0.9;
  double b2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0;
};
/// AdamW whose steps are as long as a share of each parameter. Source: You and others 2020; optax.lamb.
template <class Rate, class Mask = all_leaves>
auto lamb(Rate learning_rate, lamb_options o = {}, Mask mask = {}) {
  return chain(scale_by_adam(o.b1, o.b2, o.eps), add_decayed_weights(o.weight_decay, mask), scale_by_trust_ratio(),
               scale_by_learning_rate(learning_rate));
}

}  // namespace tessera::optim
