// SPDX-License-Identifier: Apache-2.0
// Optimisers with second moments smaller than the parameters: Adafactor keeps rows and columns, SM3 one vector an axis.
#pragma once

#include <tessera/optim/optimizers.hpp>
#include <tessera/optim/scaling.hpp>

namespace tessera::optim {

namespace detail {

/// The two largest dimensions of an array, or none if it has fewer or the second one is short. Of equal ones the last
/// counts as the largest.
struct factored_dims {
  int largest = -1;
  int second = -1;
  constexpr bool any() const { return second >= 0; }
};
constexpr factored_dims find_factored(int rank, auto extent, std::int64_t least) {
  factored_dims found;
  for (int d = 0; d < rank; ++d) {
    if (found.largest < 0 || extent(d) >= extent(found.largest)) {
      found.second = found.largest;
      found.largest = d;
    } else if (found.second < 0 || extent(d) >= extent(found.second)) {
      found.second = d;
    }
  }
  if (found.second < 0 || extent(found.second) < least) found.second = -1;
  return found;
}
constexpr factored_dims find_factored(const aval& a, std::int64_t least) {
  return find_factored(
      a.rank, [&](int d) { return a.dims[d].extent; }, least);
}

enum class factor : std::uint8_t { row, column, whole };

template <class V, factor Which, std::int64_t Least>
struct factor_of {
  static constexpr factored_dims dims = find_factored(
      V::shape_type::rank, [](int d) { return V::shape_type::extents[static_cast<std::size_t>(d)]; }, Least);
  static constexpr auto choose() {
    if constexpr (!dims.any() || Which == factor::whole) {
      return std::type_identity<std::conditional_t<!dims.any() && Which == factor::whole, array_like<V>, void>>{};
    } else {
      return without_dim<V, static_cast<std::size_t>(Which == factor::row ? dims.largest : dims.second)>{};
    }
  }
  using type = typename decltype(choose())::type;
};

template <factor Which, std::int64_t Least>
struct factor_map {
  template <class V>
  using apply = typename factor_of<V, Which, Least>::type;
};

/// An array that lacks dimension `dropped` of `type`, repeated along it.
constexpr graph::value repeat_along(graph::value v, const aval& type, int dropped) {
  sharding::dim_list places = 0;
  for (int d = 0; d < type.rank; ++d)
    if (d != dropped) places = sharding::dim_append(places, d);
  aval wide = type;
  wide.type = v.type().type;
  return graph::broadcast(v, wide, places);
}

constexpr graph::value mean_over(graph::value v, int dim, bool keep) {
  const auto count = static_cast<double>(v.type().dims[dim].extent);
  return graph::reduce(graph::op::reduce_sum, v, 1U << dim, keep) / count;
}

}  // namespace detail

/// What is compiled into adafactor.
struct adafactor_form {
  std::int64_t min_dim_size_to_factor =
      128;  ///< both of the two largest dimensions are at least so long, or unfactored
  bool multiply_by_parameter_scale = true;
  bool momentum = false;
  bool weight_decay = false;
};

struct adafactor_options {
  double decay_rate = 0.8;
  double clipping_threshold = 1;
  double eps = 1e-30;
  double momentum = 0.9;         ///< with adafactor_form{.momentum = true}
  double weight_decay_rate = 0;  ///< with adafactor_form{.weight_decay = true}
};

/// decay_t = 1 - t^-decay_rate, t from 1; v <- decay_t v + (1 - decay_t)(g^2 + eps), u <- g / sqrt(v); of a matrix v
/// are the means of rows and columns, v_ij = row_i column_j / mean(row). Source: Shazeer and Stern 2018;
/// optax.scale_by_factored_rms.
template <std::int64_t Least = 128>
struct scale_by_factored_rms_t {
  nn::scalar decay_rate, eps;

  template <class Model, class Wrt>
  struct state {
    counter count;
    like<Model, Wrt, detail::factor_map<detail::factor::row, Least>> v_row;
    like<Model, Wrt, detail::factor_map<detail::factor::column, Least>> v_col;
    like<Model, Wrt, detail::factor_map<detail::factor::whole, Least>> v;
    TESSERA_MODULE(state, count, v_row, v_col, v)
  };

  TESSERA_MODULE(scale_by_factored_rms_t, decay_rate, eps)

  template <class State>
  constexpr void update(values& updates, const values&, State& s) const {
    using namespace value_math;
    const value rest = power(count_up(s.count), -traced_number(decay_rate));
    const value decay = 1.0 - rest;
    values rows = values_of(s.v_row), columns = values_of(s.v_col), whole = values_of(s.v);
    std::size_t factored = 0, plain = 0;
    for (value& g : updates) {
      const value squares = square(g) + number_for(g, traced_number(eps));
      const detail::factored_dims dims = detail::find_factored(g.type(), Least);
      if (dims.any()) {
        value& row = rows[factored];
        value& column = columns[factored++];
        row = moving_average(row, detail::mean_over(squares, dims.largest, false), decay, rest);
        column = moving_average(column, detail::mean_over(squares, dims.second, false), decay, rest);
        const int within_row = dims.second > dims.largest ? dims.second - 1 : dims.second;
        const value of_row = rsqrt(row / detail::mean_over(row, within_row, true));
        g = g * detail::repeat_along(of_row, g.type(), dims.largest) *
            detail::repeat_along(rsqrt(column), g.type(), dims.second);
      } else {
        value& v = whole[plain++];
        v = moving_average(v, squares, decay, rest);
        g = g * rsqrt(v);
      }
    }
    assign(s.v_row, rows), assign(s.v_col, columns), assign(s.v, whole);
  }
};

template <std::int64_t Least = 128>
scale_by_factored_rms_t<Least> scale_by_factored_rms(double decay_rate = 0.8, double eps = 1e-30) {
  return {nn::make_scalar(checked("decay_rate", decay_rate, 0, 10)), nn::make_scalar(checked("eps", eps, 0, 1))};
}

/// `adafactor(1e-3)`, `adafactor<adafactor_form{.multiply_by_parameter_scale = false}>(schedule)`. Source: Shazeer and
/// Stern 2018; optax.adafactor.
template <adafactor_form Form = adafactor_form{}, class Rate, class Mask = all_leaves>
auto adafactor(Rate learning_rate, adafactor_options o = {}, Mask mask = {}) {
  const auto scaled = [] {
    if constexpr (Form.multiply_by_parameter_scale) return scale_by_param_block_rms();
    else return chain();
  };
  const auto averaged = [&] {
    if constexpr (Form.momentum) return ema<false>(o.momentum);
    else return chain();
  };
  const auto decayed = [&] {
    if constexpr (Form.weight_decay) return add_decayed_weights(o.weight_decay_rate, mask);
    else return chain();
  };
  return chain(scale_by_factored_rms<Form.min_dim_size_to_factor>(o.decay_rate, o.eps),
               clip_by_block_rms(o.clipping_threshold), scale_by_schedule(rate_of(std::move(learning_rate))), scaled(),
               averaged(), decayed(), scale(-1));
}

namespace detail {

/// The extent of one axis; a scalar has one number.
template <std::size_t Axis>
struct axis_map {
  template <class V>
  static constexpr auto choose() {
    if constexpr (V::shape_type::rank == 0 && Axis == 0) return std::type_identity<array_like<V>>{};
    else if constexpr (Axis >= static_cast<std::size_t>(V::shape_type::rank)) return std::type_identity<void>{};
    else return kept_dims<V, std::index_sequence<Axis>>{};
  }
  template <class V>
  using apply = typename decltype(choose<V>())::type;
};

template <class Model, class Wrt>
constexpr std::size_t largest_rank() {
  int most = 1;
  describe_leaves<Model, Wrt>([&](const leaf& l) { most = l.rank > most ? l.rank : most; });
  return static_cast<std::size_t>(most);
}

template <class Model, class Wrt, class Axes>
struct axes_state;
template <class Model, class Wrt, std::size_t... Axis>
struct axes_state<Model, Wrt, std::index_sequence<Axis...>>
    : std::type_identity<std::tuple<like<Model, Wrt, axis_map<Axis>>...>> {};

}  // namespace detail

/// v = g^2 + b2 min over axes of the largest v so far in each slice across the axis; m <- b1 m + (1 - b1) g / sqrt(v +
/// eps), 0 where v is 0; u <- m. Source: Anil and others 2019; optax.scale_by_sm3.
struct scale_by_sm3_t {
  nn::scalar b1, rest1, b2, rest2, eps;

  template <class Model, class Wrt>
  struct state {
    typename detail::axes_state<Model, Wrt, std::make_index_sequence<detail::largest_rank<Model, Wrt>()>>::type mu;
    like<Model, Wrt> nu;
    TESSERA_MODULE(state, mu, nu)
  };

  TESSERA_MODULE(scale_by_sm3_t, b1, rest1, b2, rest2, eps)

  template <class State>
  constexpr void update(values& updates, const values&, State& s) const {
    using namespace value_math;
    values m = values_of(s.nu);
    graph::list<values> axes;
    std::apply([&](auto&... each) { (axes.push_back(values_of(each)), ...); }, s.mu);
    graph::list<std::size_t> next(axes.size(), 0);
    for (std::size_t i = 0; i < updates.size(); ++i) {
      const value g = updates[i];
      const auto in = [&](const nn::scalar& x) { return number_for(g, traced_number(x)); };
      const int rank = g.type().rank;
      const int count = rank == 0 ? 1 : rank;
      value least{};
      for (int d = 0; d < count; ++d) {
        const value of_axis = along_axis(axes[static_cast<std::size_t>(d)][next[static_cast<std::size_t>(d)]], g, d);
        least = d == 0 ? of_axis : minimum(least, of_axis);
      }
      const value v = in(rest2)*square(g) + in(b2)*least;
      const value zero = graph::number_like(g, 0);
      const value scaled = graph::select(less(zero, v), g * rsqrt(v + in(eps)), zero);
      updates[i] = m[i] = in(b1)*m[i] + in(rest1)*scaled;
      for (int d = 0; d < count; ++d)
        axes[static_cast<std::size_t>(d)][next[static_cast<std::size_t>(d)]++] =
            rank < 2 ? v : graph::reduce(op::reduce_max, v, sharding::all_dims(rank) & ~(1U << d), false);
    }
    std::size_t d = 0;
    std::apply([&](auto&... each) { (assign(each, axes[d++]), ...); }, s.mu);
    assign(s.nu, m);
  }

 private:
  static constexpr graph::value along_axis(graph::value v, graph::value g, int d) {
    if (g.type().rank < 2) return v;
    return graph::broadcast(v, g.type(), sharding::dim_append(0, d));
  }
};

/// With b2 = 1 squares are summed as they are. Source: optax.sm3.
inline scale_by_sm3_t scale_by_sm3(double b1 = 0.9, double b2 = 1, double eps = 1e-8) {
  checked("b1", b1, 0, 1), checked("eps", eps, 0, 1);
  checked("scale_by_sm3", "b2", b2, b2 >= 0 && b2 <= 1, "in [0, 1]");
  return {nn::make_scalar(b1), nn::make_scalar(1 - b1), nn::make_scalar(b2), nn::make_scalar(b2 < 1 ? 1 - b2 : 1),
          nn::make_scalar(eps)};
}
template <class Rate>
auto sm3(Rate learning_rate, double momentum = 0.9) {
  return chain(scale_by_sm3(momentum), scale_by_learning_rate(learning_rate));
}

}  // namespace tessera::optim
