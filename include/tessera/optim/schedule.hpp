// SPDX-License-Identifier: Apache-2.0
// What a schedule is: a learning rate as a function of the step count, one formula in a trace and on the host.
#pragma once

#include <tessera/graph/paths.hpp>
#include <tessera/graph/visit.hpp>
#include <tessera/optim/arguments.hpp>

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <numbers>

namespace tessera::optim {

/// Arithmetic that schedules need, on floats and on traced scalars.
namespace schedule_math {

inline float number(float, double x) { return static_cast<float>(x); }
inline float minimum(float a, float b) { return a < b ? a : b; }
inline float maximum(float a, float b) { return a > b ? a : b; }
inline float cosine(float x) { return std::cos(x); }
inline float power(float a, float b) { return std::pow(a, b); }
inline float floor(float x) { return std::floor(x); }
inline float choose_if_less(float a, float b, float yes, float no) { return a < b ? yes : no; }

constexpr graph::value number(graph::value like, double x) { return graph::number_like(like, x); }
constexpr graph::value minimum(graph::value a, graph::value b) { return graph::binary(graph::op::min, a, b); }
constexpr graph::value maximum(graph::value a, graph::value b) { return graph::binary(graph::op::max, a, b); }
constexpr graph::value cosine(graph::value x) { return graph::unary(graph::op::cos, x); }
constexpr graph::value power(graph::value a, graph::value b) { return graph::binary(graph::op::pow, a, b); }
constexpr graph::value floor(graph::value x) { return graph::unary(graph::op::floor, x); }
constexpr graph::value choose_if_less(graph::value a, graph::value b, graph::value yes, graph::value no) {
  return graph::select(graph::binary(graph::op::lt, a, b), yes, no);
}

}  // namespace schedule_math

/// Whether T gives a learning rate for a 0-based step count.
template <class T>
concept Schedule = requires(const T& s, graph::value t) {
  { s.at(t) } -> std::same_as<graph::value>;
};

/// Always the same rate. Source: optax.constant_schedule.
struct constant_schedule_t {
  nn::scalar rate;

  constexpr void visit_variables(auto&& f) { f(rate); }
  constexpr void visit_variables(auto&& f) const { f(rate); }

  /// It goes by the name of what holds the schedule.
  constexpr void visit_paths(member_path& path, auto&& f) { f(path, rate); }
  constexpr void visit_paths(member_path& path, auto&& f) const { f(path, rate); }

  constexpr graph::value at(graph::value) const { return traced_number(rate); }
  float operator()(std::int64_t) const { return number_of(rate); }
};

inline constant_schedule_t constant_schedule(double rate) { return {nn::make_scalar(rate)}; }

/// A schedule by a formula of the step count and of numbers that have names: `Formula::names`, and
/// `Formula::rate(t, numbers)` for floats and for traced scalars alike.
template <class Formula>
struct schedule_of {
  static constexpr std::size_t count = std::size(Formula::names);
  std::array<nn::scalar, count> numbers{};

  constexpr void visit_variables(auto&& f) {
    for (nn::scalar& s : numbers) f(s);
  }
  constexpr void visit_variables(auto&& f) const {
    for (const nn::scalar& s : numbers) f(s);
  }
  constexpr void visit_paths(member_path& path, auto&& f) { name_numbers(*this, path, f); }
  constexpr void visit_paths(member_path& path, auto&& f) const { name_numbers(*this, path, f); }

  constexpr graph::value at(graph::value t) const {
    std::array<graph::value, count> x;
    for (std::size_t i = 0; i < count; ++i) x[i] = traced_number(numbers[i]);
    return Formula::rate(t, x);
  }
  float operator()(std::int64_t t) const {
    std::array<float, count> x;
    for (std::size_t i = 0; i < count; ++i) x[i] = number_of(numbers[i]);
    return Formula::rate(static_cast<float>(t), x);
  }

 private:
  static constexpr void name_numbers(auto& self, member_path& path, auto& f) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t here = path.size();
      path.enter(Formula::names[i]);
      f(path, self.numbers[i]);
      path.leave_to(here);
    }
  }
};

/// The schedule of a formula with these numbers, in the order of their names.
template <class Formula, class... Numbers>
schedule_of<Formula> make_schedule(Numbers... numbers) {
  static_assert(sizeof...(Numbers) == schedule_of<Formula>::count);
  return {{nn::make_scalar(static_cast<double>(numbers))...}};
}

}  // namespace tessera::optim
