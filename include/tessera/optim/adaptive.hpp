// SPDX-License-Identifier: Apache-2.0
// Optimisers of Adam's family: two moments of the gradient, and what is made of them.
#pragma once

#include <tessera/optim/optimizers.hpp>

namespace tessera::optim {

/// What a rule for two moments sees beside the arrays: its numbers, of the arrays' element type.
struct moment_numbers {
  graph::value b1, rest1, b2, rest2, eps, eps_root, correct1, correct2, t;
};

/// m <- b1 m + (1 - b1) g, v by `Rule::second(v, g, m, numbers)`, u <- `Rule::direction(m, v, numbers)`; v starts
/// at `Rule::initial`.
template <class Rule>
struct scale_by_moments {
  nn::scalar b1, rest1, b2, rest2, eps, eps_root;

  template <class Model, class Wrt>
  struct state {
    counter count;
    like<Model, Wrt> mu, nu;
    TESSERA_MODULE(state, count, mu, nu)
  };

  TESSERA_MODULE(scale_by_moments, b1, rest1, b2, rest2, eps, eps_root)

  template <class State>
  constexpr void update(values& updates, const values&, State& s) const {
    using namespace value_math;
    const value t = count_up(s.count);
    const value correct1 = correction(traced_number(b1), t);
    const value correct2 = correction(traced_number(b2), t);
    values m = values_of(s.mu), v = values_of(s.nu);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const value g = updates[i];
      const auto in = [&](value x) { return number_for(g, x); };
      const moment_numbers x{in(traced_number(b1)),
                             in(traced_number(rest1)),
                             in(traced_number(b2)),
                             in(traced_number(rest2)),
                             in(traced_number(eps)),
                             in(traced_number(eps_root)),
                             in(correct1),
                             in(correct2),
                             in(t)};
      m[i] = x.b1 * m[i] + x.rest1 * g;
      v[i] = Rule::second(v[i], g, m[i], x);
      updates[i] = Rule::direction(m[i], v[i], x);
    }
    assign(s.mu, m);
    assign(s.nu, v);
  }

  template <class State>
  void start(State& s, std::span<const runtime::storage_ptr>) const {
    if (Rule::initial > 0) fill_arrays(s.nu, Rule::initial);
  }
};

namespace rules {

using graph::value;

/// The largest gradient so far, forgotten at rate b2. Source: Kingma and Ba 2015.
struct adamax {
  static constexpr double initial = 0;
  static constexpr value second(value v, value g, value, const moment_numbers& x) {
    return value_math::maximum(value_math::abs(g) + x.eps, x.b2 * v);
  }
  static constexpr value direction(value m, value v, const moment_numbers& x) { return m * x.correct1 / v; }
};

/// How far the gradient is from its mean. Source: Zhuang and others 2020.
struct belief {
  static constexpr double initial = 0;
  static constexpr value second(value v, value g, value m, const moment_numbers& x) {
    return x.b2 * v + x.rest2 * value_math::square(g - m) + x.eps_root;
  }
  static constexpr value direction(value m, value v, const moment_numbers& x) {
    return m * x.correct1 / (value_math::sqrt(v * x.correct2) + x.eps);
  }
};

/// The second moment moves by a bounded amount and starts at 1e-6; the first one starts at 0, so that zero gradients
/// move nothing. Source: Zaheer and others 2018.
struct yogi {
  static constexpr double initial = 1e-6;
  static constexpr value second(value v, value g, value, const moment_numbers& x) {
    const value s = value_math::square(g);
    return v - x.rest2 * value_math::sign(v - s) * s;
  }
  static constexpr value direction(value m, value v, const moment_numbers& x) {
    return m * x.correct1 / (value_math::sqrt(v * x.correct2 + x.eps_root) + x.eps);
  }
};

/// The variance of the second moment is made up for; the mean alone while it cannot be told (rho < 5). Source: Liu and
/// others 2020.
struct radam {
  static constexpr double initial = 0;
  static constexpr value second(value v, value g, value, const moment_numbers& x) {
    return x.b2 * v + x.rest2 * value_math::square(g);
  }
  static constexpr value direction(value m, value v, const moment_numbers& x) {
    const value limit = 2.0 / x.rest2 + -1.0;
    const value power = value_math::power(x.b2, x.t);
    const value rho = limit - 2.0 * x.t * power / (1.0 - power);
    const value known = graph::binary(graph::op::ge, rho, graph::number_like(rho, 5));
    const value some = graph::select(known, rho, graph::number_like(rho, 5));
    const value ratio =
        value_math::sqrt((some + -4.0) * (some + -2.0) * limit / ((limit + -4.0) * (limit + -2.0) * some));
    const value mean = m * x.correct1;
    const value scaled = ratio * mean / (value_math::sqrt(v * x.correct2 + x.eps_root) + x.eps);
    return graph::select(known, scaled, mean);
  }
};

}  // namespace rules

template <class Rule>
scale_by_moments<Rule> make_moments(adam_options o) {
  checked("b1", o.b1, 0, 1), checked("b2", o.b2, 0, 1), checked("eps", o.eps, 0, 1),
      checked("eps_root", o.eps_root, 0, 1);
  return {nn::make_scalar(o.b1),     nn::make_scalar(1 - o.b1), nn::make_scalar(o.b2),
          nn::make_scalar(1 - o.b2), nn::make_scalar(o.eps),    nn::make_scalar(o.eps_root)};
}

inline scale_by_moments<rules::adamax> scale_by_adamax(adam_options o = {}) { return make_moments<rules::adamax>(o); }
inline scale_by_moments<rules::belief> scale_by_belief(adam_options o = {.eps = 1e-16, .eps_root = 1e-16}) {
  return make_moments<rules::belief>(o);
}
inline scale_by_moments<rules::yogi> scale_by_yogi(adam_options o = {.eps = 1e-3}) {
  return make_moments<rules::yogi>(o);
}
inline scale_by_moments<rules::radam> scale_by_radam(adam_options o = {}) { return make_moments<rules::radam>(o); }

/// Each takes a rate and `{.b1 = , .b2 = , .eps = , .eps_root = }`, with the defaults of the function of this name in
/// Optax.
template <class Rate>
auto adamax(Rate learning_rate, adam_options o = {}) {
  return chain(scale_by_adamax(o), scale_by_learning_rate(learning_rate));
}
template <class Rate>
auto adabelief(Rate learning_rate, adam_options o = {.eps = 1e-16, .eps_root = 1e-16}) {
  return chain(scale_by_belief(o), scale_by_learning_rate(learning_rate));
}
template <class Rate>
auto yogi(Rate learning_rate, adam_options o = {.eps = 1e-3}) {
  return chain(scale_by_yogi(o), scale_by_learning_rate(learning_rate));
}
template <class Rate>
auto radam(Rate learning_rate, adam_options o = {}) {
  return chain(scale_by_radam(o), scale_by_learning_rate(learning_rate));
}

/// Adam that looks ahead along the first moment. Source: Dozat 2016; optax.nadam, optax.nadamw.
template <class Rate>
auto nadam(Rate learning_rate, adam_options o = {}) {
  return adam<adam_form{.nesterov = true}>(learning_rate, o);
}
template <class Rate, class Mask = all_leaves>
auto nadamw(Rate learning_rate, adamw_options o = {}, Mask mask = {}) {
  return adamw<adam_form{.nesterov = true}>(learning_rate, o, mask);
}

/// Adam with the largest second moment so far. Source: Reddi and others 2018; optax.amsgrad.
template <class Rate>
auto amsgrad(Rate learning_rate, adam_options o = {}) {
  return adam<adam_form{.amsgrad = true}>(learning_rate, o);
}

/// Three moments: of gradients, of their differences from step to step, of the squares of where they go. Source: Xie
/// and others 2022; optax.scale_by_adan.
struct scale_by_adan_t {
  nn::scalar b1, rest1, b2, rest2, b3, rest3, eps;

  template <class Model, class Wrt>
  struct state {
    counter count;
    like<Model, Wrt> m, v, n, g;
    TESSERA_MODULE(state, count, m, v, n, g)
  };

  TESSERA_MODULE(scale_by_adan_t, b1, rest1, b2, rest2, b3, rest3, eps)

  template <class State>
  constexpr void update(values& updates, const values&, State& s) const {
    using namespace value_math;
    const value first = equal(value_of(s.count), 0);
    const value t = count_up(s.count);
    const value correct1 = correction(traced_number(b1), t);
    const value correct2 = correction(traced_number(b2), t);
    const value correct3 = correction(traced_number(b3), t);
    values m = values_of(s.m), v = values_of(s.v), n = values_of(s.n), before = values_of(s.g);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const value g = updates[i];
      const auto in = [&](value x) { return number_for(g, x); };
      const value difference = graph::select(first, graph::number_like(g, 0), g - before[i]);
      before[i] = g;
      m[i] = moving_average(m[i], g, traced_number(b1), traced_number(rest1));
      v[i] = moving_average(v[i], difference, traced_number(b2), traced_number(rest2));
      const value ahead = square(g + in(traced_number(rest2)) * difference);
      n[i] = moving_average(n[i], ahead, traced_number(b3), traced_number(rest3));
      updates[i] = (m[i] * in(correct1) + in(traced_number(rest2)) * (v[i] * in(correct2))) /
                   (sqrt(n[i] * in(correct3)) + in(traced_number(eps)));
    }
    assign(s.m, m), assign(s.v, v), assign(s.n, n), assign(s.g, before);
  }
};

struct adan_options {
  double b1 = 0.98;
  double b2 = 0.92;
  double b3 = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
};
inline scale_by_adan_t scale_by_adan(adan_options o = {}) {
  checked("b1", o.b1, 0, 1), checked("b2", o.b2, 0, 1), checked("b3", o.b3, 0, 1), checked("eps", o.eps, 0, 1);
  return {nn::make_scalar(o.b1), nn::make_scalar(1 - o.b1), nn::make_scalar(o.b2), nn::make_scalar(1 - o.b2),
          nn::make_scalar(o.b3), nn::make_scalar(1 - o.b3), nn::make_scalar(o.eps)};
}
/// Source: optax.adan.
template <class Rate>
auto adan(Rate learning_rate, adan_options o = {}) {
  return chain(scale_by_adan(o), add_decayed_weights(o.weight_decay), scale_by_learning_rate(learning_rate));
}

/// v <- b2 v + (1 - b2) |g|^2, one number an array (the first time |g|^2), m <- b1 m + g / (sqrt(v + eps_root) + eps) +
/// weight_decay p, u <- m. Source: Ginsburg and others 2019; optax.scale_by_novograd.
struct scale_by_novograd_t {
  nn::scalar b1, b2, rest2, eps, eps_root, weight_decay;

  template <class Model, class Wrt>
  struct state {
    counter count;
    like<Model, Wrt> mu;
    like<Model, Wrt, one_number> nu;
    TESSERA_MODULE(state, count, mu, nu)
  };

  TESSERA_MODULE(scale_by_novograd_t, b1, b2, rest2, eps, eps_root, weight_decay)

  template <class State>
  constexpr void update(values& updates, const values& params, State& s) const {
    using namespace value_math;
    const value first = equal(value_of(s.count), 0);
    count_up(s.count);
    values m = values_of(s.mu), v = values_of(s.nu);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const value g = updates[i];
      const auto in = [&](const nn::scalar& number) { return number_for(g, traced_number(number)); };
      const value squares = graph::sum(square(g));
      v[i] = graph::select(first, squares, in(b2)*v[i] + in(rest2)*squares);
      m[i] = in(b1)*m[i] + (g / (sqrt(v[i] + in(eps_root)) + in(eps)) + in(weight_decay)*params[i]);
      updates[i] = m[i];
    }
    assign(s.mu, m), assign(s.nu, v);
  }
};

struct novograd_options {
  double b1 = 0.9;
  double b2 = 0.25;
  double eps = 1e-6;
  double eps_root = 0;
  double weight_decay = 0;
};
inline scale_by_novograd_t scale_by_novograd(novograd_options o = {}) {
  checked("b1", o.b1, 0, 1), checked("b2", o.b2, 0, 1), checked("eps", o.eps, 0, 1);
  checked("eps_root", o.eps_root, 0, 1), checked("weight_decay", o.weight_decay, 0, 1e9);
  return {nn::make_scalar(o.b1),  nn::make_scalar(o.b2),       nn::make_scalar(1 - o.b2),
          nn::make_scalar(o.eps), nn::make_scalar(o.eps_root), nn::make_scalar(o.weight_decay)};
}
/// Source: optax.novograd.
template <class Rate>
auto novograd(Rate learning_rate, novograd_options o = {}) {
  return chain(scale_by_novograd(o), scale_by_learning_rate(learning_rate));
}

}  // namespace tessera::optim
