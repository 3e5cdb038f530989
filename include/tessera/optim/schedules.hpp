// SPDX-License-Identifier: Apache-2.0
// Schedules by one formula: lines, powers, cosines, exponentials, with and without a warm-up. Steps count from 0, ends
// are clamped: what lies before the first step or after the last has the rate of that step.
#pragma once

#include <tessera/optim/schedule.hpp>

namespace tessera::optim {

/// init (1 - (1 - f)^power) + ..., f from 0 to 1 over the steps after `begin`.
struct polynomial_formula {
  static constexpr const char* names[] = {"init_value", "end_value", "power", "transition_steps", "transition_begin"};
  template <class T>
  static constexpr T rate(T t, const std::array<T, 5>& x) {
    using namespace schedule_math;
    const T gone = minimum(maximum(t - x[4], number(t, 0)), x[3]);
    return (x[0] - x[1]) * power(number(t, 1) - gone / x[3], x[2]) + x[1];
  }
};
using polynomial_schedule_t = schedule_of<polynomial_formula>;

struct linear_formula {
  static constexpr const char* names[] = {"init_value", "end_value", "transition_steps", "transition_begin"};
  template <class T>
  static constexpr T rate(T t, const std::array<T, 4>& x) {
    using namespace schedule_math;
    const T gone = minimum(maximum(t - x[3], number(t, 0)), x[2]);
    return (x[0] - x[1]) * (number(t, 1) - gone / x[2]) + x[1];
  }
};
using linear_schedule_t = schedule_of<linear_formula>;

struct cosine_decay_formula {
  static constexpr const char* names[] = {"init_value", "decay_steps", "alpha", "exponent"};
  template <class T>
  static constexpr T rate(T t, const std::array<T, 4>& x) {
    using namespace schedule_math;
    const T turn = minimum(maximum(t, number(t, 0)), x[1]) / x[1];
    const T half = (cosine(turn * number(t, std::numbers::pi)) + number(t, 1)) * number(t, 0.5);
    return x[0] * ((number(t, 1) - x[2]) * power(half, x[3]) + x[2]);
  }
};
using cosine_decay_schedule_t = schedule_of<cosine_decay_formula>;

/// A bound that no rate reaches stands for an absent end value.
struct exponential_decay_formula {
  static constexpr const char* names[] = {"init_value",       "transition_steps", "decay_rate",
                                          "transition_begin", "lowest",           "highest"};
  template <class T>
  static constexpr T decayed(T steps, const std::array<T, 6>& x) {
    using namespace schedule_math;
    return minimum(maximum(x[0] * power(x[2], steps), x[4]), x[5]);
  }
  template <class T>
  static constexpr T rate(T t, const std::array<T, 6>& x) {
    using namespace schedule_math;
    return decayed(maximum(t - x[3], number(t, 0)) / x[1], x);
  }
};
using exponential_decay_t = schedule_of<exponential_decay_formula>;

/// The same in steps: the rate changes every transition_steps steps.
struct staircase_decay_formula : exponential_decay_formula {
  template <class T>
  static constexpr T rate(T t, const std::array<T, 6>& x) {
    using namespace schedule_math;
    return decayed(schedule_math::floor(maximum(t - x[3], number(t, 0)) / x[1]), x);
  }
};
using staircase_decay_t = schedule_of<staircase_decay_formula>;

/// From `init` to `peak` along a line over `warmup` steps, then to `end` along half a cosine until step `decay_steps`,
/// then `end`.
struct warmup_cosine_formula {
  static constexpr const char* names[] = {"init_value", "peak_value", "warmup_steps", "decay_steps", "end_value"};
  template <class T>
  static constexpr T rate(T t, const std::array<T, 5>& x) {
    using namespace schedule_math;
    const T one = number(t, 1);
    const T rising = (x[0] - x[1]) * (one - minimum(t, x[2]) / x[2]) + x[1];
    const T span = x[3] - x[2];
    const T turn = minimum(t - x[2], span) / span;
    const T half_cosine = (cosine(turn * number(t, std::numbers::pi)) + one) * number(t, 0.5);
    const T alpha = x[4] / x[1];
    const T falling = x[1] * ((one - alpha) * half_cosine + alpha);
    return choose_if_less(t, x[2], rising, falling);
  }
};
using warmup_cosine_decay_schedule_t = schedule_of<warmup_cosine_formula>;

/// The line, then exponential decay from its end; the first numbers are those of exponential_decay.
template <class Decay>
struct warmup_decay_formula {
  static constexpr const char* names[] = {"peak_value", "transition_steps", "decay_rate", "transition_begin",
                                          "lowest",     "highest",          "init_value", "warmup_steps"};
  template <class T>
  static constexpr T rate(T t, const std::array<T, 8>& x) {
    using namespace schedule_math;
    const T rising = (x[6] - x[0]) * (number(t, 1) - minimum(t, x[7]) / x[7]) + x[0];
    return choose_if_less(t, x[7], rising, Decay::rate(t - x[7], {x[0], x[1], x[2], x[3], x[4], x[5]}));
  }
};

/// What exponential decay may be told beside its numbers.
struct decay_options {
  std::int64_t transition_begin = 0;                            ///< steps before it begins
  double end_value = std::numeric_limits<double>::quiet_NaN();  ///< where it stops, if told
};

namespace detail {

inline double rate(const char* function, const char* name, double value) {
  return checked(function, name, value, true, "finite");
}
inline double steps(const char* function, const char* name, std::int64_t value) {
  return checked(function, name, static_cast<double>(value), value >= 1, "at least 1");
}
inline double begin(const char* function, std::int64_t value) {
  return checked(function, "transition_begin", static_cast<double>(value), value >= 0, "at least 0");
}

template <class Formula>
schedule_of<Formula> decay_of(const char* function, double init_value, std::int64_t transition_steps, double decay_rate,
                              const decay_options& o) {
  checked(function, "decay_rate", decay_rate, decay_rate > 0, "finite and more than 0");
  const bool bounded = !std::isnan(o.end_value);
  if (bounded) rate(function, "end_value", o.end_value);
  constexpr double far = std::numeric_limits<float>::infinity();
  return make_schedule<Formula>(rate(function, "init_value", init_value),
                                steps(function, "transition_steps", transition_steps), decay_rate,
                                begin(function, o.transition_begin), bounded && decay_rate < 1 ? o.end_value : -far,
                                bounded && decay_rate >= 1 ? o.end_value : far);
}

template <class Formula>
schedule_of<warmup_decay_formula<Formula>> warmup_decay_of(const char* function, double init_value, double peak_value,
                                                           std::int64_t warmup_steps, const schedule_of<Formula>& d) {
  rate(function, "peak_value", peak_value);
  const auto& x = d.numbers;
  return {{x[0], x[1], x[2], x[3], x[4], x[5], nn::make_scalar(rate(function, "init_value", init_value)),
           nn::make_scalar(steps(function, "warmup_steps", warmup_steps))}};
}

}  // namespace detail

/// Each takes rates as numbers a step and counts of steps; what is out of range raises value_error with name, value and
/// range.

/// (init - end) (1 - f)^power + end, f = clip(t - begin, 0, steps) / steps. Source: optax.polynomial_schedule.
inline polynomial_schedule_t polynomial_schedule(double init_value, double end_value, double power,
                                                 std::int64_t transition_steps, std::int64_t transition_begin = 0) {
  constexpr auto self = "polynomial_schedule";
  return make_schedule<polynomial_formula>(
      detail::rate(self, "init_value", init_value), detail::rate(self, "end_value", end_value),
      checked(self, "power", power, power > 0, "finite and more than 0"),
      detail::steps(self, "transition_steps", transition_steps), detail::begin(self, transition_begin));
}

/// The same along a line. Source: optax.linear_schedule.
inline linear_schedule_t linear_schedule(double init_value, double end_value, std::int64_t transition_steps,
                                         std::int64_t transition_begin = 0) {
  constexpr auto self = "linear_schedule";
  return make_schedule<linear_formula>(
      detail::rate(self, "init_value", init_value), detail::rate(self, "end_value", end_value),
      detail::steps(self, "transition_steps", transition_steps), detail::begin(self, transition_begin));
}

/// From `init_value` to `peak_value` along a line, then always that. Source: optax.warmup_constant_schedule.
inline linear_schedule_t warmup_constant_schedule(double init_value, double peak_value, std::int64_t warmup_steps) {
  constexpr auto self = "warmup_constant_schedule";
  return make_schedule<linear_formula>(detail::rate(self, "init_value", init_value),
                                       detail::rate(self, "peak_value", peak_value),
                                       detail::steps(self, "warmup_steps", warmup_steps), 0);
}

/// init ((1 - alpha) ((1 + cos(pi t / steps)) / 2)^exponent + alpha), and init alpha after. Source: Loshchilov and
/// Hutter 2017; optax.cosine_decay_schedule.
inline cosine_decay_schedule_t cosine_decay_schedule(double init_value, std::int64_t decay_steps, double alpha = 0,
                                                     double exponent = 1) {
  constexpr auto self = "cosine_decay_schedule";
  return make_schedule<cosine_decay_formula>(
      detail::rate(self, "init_value", init_value), detail::steps(self, "decay_steps", decay_steps),
      detail::rate(self, "alpha", alpha), checked(self, "exponent", exponent, exponent > 0, "finite and more than 0"));
}

/// init decay_rate^((t - begin) / steps), not beyond `end_value`. Source: optax.exponential_decay.
inline exponential_decay_t exponential_decay(double init_value, std::int64_t transition_steps, double decay_rate,
                                             decay_options options = {}) {
  return detail::decay_of<exponential_decay_formula>("exponential_decay", init_value, transition_steps, decay_rate,
                                                     options);
}

/// The same with the exponent rounded down: optax.exponential_decay(staircase=True).
inline staircase_decay_t staircase_decay(double init_value, std::int64_t transition_steps, double decay_rate,
                                         decay_options options = {}) {
  return detail::decay_of<staircase_decay_formula>("staircase_decay", init_value, transition_steps, decay_rate,
                                                   options);
}

/// A line over `warmup_steps`, at least 1, then half a cosine until step `decay_steps`, the whole length, which is
/// more; peak not 0. Source: optax.warmup_cosine_decay_schedule.
inline warmup_cosine_decay_schedule_t warmup_cosine_decay_schedule(double init_value, double peak_value,
                                                                   std::int64_t warmup_steps, std::int64_t decay_steps,
                                                                   double end_value = 0) {
  constexpr auto self = "warmup_cosine_decay_schedule";
  return make_schedule<warmup_cosine_formula>(
      detail::rate(self, "init_value", init_value),
      checked(self, "peak_value", peak_value, peak_value < 0 || peak_value > 0, "finite and not 0"),
      detail::steps(self, "warmup_steps", warmup_steps),
      checked(self, "decay_steps", static_cast<double>(decay_steps), decay_steps > warmup_steps,
              "more than warmup_steps, " + number_text(warmup_steps)),
      detail::rate(self, "end_value", end_value));
}

/// A line to `peak_value`, then exponential decay from it. Source: optax.warmup_exponential_decay_schedule.
inline schedule_of<warmup_decay_formula<exponential_decay_formula>> warmup_exponential_decay_schedule(
    double init_value, double peak_value, std::int64_t warmup_steps, std::int64_t transition_steps, double decay_rate,
    decay_options options = {}) {
  constexpr auto self = "warmup_exponential_decay_schedule";
  return detail::warmup_decay_of(
      self, init_value, peak_value, warmup_steps,
      detail::decay_of<exponential_decay_formula>(self, peak_value, transition_steps, decay_rate, options));
}

/// A line to `peak_value`, then exponential decay from it. Source: optax.warmup_exponential_decay_schedule.
inline schedule_of<warmup_decay_formula<staircase_decay_formula>> warmup_staircase_decay_schedule(
    double init_value, double peak_value, std::int64_t warmup_steps, std::int64_t transition_steps, double decay_rate,
    decay_options options = {}) {
  constexpr auto self = "warmup_staircase_decay_schedule";
  return detail::warmup_decay_of(
      self, init_value, peak_value, warmup_steps,
      detail::decay_of<staircase_decay_formula>(self, peak_value, transition_steps, decay_rate, options));
}

}  // namespace tessera::optim
