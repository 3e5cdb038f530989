// SPDX-License-Identifier: Apache-2.0
// The steps that usual optimisers chain: momentum, Adam's scaling, weight decay, learning rates.
#pragma once

#include <tessera/optim/clipping.hpp>
#include <tessera/optim/schedule.hpp>
#include <tessera/optim/transformation.hpp>

namespace tessera::optim {

/// An argument of sgd, rmsprop, lars and trace: look ahead along the momentum.
struct nesterov_t {};
inline constexpr nesterov_t nesterov{};

/// m <- g + decay m; u <- m, or with Nesterov u <- g + decay m. Source: optax.trace.
template <bool Nesterov = false, class Map = same_type>
struct trace_t {
  nn::scalar decay;

  template <class Model, class Wrt>
  using state = like<Model, Wrt, Map>;

  TESSERA_MODULE(trace_t, decay)

  template <class State>
  constexpr void update(values& updates, const values&, State& momentum) const {
    values m = values_of(momentum);
    for (std::size_t i = 0; i < m.size(); ++i) {
      const graph::value before = widened(m[i], updates[i]);
      const graph::value d = number_for(before, traced_number(decay));
      const graph::value g = widened(updates[i], before);
      const graph::value now = g + d * before;
      m[i] = stored(now, m[i]);
      updates[i] = stored(Nesterov ? g + d * now : now, updates[i]);
    }
    assign(momentum, m);
  }
};

inline trace_t<> trace(double decay) { return {nn::make_scalar(checked("momentum", decay, 0, 1))}; }
/// `trace<bf16>(0.9)`: momentum is computed in float32 and kept in bfloat16.
template <dtype Accumulator>
trace_t<false, of_dtype<Accumulator>> trace(double decay) {
  return {nn::make_scalar(checked("momentum", decay, 0, 1))};
}
inline trace_t<true> trace(double decay, nesterov_t) { return {nn::make_scalar(checked("momentum", decay, 0, 1))}; }

/// What is compiled into scale_by_adam: Nesterov's look ahead, the largest second moment so far in place of the last
/// one (AMSGrad), a number added within the root, and the element type that the first moment is kept in, between steps:
/// that of the parameter if not told, float32 where it has 16 bits. `adam_form{.typed_mu = true, .mu_dtype = bf16}`
/// makes the state of float32 parameters 1.5 times as large as they are, not twice.
struct adam_form {
  bool nesterov = false;
  bool amsgrad = false;
  bool eps_root = false;
  bool typed_mu = false;
  dtype mu_dtype = dtype::f32;
};

/// m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g^2, u <- (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps), t from 1;
/// the powers are float32. Source: Kingma and Ba 2015; optax.scale_by_adam.
template <adam_form Form = adam_form{}>
struct scale_by_adam_t {
  using root_number = std::conditional_t<Form.eps_root, nn::scalar, empty_state>;
  using mu_map = std::conditional_t<Form.typed_mu, of_dtype<Form.mu_dtype>, same_type>;

  nn::scalar b1, rest1, b2, rest2, eps;
  root_number eps_root;

  template <class Model, class Wrt>
  struct state {
    counter count;
    like<Model, Wrt, mu_map> mu;
    like<Model, Wrt> nu;
    std::conditional_t<Form.amsgrad, like<Model, Wrt>, empty_state> nu_max;
    TESSERA_MODULE(state, count, mu, nu, nu_max)
  };

  TESSERA_MODULE(scale_by_adam_t, b1, rest1, b2, rest2, eps, eps_root)

  template <class State>
  constexpr void update(values& updates, const values&, State& s) const {
    using namespace value_math;
    const value t = count_up(s.count);
    const value correct1 = correction(traced_number(b1), t);
    const value correct2 = correction(traced_number(b2), t);
    const value ahead = Form.nesterov ? correction(traced_number(b1), t + 1.0) : correct1;
    values m = values_of(s.mu), v = values_of(s.nu), most = values_of(s.nu_max);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const value g = updates[i];
      const auto in = [&](value number) { return number_for(g, number); };
      const value mean = moving_average(m[i], g, traced_number(b1), traced_number(rest1));
      m[i] = stored(mean, m[i]);
      v[i] = in(traced_number(b2)) * v[i] + in(traced_number(rest2)) * square(g);
      value first = stored(mean, g) * in(ahead);
      if (Form.nesterov) first = in(traced_number(b1)) * first + in(traced_number(rest1)) * (g * in(correct1));
      value second = v[i] * in(correct2);
      if (Form.amsgrad) second = most[i] = maximum(most[i], second);
      if constexpr (Form.eps_root) second = second + in(traced_number(eps_root));
      updates[i] = first / (sqrt(second) + in(traced_number(eps)));
    }
    assign(s.mu, m);
    assign(s.nu, v);
    if constexpr (Form.amsgrad) assign(s.nu_max, most);
  }
};

/// Adam's numbers, for `adam(1e-3, {.b2 = 0.99})`.
struct adam_options {
  double b1 = 0.9;
  double b2 = 0.999;
  double eps = 1e-8;
  double eps_root = 0;  ///< with adam_form{.eps_root = true} only
};

template <adam_form Form = adam_form{}>
scale_by_adam_t<Form> scale_by_adam(adam_options o) {
  checked("b1", o.b1, 0, 1), checked("b2", o.b2, 0, 1), checked("eps", o.eps, 0, 1);
  scale_by_adam_t<Form> made{nn::make_scalar(o.b1),     nn::make_scalar(1 - o.b1), nn::make_scalar(o.b2),
                             nn::make_scalar(1 - o.b2), nn::make_scalar(o.eps),    {}};
  if constexpr (Form.eps_root) made.eps_root = nn::make_scalar(checked("eps_root", o.eps_root, 0, 1));
  else checked("eps_root, without adam_form{.eps_root = true},", o.eps_root, 0, std::numeric_limits<double>::min());
  return made;
}
inline scale_by_adam_t<> scale_by_adam(double b1 = 0.9, double b2 = 0.999, double eps = 1e-8) {
  return scale_by_adam(adam_options{b1, b2, eps});
}

/// Everything; the mask of weight decay that is not told.
struct all_leaves {
  constexpr bool operator()(const leaf&) const { return true; }
};

/// u <- u + weight_decay p, for the variables that the mask chooses. Source: optax.add_decayed_weights.
template <class Mask = all_leaves>
struct add_decayed_weights_t {
  nn::scalar weight_decay;

  template <class Model, class Wrt>
  struct state {
    TESSERA_MODULE(state)
    static constexpr bool decays(std::size_t i) {
      if constexpr (std::same_as<Mask, all_leaves>) return true;
      else return detail::chosen<Model, Wrt, Mask>::flags[i];
    }
  };

  TESSERA_MODULE(add_decayed_weights_t, weight_decay)

  template <class State>
  constexpr void update(values& updates, const values& params, State&) const {
    for (std::size_t i = 0; i < updates.size(); ++i)
      if (State::decays(i)) updates[i] = updates[i] + number_for(params[i], traced_number(weight_decay)) * params[i];
  }
};

/// `add_decayed_weights(1e-4)`, `add_decayed_weights(1e-4, [](const leaf& l) { return l.rank > 1; })`.
template <class Mask = all_leaves>
add_decayed_weights_t<Mask> add_decayed_weights(double weight_decay, Mask = {}) {
  return {nn::make_scalar(checked("weight_decay", weight_decay, 0, 1e9))};
}

/// u <- -rate(t) u, t from 0. Source: optax.scale_by_learning_rate.
template <Schedule Rate, bool Descend = true>
struct scale_by_learning_rate_t {
  Rate learning_rate;

  template <class Model, class Wrt>
  struct state {
    counter count;
    TESSERA_MODULE(state, count)
  };

  TESSERA_MODULE(scale_by_learning_rate_t, learning_rate)

  template <class State>
  constexpr void update(values& updates, const values&, State& s) const {
    const graph::value t = count_of(s.count);
    assign_one(s.count, value_of(s.count) + 1.0);
    const graph::value scale = Descend ? -learning_rate.at(t) : learning_rate.at(t);
    for (graph::value& u : updates) u = u * number_for(u, scale);
  }
};

/// A constant rate needs no count.
template <bool Descend>
struct scale_by_learning_rate_t<constant_schedule_t, Descend> {
  constant_schedule_t learning_rate;

  template <class Model, class Wrt>
  using state = empty_state;

  TESSERA_MODULE(scale_by_learning_rate_t, learning_rate)

  constexpr void update(values& updates, const values&, empty_state&) const {
    const graph::value scale = Descend ? -traced_number(learning_rate.rate) : traced_number(learning_rate.rate);
    for (graph::value& u : updates) u = u * number_for(u, scale);
  }
};

/// The schedule of a learning rate, which is a number or a schedule.
inline constant_schedule_t rate_of(double rate) { return constant_schedule(checked("learning_rate", rate, 0, 1e9)); }
template <Schedule Rate>
Rate rate_of(Rate rate) {
  return rate;
}

template <class Rate>
auto scale_by_learning_rate(Rate rate) {
  return scale_by_learning_rate_t<decltype(rate_of(rate))>{rate_of(std::move(rate))};
}

/// u <- rate(t) u. Source: optax.scale_by_schedule.
template <Schedule Rate>
scale_by_learning_rate_t<Rate, false> scale_by_schedule(Rate rate) {
  return {std::move(rate)};
}

}  // namespace tessera::optim
