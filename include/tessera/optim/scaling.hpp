// SPDX-License-Identifier: Apache-2.0
// Transformations of updates by themselves and their parameters: factors, signs, trust ratios, means, bounds.
#pragma once

#include <tessera/optim/transforms.hpp>

namespace tessera::optim {

/// A transformation without state: `Rule::of(update, parameter, number)` for each variable.
template <class Rule>
struct stateless {
  nn::scalar number;

  template <class Model, class Wrt>
  using state = empty_state;

  TESSERA_MODULE(stateless, number)

  constexpr void update(values& updates, const values& params, empty_state&) const {
    for (std::size_t i = 0; i < updates.size(); ++i)
      updates[i] = Rule::of(updates[i], params[i], number_for(updates[i], traced_number(number)));
  }
};

namespace rules {

using graph::value;

struct scale {
  static constexpr value of(value u, value, value factor) { return u * factor; }
};
struct sign {
  static constexpr value of(value u, value, value) { return value_math::sign(u); }
};
struct param_norm {
  static constexpr value of(value u, value p, value least) {
    return u * value_math::maximum(value_math::norm(p), least);
  }
};
struct param_rms {
  static constexpr value of(value u, value p, value least) {
    return u * value_math::maximum(value_math::sqrt(value_math::mean_square(p)), least);
  }
};
struct centralize {
  static constexpr value of(value u, value, value) {
    const int rank = u.type().rank;
    if (rank < 2) return u;
    const sharding::dim_set dims = sharding::all_dims(rank) & ~1U;
    const auto count = static_cast<double>(u.type().size() / u.type().dims[0].extent);
    return u - graph::reduce(graph::op::reduce_sum, u, dims, true) / count;
  }
};
struct zero_nans {
  static constexpr value of(value u, value, value) {
    return graph::select(graph::binary(graph::op::eq, u, u), u, graph::number_like(u, 0));
  }
};
struct nonnegative {
  static constexpr value of(value u, value p, value) {
    return graph::select(value_math::less(p + u, graph::number_like(u, 0)), -p, u);
  }
};

}  // namespace rules

/// u <- factor u. Source: optax.scale.
inline stateless<rules::scale> scale(double factor) {
  return {nn::make_scalar(checked("scale", "factor", factor, true, "finite"))};
}
/// u <- sign(u). Source: optax.scale_by_sign.
inline stateless<rules::sign> scale_by_sign() { return {nn::make_scalar(0)}; }
/// u <- u max(|p|, min_scale), and with the root mean square of p. Source: optax.scale_by_param_block_norm, _rms.
inline stateless<rules::param_norm> scale_by_param_block_norm(double min_scale = 1e-3) {
  return {nn::make_scalar(checked("min_scale", min_scale, 0, 1e9))};
}
inline stateless<rules::param_rms> scale_by_param_block_rms(double min_scale = 1e-3) {
  return {nn::make_scalar(checked("min_scale", min_scale, 0, 1e9))};
}
/// u <- u - mean of u over all dimensions but the first, for arrays of two dimensions or more. Source: Yong and others
/// 2020; optax.centralize.
inline stateless<rules::centralize> centralize() { return {nn::make_scalar(0)}; }
/// NaN becomes 0. Source: optax.zero_nans.
inline stateless<rules::zero_nans> zero_nans() { return {nn::make_scalar(0)}; }
/// No parameter becomes negative. Source: optax.keep_params_nonnegative.
inline stateless<rules::nonnegative> keep_params_nonnegative() { return {nn::make_scalar(0)}; }

/// u <- u coefficient |p| / (|u| + eps), array by array; unscaled where |p| or |u| is 0. Source: You and others 2020;
/// optax.scale_by_trust_ratio.
struct scale_by_trust_ratio_t {
  nn::scalar min_norm, trust_coefficient, eps;

  template <class Model, class Wrt>
  using state = empty_state;

  TESSERA_MODULE(scale_by_trust_ratio_t, min_norm, trust_coefficient, eps)

  constexpr void update(values& updates, const values& params, empty_state&) const {
    using namespace value_math;
    for (std::size_t i = 0; i < updates.size(); ++i) {
      value& u = updates[i];
      const value least = number_for(u, traced_number(min_norm));
      const value of_param = maximum(norm(params[i]), least);
      const value of_update = maximum(norm(u), least);
      const value ratio =
          number_for(u, traced_number(trust_coefficient)) * of_param / (of_update + number_for(u, traced_number(eps)));
      u = u * graph::select(either(equal(of_param, 0), equal(of_update, 0)), graph::number_like(ratio, 1), ratio);
    }
  }
};

struct trust_ratio_options {
  double min_norm = 0;
  double trust_coefficient = 1;
  double eps = 0;
};
inline scale_by_trust_ratio_t scale_by_trust_ratio(trust_ratio_options o = {}) {
  return {nn::make_scalar(checked("min_norm", o.min_norm, 0, 1e9)),
          nn::make_scalar(checked("trust_coefficient", o.trust_coefficient, 0, 1e9)),
          nn::make_scalar(checked("eps", o.eps, 0, 1))};
}

/// e <- decay e + (1 - decay) u; u <- e / (1 - decay^t), or e without debias. Source: optax.ema.
template <bool Debias, class Map = same_type>
struct ema_t {
  nn::scalar decay, rest;

  template <class Model, class Wrt>
  struct state {
    counter count;
    like<Model, Wrt, Map> average;
    TESSERA_MODULE(state, count, average)
  };

  TESSERA_MODULE(ema_t, decay, rest)

  template <class State>
  constexpr void update(values& updates, const values&, State& s) const {
    const graph::value t = count_up(s.count);
    values e = values_of(s.average);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const graph::value now = moving_average(e[i], updates[i], traced_number(decay), traced_number(rest));
      e[i] = stored(now, e[i]);
      const graph::value out = Debias ? now * number_for(now, value_math::correction(traced_number(decay), t)) : now;
      updates[i] = stored(out, updates[i]);
    }
    assign(s.average, e);
  }
};

template <bool Debias = true>
ema_t<Debias> ema(double decay) {
  checked("decay", decay, 0, 1);
  return {nn::make_scalar(decay), nn::make_scalar(1 - decay)};
}

/// Sums of k updates, given every k-th time; 0 between. Source: optax.apply_every.
struct apply_every_t {
  nn::scalar k;

  template <class Model, class Wrt>
  struct state {
    counter count;
    like<Model, Wrt> sums;
    TESSERA_MODULE(state, count, sums)
  };

  TESSERA_MODULE(apply_every_t, k)

  template <class State>
  constexpr void update(values& updates, const values&, State& s) const {
    using namespace value_math;
    const value step = count_of(s.count);
    const value begins = equal(step, 0);
    const value ends = graph::binary(op::ge, step, traced_number(k) - graph::number_like(step, 1));
    values sums = values_of(s.sums);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const value zero = graph::number_like(sums[i], 0);
      sums[i] = graph::select(begins, zero, sums[i]) + updates[i];
      updates[i] = graph::select(ends, sums[i], zero);
    }
    assign(s.sums, sums);
    const value count = value_of(s.count);
    assign_one(s.count, graph::select(ends, graph::number_like(count, 0), count + 1.0));
  }
};

inline apply_every_t apply_every(std::int64_t k) {
  return {nn::make_scalar(checked("apply_every", "k", static_cast<double>(k), k >= 1, "at least 1"))};
}

}  // namespace tessera::optim
