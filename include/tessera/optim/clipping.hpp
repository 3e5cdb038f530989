// SPDX-License-Identifier: Apache-2.0
// Transformations that bound updates: by the norm of all, element by element, by the size of each array.
#pragma once

#include <tessera/optim/transformation.hpp>

#include <limits>

namespace tessera::optim {

/// The square root of the sum of all squares, over whole arrays, however they are cut; float32, of 16-bit arrays too.
/// Squares are added up as they are and made smaller by 2^-192 as well, for sums that overflow: only an infinite or NaN
/// element gives an infinite or NaN norm. Source: optax.global_norm.
constexpr graph::value global_norm(const values& updates) {
  using namespace value_math;
  constexpr double smaller = 0x1p-96;
  value total{}, of_large{};
  const auto add = [](value& sum, value g) {
    const value squares = graph::convert(graph::sum(square(g)), dtype::f32);
    sum = sum.owner == nullptr ? squares : sum + squares;
  };
  for (const value& update : updates) {
    const value g = graph::convert(update, accumulator(update.type().type));
    add(total, g), add(of_large, g * smaller);
  }
  const value fits = less(total, graph::number_like(total, std::numeric_limits<double>::infinity()));
  return graph::select(fits, sqrt(total), sqrt(of_large) * (1 / smaller));
}

/// Untouched where the global norm is at most `max_norm`, else scaled to it. A norm that is not finite leaves updates
/// as they are, for apply_if_finite or skip_not_finite to refuse. Source: optax.clip_by_global_norm.
struct clip_by_global_norm_t {
  nn::scalar max_norm;

  template <class Model, class Wrt>
  using state = empty_state;

  TESSERA_MODULE(clip_by_global_norm_t, max_norm)

  constexpr void update(values& updates, const values&, empty_state&) const {
    using namespace value_math;
    if (updates.empty()) return;
    const value norm = global_norm(updates);
    const value limit = traced_number(max_norm);
    const value finite = less(norm, graph::number_like(norm, std::numeric_limits<double>::infinity()));
    const value factor = graph::select(both(less(limit, norm), finite), limit / norm, graph::number_like(norm, 1));
    for (value& g : updates) g = g * number_for(g, factor);
  }
};

inline clip_by_global_norm_t clip_by_global_norm(double max_norm) {
  return {
      nn::make_scalar(checked("clip_by_global_norm", "max_norm", max_norm, max_norm >= 0, "finite and at least 0"))};
}

/// Each element kept within [-max_delta, max_delta]. Source: optax.clip.
struct clip_t {
  nn::scalar max_delta;

  template <class Model, class Wrt>
  using state = empty_state;

  TESSERA_MODULE(clip_t, max_delta)

  constexpr void update(values& updates, const values&, empty_state&) const {
    using namespace value_math;
    for (value& g : updates) {
      const value bound = number_for(g, traced_number(max_delta));
      g = minimum(maximum(g, -bound), bound);
    }
  }
};

inline clip_t clip(double max_delta) {
  return {nn::make_scalar(checked("clip", "max_delta", max_delta, max_delta >= 0, "finite and at least 0"))};
}

/// Each array scaled down to root mean square `threshold` if it has more. Source: Shazeer and Stern 2018;
/// optax.clip_by_block_rms.
struct clip_by_block_rms_t {
  nn::scalar threshold;

  template <class Model, class Wrt>
  using state = empty_state;

  TESSERA_MODULE(clip_by_block_rms_t, threshold)

  constexpr void update(values& updates, const values&, empty_state&) const {
    using namespace value_math;
    for (value& g : updates) {
      const value size = sqrt(mean_square(g)) / number_for(g, traced_number(threshold));
      g = g / maximum(size, graph::number_like(size, 1));
    }
  }
};

inline clip_by_block_rms_t clip_by_block_rms(double threshold) {
  return {
      nn::make_scalar(checked("clip_by_block_rms", "threshold", threshold, threshold > 0, "finite and more than 0"))};
}

/// Each unit (a column of a matrix, an output channel of a kernel, a whole vector) scaled down until its norm is
/// `clipping` times that of its parameter, which counts as at least `eps`. Source: Brock and others 2021;
/// optax.adaptive_grad_clip.
struct adaptive_grad_clip_t {
  nn::scalar clipping, eps;

  template <class Model, class Wrt>
  using state = empty_state;

  TESSERA_MODULE(adaptive_grad_clip_t, clipping, eps)

  constexpr void update(values& updates, const values& params, empty_state&) const {
    using namespace value_math;
    for (std::size_t i = 0; i < updates.size(); ++i) {
      value& g = updates[i];
      const value own = unit_norm(g);
      const value least = number_for(g, traced_number(eps));
      const value most = number_for(g, traced_number(clipping)) * maximum(unit_norm(params[i]), least);
      const value clipped = g * (most / maximum(own, graph::number_like(own, 1e-6)));
      g = graph::select(less(own, most), g, clipped);
    }
  }

 private:
  static constexpr graph::value unit_norm(graph::value x) {
    const int rank = x.type().rank;
    const sharding::dim_set dims = rank <= 1 ? sharding::all_dims(rank) : rank <= 3 ? 1U : sharding::all_dims(rank - 1);
    return value_math::sqrt(graph::reduce(graph::op::reduce_sum, value_math::square(x), dims, rank > 1));
  }
};

inline adaptive_grad_clip_t adaptive_grad_clip(double clipping, double eps = 1e-3) {
  return {nn::make_scalar(checked("clipping", clipping, 0, 1e9)), nn::make_scalar(checked("eps", eps, 0, 1e9))};
}

}  // namespace tessera::optim
