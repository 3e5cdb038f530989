// SPDX-License-Identifier: Apache-2.0
// The steps that optimisers chain: momentum, Adam's scaling, weight decay, clipping, learning rates.
#pragma once

#include <tessera/core/compiled.hpp>
#include <tessera/optim/schedules.hpp>
#include <tessera/optim/transformation.hpp>

namespace tessera::optim {

/// An argument of an optimiser, refused unless it lies in [low, high).
double checked(const char* name, double value, double low, double high);

/// u <- g + decay m; m <- u. Source: optax.trace.
struct trace_t {
  nn::scalar decay;

  template <class Model, class Wrt>
  using state = like<Model, Wrt>;

  TESSERA_MODULE(trace_t, decay)

  template <class State>
  constexpr void update(values& updates, const values&, State& momentum) const {
    values m = values_of(momentum);
    for (std::size_t i = 0; i < m.size(); ++i) updates[i] = m[i] = updates[i] + traced_number(decay) * m[i];
    assign(momentum, m);
  }
};

trace_t trace(double decay);

/// m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g^2, u <- (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps), t from 1;
/// the powers are float32. Source: Kingma and Ba 2015; optax.scale_by_adam.
struct scale_by_adam_t {
  nn::scalar b1, rest1, b2, rest2, eps;

  template <class Model, class Wrt>
  struct state {
    counter count;
    like<Model, Wrt> mu, nu;
    TESSERA_MODULE(state, count, mu, nu)
  };

  TESSERA_MODULE(scale_by_adam_t, b1, rest1, b2, rest2, eps)

  /// 1 / (1 - b^t)
  static constexpr graph::value correction(graph::value b, graph::value t) {
    return 1.0 / (1.0 - graph::binary(graph::op::pow, b, t));
  }

  template <class State>
  constexpr void update(values& updates, const values&, State& s) const {
    const graph::value t = count_up(s.count);
    const graph::value correct1 = correction(traced_number(b1), t);
    const graph::value correct2 = correction(traced_number(b2), t);
    values m = values_of(s.mu);
    values v = values_of(s.nu);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const graph::value g = updates[i];
      m[i] = traced_number(b1) * m[i] + traced_number(rest1) * g;
      v[i] = traced_number(b2) * v[i] + traced_number(rest2) * graph::unary(graph::op::square, g);
      updates[i] = (m[i] * correct1) / (graph::unary(graph::op::sqrt, v[i] * correct2) + traced_number(eps));
    }
    assign(s.mu, m);
    assign(s.nu, v);
  }
};

scale_by_adam_t scale_by_adam(double b1 = 0.9, double b2 = 0.999, double eps = 1e-8);

/// u <- u + weight_decay p. Source: optax.add_decayed_weights.
struct add_decayed_weights_t {
  nn::scalar weight_decay;

  template <class Model, class Wrt>
  using state = empty_state;

  TESSERA_MODULE(add_decayed_weights_t, weight_decay)

  constexpr void update(values& updates, const values& params, empty_state&) const {
    for (std::size_t i = 0; i < updates.size(); ++i) updates[i] = updates[i] + traced_number(weight_decay) * params[i];
  }
};

add_decayed_weights_t add_decayed_weights(double weight_decay);

/// The square root of the sum of all squares, over whole arrays, however they are cut.
constexpr graph::value global_norm(const values& updates) {
  graph::value total{};
  for (const graph::value& g : updates) {
    const graph::value squares = graph::sum(graph::unary(graph::op::square, g));
    total = total.owner == nullptr ? squares : total + squares;
  }
  return graph::unary(graph::op::sqrt, total);
}

/// Untouched where the global norm is below `max_norm`, else scaled to it. Source: optax.clip_by_global_norm.
struct clip_by_global_norm_t {
  nn::scalar max_norm;

  template <class Model, class Wrt>
  using state = empty_state;

  TESSERA_MODULE(clip_by_global_norm_t, max_norm)

  constexpr void update(values& updates, const values&, empty_state&) const {
    if (updates.empty()) return;
    const graph::value norm = global_norm(updates);
    const graph::value limit = traced_number(max_norm);
    const graph::value below = graph::binary(graph::op::lt, norm, limit);
    const graph::value factor = graph::select(below, graph::number_like(norm, 1), limit / norm);
    for (graph::value& g : updates) g = g * factor;
  }
};

clip_by_global_norm_t clip_by_global_norm(double max_norm);

/// u <- -rate(t) u, t from 0. Source: optax.scale_by_learning_rate.
template <Schedule Rate>
struct scale_by_learning_rate_t {
  Rate rate;

  template <class Model, class Wrt>
  struct state {
    counter count;
    TESSERA_MODULE(state, count)
  };

  TESSERA_MODULE(scale_by_learning_rate_t, rate)

  template <class State>
  constexpr void update(values& updates, const values&, State& s) const {
    const graph::value t = graph::convert(value_of(s.count), dtype::f32);
    assign_one(s.count, value_of(s.count) + 1.0);
    const graph::value scale = -rate.at(t);
    for (graph::value& u : updates) u = u * scale;
  }
};

/// A constant rate needs no count.
template <>
struct scale_by_learning_rate_t<constant_schedule_t> {
  constant_schedule_t rate;

  template <class Model, class Wrt>
  using state = empty_state;

  TESSERA_MODULE(scale_by_learning_rate_t, rate)

  constexpr void update(values& updates, const values&, empty_state&) const {
    const graph::value scale = -traced_number(rate.rate);
    for (graph::value& u : updates) u = u * scale;
  }
};

scale_by_learning_rate_t<constant_schedule_t> scale_by_learning_rate(double rate);
template <Schedule Rate>
scale_by_learning_rate_t<Rate> scale_by_learning_rate(Rate rate) {
  return {std::move(rate)};
}

#if defined(TESSERA_COMPILED)

TESSERA_COMPILED double checked(const char* name, double value, double low, double high) {
  if (!(value >= low && value < high))
    throw value_error(std::string("optim: ") + name + " is " + number_text(value) + "; it must be in [" +
                      number_text(low) + ", " + number_text(high) + ")");
  return value;
}

TESSERA_COMPILED trace_t trace(double decay) { return {nn::make_scalar(checked("momentum", decay, 0, 1))}; }

TESSERA_COMPILED scale_by_adam_t scale_by_adam(double b1, double b2, double eps) {
  checked("b1", b1, 0, 1), checked("b2", b2, 0, 1), checked("eps", eps, 0, 1);
  return {nn::make_scalar(b1), nn::make_scalar(1 - b1), nn::make_scalar(b2), nn::make_scalar(1 - b2),
          nn::make_scalar(eps)};
}

TESSERA_COMPILED add_decayed_weights_t add_decayed_weights(double weight_decay) {
  return {nn::make_scalar(checked("weight_decay", weight_decay, 0, 1e9))};
}

TESSERA_COMPILED clip_by_global_norm_t clip_by_global_norm(double max_norm) {
  if (!(max_norm > 0))
    throw value_error("clip_by_global_norm: max_norm is " + number_text(max_norm) + "; it must be more than 0");
  return {nn::make_scalar(max_norm)};
}

TESSERA_COMPILED scale_by_learning_rate_t<constant_schedule_t> scale_by_learning_rate(double rate) {
  return {constant_schedule(checked("learning_rate", rate, 0, 1e9))};
}

#endif

}  // namespace tessera::optim
