// SPDX-License-Identifier: Apache-2.0
// Learning rates as functions of the step count, in a trace as on the host.
#pragma once

#include <tessera/core/compiled.hpp>
#include <tessera/core/error.hpp>
#include <tessera/core/number_text.hpp>
#include <tessera/graph/value.hpp>
#include <tessera/graph/visit.hpp>
#include <tessera/nn/variable.hpp>

#include <cmath>
#include <concepts>
#include <numbers>
#include <string>

namespace tessera::optim {

/// Arithmetic that schedules need, on floats and on traced scalars.
namespace schedule_math {

inline float minimum(float a, float b) { return a < b ? a : b; }
inline float cosine(float x) { return std::cos(x); }
inline float choose_if_less(float a, float b, float yes, float no) { return a < b ? yes : no; }

constexpr graph::value minimum(graph::value a, graph::value b) { return graph::binary(graph::op::min, a, b); }
constexpr graph::value cosine(graph::value x) { return graph::unary(graph::op::cos, x); }
constexpr graph::value choose_if_less(graph::value a, graph::value b, graph::value yes, graph::value no) {
  return graph::select(graph::binary(graph::op::lt, a, b), yes, no);
}

}  // namespace schedule_math

/// Whether T gives a learning rate for a 0-based step count.
template <class T>
concept Schedule = requires(const T& s, graph::value t) {
  { s.at(t) } -> std::same_as<graph::value>;
};

/// The number a scalar holds on the host.
float number_of(const nn::scalar& s);
constexpr graph::value traced_number(const nn::scalar& s) { return graph::seen(s.handle.owner, s.handle.id); }

/// Always the same rate. Source: optax.constant_schedule.
struct constant_schedule_t {
  nn::scalar rate;

  TESSERA_MODULE(constant_schedule_t, rate)
  constexpr graph::value at(graph::value) const { return traced_number(rate); }
  float operator()(std::int64_t) const { return number_of(rate); }
};

inline constant_schedule_t constant_schedule(double rate) { return {nn::make_scalar(rate)}; }

/// From `init` to `peak` along a line over `warmup` steps, then to `end` along half a cosine until step `total`, then
/// `end`.
struct warmup_cosine_decay_schedule_t {
  nn::scalar init, peak, warmup, total, end;

  TESSERA_MODULE(warmup_cosine_decay_schedule_t, init, peak, warmup, total, end)

  template <class T>
  static constexpr T formula(T t, T init_rate, T peak_rate, T warmup_steps, T total_steps, T end_rate) {
    using namespace schedule_math;
    const T one = warmup_steps / warmup_steps;
    const T rise = one - minimum(t, warmup_steps) / warmup_steps;
    const T rising = (init_rate - peak_rate) * rise + peak_rate;
    const T span = total_steps - warmup_steps;
    const T turn = minimum(t - warmup_steps, span) / span;
    const T half_cosine = (cosine(turn * static_cast<float>(std::numbers::pi)) + one) * 0.5f;
    const T alpha = end_rate / peak_rate;
    const T falling = peak_rate * ((one - alpha) * half_cosine + alpha);
    return choose_if_less(t, warmup_steps, rising, falling);
  }

  constexpr graph::value at(graph::value t) const {
    return formula(t, traced_number(init), traced_number(peak), traced_number(warmup), traced_number(total),
                   traced_number(end));
  }
  float operator()(std::int64_t t) const {
    return formula(static_cast<float>(t), number_of(init), number_of(peak), number_of(warmup), number_of(total),
                   number_of(end));
  }
};

/// Rates are numbers a step, steps are counted from 0. `warmup_steps` at least 1 and less than `decay_steps`, the whole
/// length; peak not 0; else value_error. Source: optax.warmup_cosine_decay_schedule.
warmup_cosine_decay_schedule_t warmup_cosine_decay_schedule(double init_value, double peak_value,
                                                            std::int64_t warmup_steps, std::int64_t decay_steps,
                                                            double end_value = 0);

#if defined(TESSERA_COMPILED)

TESSERA_COMPILED float number_of(const nn::scalar& s) {
  if (!s.data)
    throw value_error("optim: a hyperparameter holds no number; make its schedule or optimiser by its function");
  float value;
  runtime::copy_to_host(*s.data, &value);
  return value;
}

TESSERA_COMPILED warmup_cosine_decay_schedule_t warmup_cosine_decay_schedule(double init_value, double peak_value,
                                                                             std::int64_t warmup_steps,
                                                                             std::int64_t decay_steps,
                                                                             double end_value) {
  const auto refuse = [](const char* name, const std::string& value, const std::string& range) {
    throw value_error(std::string("warmup_cosine_decay_schedule: ") + name + " is " + value + "; it must be " + range);
  };
  if (warmup_steps < 1) refuse("warmup_steps", number_text(warmup_steps), "at least 1");
  if (decay_steps <= warmup_steps)
    refuse("decay_steps", number_text(decay_steps), "more than warmup_steps, " + number_text(warmup_steps));
  if (!(std::abs(peak_value) > 0) || !std::isfinite(peak_value))
    refuse("peak_value", number_text(peak_value), "finite and not 0");
  if (!std::isfinite(init_value)) refuse("init_value", number_text(init_value), "finite");
  if (!std::isfinite(end_value)) refuse("end_value", number_text(end_value), "finite");
  return {nn::make_scalar(init_value), nn::make_scalar(peak_value), nn::make_scalar(static_cast<double>(warmup_steps)),
          nn::make_scalar(static_cast<double>(decay_steps)), nn::make_scalar(end_value)};
}

#endif

}  // namespace tessera::optim
