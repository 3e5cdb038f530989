// SPDX-License-Identifier: Apache-2.0
// Schedules made of pieces: steps, lines and cosines between boundaries, one cycle, other schedules one after another.
#pragma once

#include <tessera/optim/schedules.hpp>

#include <tuple>
#include <utility>

namespace tessera::optim {

/// A count of steps, and the factor by which the rate changes there.
struct rate_change {
  std::int64_t boundary;
  double scale;
};

/// How a rate goes from one boundary to the next.
enum class interpolation : std::uint8_t { step, line, cosine };

/// Rates at boundaries and what lies between them; after the last boundary the last rate.
template <interpolation Between, std::size_t N>
struct piecewise_schedule {
  std::array<nn::scalar, N + 1> values;
  std::array<nn::scalar, N> boundaries;

  TESSERA_MODULE(piecewise_schedule, values, boundaries)

  template <class T>
  static constexpr T formula(T t, const std::array<T, N + 1>& value, const std::array<T, N>& bound) {
    using namespace schedule_math;
    T result = value[N];
    for (std::size_t i = N; i-- > 0;) {
      const T start = i == 0 ? number(t, 0) : bound[i == 0 ? 0 : i - 1];
      const T share = maximum(t - start, number(t, 0)) / (bound[i] - start);
      T here = value[i];
      if (Between == interpolation::line) here = (value[i + 1] - value[i]) * share + value[i];
      if (Between == interpolation::cosine)
        here = value[i + 1] + (value[i] - value[i + 1]) * number(t, 0.5) *
                                  (cosine(share * number(t, std::numbers::pi)) + number(t, 1));
      result = choose_if_less(t, bound[i], here, result);
    }
    return result;
  }

  constexpr graph::value at(graph::value t) const {
    return formula(t, all(values, traced_number), all(boundaries, traced_number));
  }
  float operator()(std::int64_t t) const {
    return formula(static_cast<float>(t), all(values, number_of), all(boundaries, number_of));
  }

 private:
  template <std::size_t Count>
  static constexpr auto all(const std::array<nn::scalar, Count>& from, auto read) {
    std::array<decltype(read(from[0])), Count> out;
    for (std::size_t i = 0; i < Count; ++i) out[i] = read(from[i]);
    return out;
  }
};

namespace detail {

/// Raises value_error unless boundaries rise from at least 1 (`first`) and factors are numbers of at least 0.
inline void check_changes(const char* function, std::span<const rate_change> changes, std::int64_t first) {
  std::int64_t least = first;
  for (const rate_change& c : changes) {
    checked(function, "a boundary", static_cast<double>(c.boundary), c.boundary >= least,
            "at least " + number_text(least) + ": boundaries rise");
    checked(function, "a scale", c.scale, c.scale >= 0, "finite and at least 0");
    least = c.boundary + 1;
  }
}

template <interpolation Between, std::size_t N>
piecewise_schedule<Between, N> piecewise(const char* function, double init_value, const rate_change (&changes)[N]) {
  check_changes(function, changes, 1);
  piecewise_schedule<Between, N> made;
  double value = rate(function, "init_value", init_value);
  made.values[0] = nn::make_scalar(value);
  for (std::size_t i = 0; i < N; ++i) {
    made.values[i + 1] = nn::make_scalar(value *= changes[i].scale);
    made.boundaries[i] = nn::make_scalar(static_cast<double>(changes[i].boundary));
  }
  return made;
}

}  // namespace detail

/// `piecewise_constant_schedule(1e-3, {{1000, 0.1}, {2000, 0.1}})`: the rate is multiplied by a factor from each
/// boundary on. Source: optax.piecewise_constant_schedule.
template <std::size_t N>
auto piecewise_constant_schedule(double init_value, const rate_change (&changes)[N]) {
  return detail::piecewise<interpolation::step>("piecewise_constant_schedule", init_value, changes);
}

/// `piecewise_interpolate_schedule<interpolation::line>(...)` or `cosine` (`step` is piecewise_constant_schedule): the
/// rate goes from one boundary's value to the next one's. Source: optax.piecewise_interpolate_schedule.
template <interpolation Between, std::size_t N>
auto piecewise_interpolate_schedule(double init_value, const rate_change (&changes)[N]) {
  return detail::piecewise<Between>("piecewise_interpolate_schedule", init_value, changes);
}

/// What a cycle may be told beside its length and peak.
struct onecycle_options {
  double pct_start = 0.3;         ///< the share of steps in which the rate rises
  double pct_final = 0.85;        ///< the share after which the last line begins; cosines have none
  double div_factor = 25;         ///< peak / first rate
  double final_div_factor = 1e4;  ///< first rate / last rate
};

namespace detail {

inline std::int64_t share_of(double share, std::int64_t steps) {
  return static_cast<std::int64_t>(share * static_cast<double>(steps));
}

inline void check_cycle(const char* function, std::int64_t transition_steps, double peak_value,
                        const onecycle_options& o) {
  steps(function, "transition_steps", transition_steps);
  rate(function, "peak_value", peak_value);
  checked(function, "pct_start", o.pct_start, o.pct_start > 0 && o.pct_start < 1, "more than 0 and less than 1");
  checked(function, "div_factor", o.div_factor, o.div_factor > 0, "more than 0");
  checked(function, "final_div_factor", o.final_div_factor, o.final_div_factor > 0, "more than 0");
}

}  // namespace detail

/// From peak / div_factor along a cosine to the peak and on another to peak / (div_factor^2 final_div_factor), as Optax
/// has it. Source: Smith and Topin 2018; optax.cosine_onecycle_schedule.
inline auto cosine_onecycle_schedule(std::int64_t transition_steps, double peak_value, onecycle_options o = {}) {
  constexpr auto self = "cosine_onecycle_schedule";
  detail::check_cycle(self, transition_steps, peak_value, o);
  const rate_change changes[] = {{detail::share_of(o.pct_start, transition_steps), o.div_factor},
                                 {transition_steps, 1 / (o.div_factor * o.final_div_factor)}};
  return detail::piecewise<interpolation::cosine>(self, peak_value / o.div_factor, changes);
}

/// Lines up to the peak, down to where it began, and to a final_div_factor-th of that. Source: Smith and Topin 2018;
/// optax.linear_onecycle_schedule.
inline auto linear_onecycle_schedule(std::int64_t transition_steps, double peak_value, onecycle_options o = {}) {
  constexpr auto self = "linear_onecycle_schedule";
  detail::check_cycle(self, transition_steps, peak_value, o);
  checked(self, "pct_final", o.pct_final, o.pct_final > o.pct_start && o.pct_final < 1,
          "more than pct_start and less than 1");
  const rate_change changes[] = {{detail::share_of(o.pct_start, transition_steps), o.div_factor},
                                 {detail::share_of(o.pct_final, transition_steps), 1 / o.div_factor},
                                 {transition_steps, 1 / o.final_div_factor}};
  return detail::piecewise<interpolation::line>(self, peak_value / o.div_factor, changes);
}

/// Schedules one after another: each sees steps from 0 where it begins.
template <Schedule First, Schedule... Rest>
struct joined_schedule {
  std::tuple<First, Rest...> schedules;
  std::array<nn::scalar, sizeof...(Rest)> boundaries;

  TESSERA_MODULE(joined_schedule, schedules, boundaries)

  constexpr graph::value at(graph::value t) const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      using namespace schedule_math;
      graph::value result = std::get<0>(schedules).at(t);
      ((result =
            choose_if_less(t, traced_number(boundaries[I]), result,
                           std::get<I + 1>(schedules).at(maximum(t - traced_number(boundaries[I]), number(t, 0))))),
       ...);
      return result;
    }
    (std::index_sequence_for<Rest...>{});
  }
  float operator()(std::int64_t t) const {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      float result = std::get<0>(schedules)(t);
      const auto later = [&](const auto& schedule, const nn::scalar& boundary) {
        const auto start = static_cast<std::int64_t>(number_of(boundary));
        if (t >= start) result = schedule(t - start);
      };
      (later(std::get<I + 1>(schedules), boundaries[I]), ...);
      return result;
    }
    (std::index_sequence_for<Rest...>{});
  }
};

/// `join_schedules({100, 500}, warmup, flat, decay)`: boundaries where the second schedule begins, the third, ...
/// Source: optax.join_schedules.
template <std::size_t N, Schedule... Schedules>
joined_schedule<Schedules...> join_schedules(const std::int64_t (&boundaries)[N], Schedules... schedules) {
  static_assert(
      sizeof...(Schedules) == N + 1,
      "tessera: join_schedules: there is not one boundary less than schedules; write one between any two of them");
  joined_schedule<Schedules...> made{{std::move(schedules)...}, {}};
  std::int64_t least = 1;
  for (std::size_t i = 0; i < N; ++i) {
    checked("join_schedules", "a boundary", static_cast<double>(boundaries[i]), boundaries[i] >= least,
            "at least " + number_text(least) + ": boundaries rise");
    made.boundaries[i] = nn::make_scalar(static_cast<double>(boundaries[i]));
    least = boundaries[i] + 1;
  }
  return made;
}

/// One cycle of sgdr_schedule: the arguments of warmup_cosine_decay_schedule.
struct sgdr_cycle {
  double init_value;
  double peak_value;
  std::int64_t warmup_steps;
  std::int64_t decay_steps;
  double end_value = 0;
};

/// `sgdr_schedule({{0, 1e-3, 10, 100}, {0, 5e-4, 10, 200}})`: warm restarts, each cycle after the one before. Source:
/// Loshchilov and Hutter 2017; optax.sgdr_schedule.
template <std::size_t N>
auto sgdr_schedule(const sgdr_cycle (&cycles)[N]) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto cycle = [&](std::size_t i) {
      const sgdr_cycle& c = cycles[i];
      return warmup_cosine_decay_schedule(c.init_value, c.peak_value, c.warmup_steps, c.decay_steps, c.end_value);
    };
    using one = warmup_cosine_decay_schedule_t;
    joined_schedule<one, std::conditional_t<I + 1 == 0, void, one>...> made{{cycle(0), cycle(I + 1)...}, {}};
    std::int64_t end = 0;
    for (std::size_t i = 0; i + 1 < N; ++i)
      made.boundaries[i] = nn::make_scalar(static_cast<double>(end += cycles[i].decay_steps));
    return made;
  }
  (std::make_index_sequence<N - 1>{});
}

}  // namespace tessera::optim
