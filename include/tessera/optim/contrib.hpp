// SPDX-License-Identifier: Apache-2.0
// Newer optimisers: Muon, schedule-free averaging, Prodigy.
#pragma once

#include <tessera/optim/gradient_scaling.hpp>
#include <tessera/optim/masks.hpp>

namespace tessera::optim::contrib {

namespace detail {

constexpr graph::value uncut(graph::value v) {
  aval whole = v.type();
  for (int d = 0; d < whole.rank; ++d) whole.dims[d].axes = 0;
  return graph::reshard(v, whole);
}

/// a b, or a b^T, of whole matrices.
constexpr graph::value product(graph::value a, graph::value b, bool transposed = false) {
  using sharding::dim_append;
  const sharding::dot_dims dims{dim_append(0, 1), dim_append(0, transposed ? 1 : 0), 0, 0};
  return graph::dot(a, b, dims, graph::expect(sharding::dot_general(a.type(), b.type(), dims, nullptr, a.mesh())));
}

/// About U V^T for a matrix U S V^T, by five steps of a polynomial of Newton and Schulz in x x^T.
constexpr graph::value orthogonal(graph::value x, graph::value eps) {
  const aval type = x.type();
  const bool tall = type.dims[0].extent > type.dims[1].extent;
  const auto turn = [&](graph::value v) {
    return tall ? graph::transpose(v, sharding::dim_append(sharding::dim_append(0, 1), 0)) : v;
  };
  x = turn(uncut(x));
  x = x / (value_math::norm(x) + number_for(x, eps));
  for (int step = 0; step < 5; ++step) {
    const graph::value a = product(x, x, true);
    const graph::value b = a * -4.7750 + product(a, a) * 2.0315;
    x = x * 3.4445 + product(b, x);
  }
  return graph::reshard(turn(x), type);
}

}  // namespace detail

/// Momentum of matrices, made orthogonal: every direction moves alike. Only for arrays of two dimensions. Cut ones are
/// gathered for it. Source: Jordan and others 2024; optax.contrib.scale_by_muon.
struct scale_by_muon_t {
  nn::scalar beta, rest, eps;

  template <class Model, class Wrt>
  struct state {
    counter count;
    like<Model, Wrt> mu;
    TESSERA_MODULE(state, count, mu)
  };

  TESSERA_MODULE(scale_by_muon_t, beta, rest, eps)

  template <class State>
  constexpr void update(values& updates, const values&, State& s) const {
    using namespace value_math;
    const value t = count_up(s.count);
    const value now = correction(traced_number(beta), t);
    const value ahead = correction(traced_number(beta), t + 1.0);
    values m = values_of(s.mu);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const value g = updates[i];
      const auto in = [&](value x) { return number_for(g, x); };
      m[i] = moving_average(m[i], g, traced_number(beta), traced_number(rest));
      const value mean = in(traced_number(beta)) * (m[i] * in(ahead)) + in(traced_number(rest)) * (g * in(now));
      const auto rows = static_cast<double>(g.type().dims[0].extent);
      const auto columns = static_cast<double>(g.type().dims[1].extent);
      const value longer = sqrt(graph::number_like(g, columns > rows ? columns / rows : 1));
      updates[i] = detail::orthogonal(mean, traced_number(eps)) * longer;
    }
    assign(s.mu, m);
  }
};

struct muon_options {
  double beta = 0.95;
  double eps = 1e-8;
  double weight_decay = 0;
  double adam_b1 = 0.9;
  double adam_b2 = 0.999;
  double adam_weight_decay = 0;
};

inline scale_by_muon_t scale_by_muon(double beta = 0.95, double eps = 1e-8) {
  checked("beta", beta, 0, 1), checked("eps", eps, 0, 1);
  return {nn::make_scalar(beta), nn::make_scalar(1 - beta), nn::make_scalar(eps)};
}

struct two_dimensions {
  constexpr bool operator()(const leaf& l) const { return l.rank == 2; }
};

/// Muon for matrices, AdamW that looks ahead for everything else. Source: optax.contrib.muon.
template <class Rate>
auto muon(Rate learning_rate, muon_options o = {}) {
  return multi_transform(
      group(two_dimensions{}, chain(scale_by_muon(o.beta, o.eps), add_decayed_weights(o.weight_decay),
                                    scale_by_learning_rate(learning_rate))),
      group(everything_else,
            adamw<adam_form{.nesterov = true}>(
                learning_rate, {.b1 = o.adam_b1, .b2 = o.adam_b2, .eps = o.eps, .weight_decay = o.adam_weight_decay})));
}

/// z <- z + u, the inner update; x <- (1 - c) x + c z, c = w / sum w, w = (largest rate so far)^power; parameters are
/// y = b1 x + (1 - b1) z. Evaluate at x: `schedule_free_eval_params`. Source: Defazio and others 2024;
/// optax.contrib.schedule_free.
template <Schedule Rate, class Inner>
struct schedule_free_t {
  Rate learning_rate;
  nn::scalar b1, rest1, weight_lr_power;
  Inner inner;

  template <class Model, class Wrt>
  struct state {
    counter step_count;
    number_variable weight_sum, max_lr;
    like<Model, Wrt> z;
    typename Inner::template state<Model, Wrt> inner;
    TESSERA_MODULE(state, step_count, weight_sum, max_lr, z, inner)
  };

  TESSERA_MODULE(schedule_free_t, learning_rate, b1, rest1, weight_lr_power, inner)

  template <class State>
  constexpr void update(values& updates, const values& params, State& s) const {
    using namespace value_math;
    const value rate = maximum(value_of(s.max_lr), learning_rate.at(count_up(s.step_count)));
    const value weight = power(rate, traced_number(weight_lr_power));
    const value total = value_of(s.weight_sum) + weight;
    const value none = equal(total, 0);
    const value share = graph::select(none, graph::number_like(total, 0),
                                      weight / graph::select(none, graph::number_like(total, 1), total));
    assign_one(s.max_lr, rate);
    assign_one(s.weight_sum, total);
    inner.update(updates, params, s.inner);
    values z = values_of(s.z);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const value y = params[i];
      const auto in = [&](value x) { return number_for(y, x); };
      const value before = (y - in(traced_number(rest1)) * z[i]) / in(traced_number(b1));
      z[i] = z[i] + updates[i];
      const value x = (1.0 - in(share)) * before + in(share)*z[i];
      updates[i] = in(traced_number(b1)) * x + in(traced_number(rest1)) * z[i] - y;
    }
    assign(s.z, z);
  }

  template <class State>
  void start(State& s, std::span<const runtime::storage_ptr> params) const {
    copy_arrays(s.z, params);
    start_state(inner, s.inner, params);
  }

  /// What to evaluate the model at, in a trace: x, from parameters y.
  template <class State>
  constexpr values eval_params(const values& params, const State& s) const {
    values z = values_of(s.z);
    for (std::size_t i = 0; i < z.size(); ++i)
      z[i] = (params[i] - number_for(z[i], traced_number(rest1)) * z[i]) / number_for(z[i], traced_number(b1));
    return z;
  }
};

struct schedule_free_options {
  double b1 = 0.9;
  double weight_lr_power = 2;
};

/// `schedule_free(sgd(rate), rate)`: the inner one without momentum, the rate with a warm-up but without decay.
template <class Inner, class Rate>
auto schedule_free(Inner inner, Rate learning_rate, schedule_free_options o = {}) {
  checked("schedule_free", "b1", o.b1, o.b1 > 0 && o.b1 < 1, "more than 0 and less than 1");
  checked("weight_lr_power", o.weight_lr_power, 0, 1e3);
  return schedule_free_t<decltype(rate_of(learning_rate)), Inner>{rate_of(std::move(learning_rate)),
                                                                  nn::make_scalar(o.b1), nn::make_scalar(1 - o.b1),
                                                                  nn::make_scalar(o.weight_lr_power), std::move(inner)};
}
/// Source: optax.contrib.schedule_free_sgd, schedule_free_adamw.
template <class Rate>
auto schedule_free_sgd(Rate learning_rate, schedule_free_options o = {}) {
  return schedule_free(sgd(learning_rate), learning_rate, o);
}
template <class Rate>
auto schedule_free_adamw(Rate learning_rate, adamw_options a = {}, schedule_free_options o = {}) {
  constexpr rms_form second_moment{.eps_in_sqrt = false, .bias_correction = true};
  return schedule_free(chain(scale_by_rms<second_moment>({.decay = a.b2, .eps = a.eps}),
                             add_decayed_weights(a.weight_decay), scale_by_learning_rate(learning_rate)),
                       learning_rate, o);
}

/// AdamW with a rate found from how far parameters have gone: rates are factors, usually 1. Source: Mishchenko and
/// Defazio 2023; optax.contrib.prodigy.
template <Schedule Rate>
struct prodigy_t {
  Rate learning_rate;
  nn::scalar b1, rest1, b2, rest2, b3, eps, estim_lr0, estim_lr_coef, weight_decay;

  template <class Model, class Wrt>
  struct state {
    counter count;
    number_variable estim_lr, numerator_weighted;
    like<Model, Wrt> exp_avg, exp_avg_sq, grad_sum, params0;
    TESSERA_MODULE(state, count, estim_lr, numerator_weighted, exp_avg, exp_avg_sq, grad_sum, params0)
  };

  TESSERA_MODULE(prodigy_t, learning_rate, b1, rest1, b2, rest2, b3, eps, estim_lr0, estim_lr_coef, weight_decay)

  template <class State>
  constexpr void update(values& updates, const values& params, State& s) const {
    using namespace value_math;
    const value factor = learning_rate.at(count_of(s.count));
    const value t = count_up(s.count);
    const value d = value_of(s.estim_lr), d0 = traced_number(estim_lr0);
    const value bias = correction(traced_number(b1), t) * sqrt(1.0 - power(traced_number(b2), t));
    const value step = d * factor * bias;
    values m = values_of(s.exp_avg), v = values_of(s.exp_avg_sq), sums = values_of(s.grad_sum);
    const values origin = values_of(s.params0);
    value gone{}, size{};
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const auto in = [&](value x) { return number_for(params[i], x); };
      add(gone, graph::sum(updates[i] * (origin[i] - params[i])));
      const value g = in(d)*updates[i];
      m[i] = moving_average(m[i], g, traced_number(b1), traced_number(rest1));
      v[i] = moving_average(v[i], square(g), traced_number(b2), traced_number(rest2));
      sums[i] = in(traced_number(b3)) * sums[i] + in(step / d0) * g;
      add(size, graph::sum(abs(sums[i])));
    }
    const value numerator = traced_number(b3) * value_of(s.numerator_weighted) + d / d0 * step * gone;
    const value nothing = equal(size, 0);
    const value estimate =
        traced_number(estim_lr_coef) * numerator / graph::select(nothing, graph::number_like(size, 1), size);
    const value next = maximum(d, graph::select(nothing, d, estimate));
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const auto in = [&](value x) { return number_for(params[i], x); };
      const value direction = m[i] / (sqrt(v[i]) + in(next * traced_number(eps)));
      updates[i] = -in(step) * (direction + in(traced_number(weight_decay)) * params[i]);
    }
    assign_one(s.estim_lr, next);
    assign_one(s.numerator_weighted, numerator);
    assign(s.exp_avg, m), assign(s.exp_avg_sq, v), assign(s.grad_sum, sums);
  }

  template <class State>
  void start(State& s, std::span<const runtime::storage_ptr> params) const {
    fill_array(*s.estim_lr.data, static_cast<double>(number_of(estim_lr0)));
    copy_arrays(s.params0, params);
  }

 private:
  static constexpr void add(graph::value& total, graph::value x) {
    x = graph::convert(x, dtype::f32);
    total = total.owner == nullptr ? x : total + x;
  }
};

struct prodigy_options {
  double b1 = 0.9;
  double b2 = 0.999;
  double b3 = 0;  ///< sqrt(b2) if 0
  double eps = 1e-8;
  double estim_lr0 = 1e-6;
  double estim_lr_coef = 1;
  double weight_decay = 0;
};
template <class Rate = double>
auto prodigy(Rate learning_rate = 1.0, prodigy_options o = {}) {
  checked("b1", o.b1, 0, 1), checked("b2", o.b2, 0, 1), checked("b3", o.b3, 0, 1), checked("eps", o.eps, 0, 1);
  checked("prodigy", "estim_lr0", o.estim_lr0, o.estim_lr0 > 0, "finite and more than 0");
  const auto scalar = [](double x) { return nn::make_scalar(x); };
  return prodigy_t<decltype(rate_of(learning_rate))>{rate_of(std::move(learning_rate)),
                                                     scalar(o.b1),
                                                     scalar(1 - o.b1),
                                                     scalar(o.b2),
                                                     scalar(1 - o.b2),
                                                     scalar(o.b3 > 0 ? o.b3 : std::sqrt(o.b2)),
                                                     scalar(o.eps),
                                                     scalar(o.estim_lr0),
                                                     scalar(checked("estim_lr_coef", o.estim_lr_coef, 0, 1e9)),
                                                     scalar(checked("weight_decay", o.weight_decay, 0, 1e9))};
}

}  // namespace tessera::optim::contrib
