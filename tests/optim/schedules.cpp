// SPDX-License-Identifier: Apache-2.0
// Schedules: reference values, the same on the host and in a trace, and arguments that are refused.
#include "support.hpp"

#include <tessera/optim/piecewise.hpp>

#include <catch2/catch.hpp>

#include "reference/reference.hpp"

#include <cmath>
#include <limits>
#include <numbers>

using namespace optim_test;

namespace {

/// What the schedule gives within a step.
template <class Schedule>
float traced(const Schedule& schedule, std::int64_t step) {
  graph::graph g;
  Schedule s = schedule;
  bind_variables<mesh<>>(g, s);
  const graph::value t{&g, g.add_parameter(scalar_aval(dtype::f32))};
  g.outputs = {{s.at(t).id, -1}};
  std::vector<std::vector<std::byte>> inputs;
  visit_variables(schedule, [&](const auto& v) { inputs.push_back(bytes_of({optim::number_of(v)})); });
  inputs.push_back(bytes_of({static_cast<float>(step)}));
  const auto out = runtime::evaluate(g, inputs);
  return numbers_of(out[0])[0];
}

}  // namespace

TEST_CASE("warmup_cosine_decay_schedule has the reference values, on the host and in a trace") {
  const auto schedule = optim::warmup_cosine_decay_schedule(0, 1e-3, 100, 1000, 1e-5);
  std::vector<float> host;
  std::vector<float> in_trace;
  for (std::int64_t t : {0, 50, 100, 550, 1000, 2000}) {
    host.push_back(schedule(t));
    in_trace.push_back(traced(schedule, t));
  }
  CHECK(reference::check("warmup_cosine_values", host));
  CHECK(reference::check("warmup_cosine_values", in_trace));
}

TEST_CASE("host and trace agree to the rounding of one cosine at every step") {
  const auto schedule = optim::warmup_cosine_decay_schedule(1e-4, 2e-3, 7, 40, 3e-4);
  for (std::int64_t t = 0; t < 60; ++t)
    CHECK(traced(schedule, t) == Approx(schedule(t)).epsilon(4 * std::numeric_limits<float>::epsilon()));
  CHECK(schedule(0) == Approx(1e-4f));
  CHECK(schedule(7) == 2e-3f);
  CHECK(schedule(40) == Approx(3e-4f));
  CHECK(schedule(59) == schedule(40));  // it does not rise again
}

TEST_CASE("a constant schedule is constant") {
  const auto schedule = optim::constant_schedule(0.25);
  for (std::int64_t t : {0, 1, 1000000}) {
    CHECK(schedule(t) == 0.25f);
    CHECK(traced(schedule, t) == 0.25f);
  }
}

TEST_CASE("bad arguments of a schedule are refused with name, value and range") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refusal = [](double init, double peak, std::int64_t warmup, std::int64_t total, double end) {
    CHECK_THROWS_AS(optim::warmup_cosine_decay_schedule(init, peak, warmup, total, end), value_error);
    return message_of([&] { optim::warmup_cosine_decay_schedule(init, peak, warmup, total, end); });
  };
  CHECK_THAT(refusal(0, 1, 0, 10, 0), Catch::Contains("warmup_steps is 0") && Catch::Contains("at least 1"));
  CHECK_THAT(refusal(0, 1, -3, 10, 0), Catch::Contains("warmup_steps is -3"));
  CHECK_THAT(refusal(0, 1, 10, 10, 0),
             Catch::Contains("decay_steps is 10") && Catch::Contains("more than warmup_steps, 10"));
  CHECK_THAT(refusal(0, 1, 10, 0, 0), Catch::Contains("decay_steps is 0"));
  CHECK_THAT(refusal(0, 0, 1, 10, 0), Catch::Contains("peak_value is 0") && Catch::Contains("not 0"));
  CHECK_THAT(refusal(0, nan, 1, 10, 0), Catch::Contains("peak_value is") && Catch::Contains("nan"));
  CHECK_THAT(refusal(nan, 1, 1, 10, 0), Catch::Contains("init_value"));
  CHECK_THAT(refusal(0, 1, 1, 10, nan), Catch::Contains("end_value"));
}

namespace {

/// Compares a schedule, on the host and in a trace, with a function in float64. The margin is that of a float32 cosine
/// near
/// -1 times a rate of 2.
template <class Schedule, class F>
void check_rates(const Schedule& schedule, F f, std::initializer_list<std::int64_t> steps) {
  for (const std::int64_t t : steps) {
    INFO("step " << t);
    CHECK(schedule(t) == Approx(f(static_cast<double>(t))).epsilon(3e-6).margin(2.5e-7));
    CHECK(traced(schedule, t) == Approx(f(static_cast<double>(t))).epsilon(3e-6).margin(2.5e-7));
  }
}

double line(double from, double to, double share) { return from + (to - from) * std::clamp(share, 0.0, 1.0); }
double half_cosine(double share) { return (1 + std::cos(std::numbers::pi * std::clamp(share, 0.0, 1.0))) / 2; }

}  // namespace

TEST_CASE("lines and powers begin late and stay at their ends") {
  check_rates(optim::linear_schedule(1, 0.1, 10, 5), [](double t) { return line(1, 0.1, (t - 5) / 10); },
              {0, 5, 6, 10, 15, 16, 1000});
  check_rates(optim::polynomial_schedule(2, 0.5, 3, 8, 2),
              [](double t) { return 1.5 * std::pow(1 - std::clamp((t - 2) / 8, 0.0, 1.0), 3) + 0.5; },
              {0, 2, 3, 7, 10, 11, 500});
  check_rates(optim::warmup_constant_schedule(0, 0.3, 4), [](double t) { return line(0, 0.3, t / 4); }, {0, 1, 4, 9});
}

TEST_CASE("a cosine does not rise again beyond its end") {
  const auto schedule = optim::cosine_decay_schedule(1, 10, 0.1);
  const double expected[] = {1, 0.55, 0.1, 0.1, 0.1, 0.1};
  int i = 0;
  for (const std::int64_t t : {0, 5, 10, 15, 20, 25}) {
    CHECK(schedule(t) == Approx(expected[i]).epsilon(1e-6));
    CHECK(traced(schedule, t) == Approx(expected[i++]).epsilon(1e-6));
  }
  check_rates(optim::cosine_decay_schedule(3, 8, 0.2, 2),
              [](double t) { return 3 * (0.8 * std::pow(half_cosine(t / 8), 2) + 0.2); }, {0, 1, 4, 8, 9});
}

TEST_CASE("exponential decay, smooth and in steps, stops at its end value") {
  const auto decay = [](double t, bool steps, double end) {
    double exponent = std::max(t - 3, 0.0) / 4;
    if (steps) exponent = std::floor(exponent);
    return std::max(0.8 * std::pow(0.5, exponent), end);
  };
  const std::initializer_list<std::int64_t> steps{0, 3, 4, 6, 7, 11, 15, 19, 100};
  check_rates(optim::exponential_decay(0.8, 4, 0.5, {.transition_begin = 3}),
              [&](double t) { return decay(t, false, 0); }, {0, 3, 4, 6, 7, 11, 15});
  check_rates(
      optim::exponential_decay(0.8, 4, 0.5, {.transition_begin = 3, .end_value = 0.1}),
      [&](double t) { return decay(t, false, 0.1); }, steps);
  check_rates(
      optim::staircase_decay(0.8, 4, 0.5, {.transition_begin = 3, .end_value = 0.1}),
      [&](double t) { return decay(t, true, 0.1); }, steps);
  check_rates(optim::exponential_decay(0.1, 2, 2, {.end_value = 0.7}),
              [](double t) { return std::min(0.1 * std::pow(2.0, t / 2), 0.7); }, {0, 1, 2, 5, 6, 40});
  check_rates(optim::warmup_exponential_decay_schedule(0, 1, 5, 4, 0.5),
              [](double t) { return t < 5 ? line(0, 1, t / 5) : std::pow(0.5, (t - 5) / 4); }, {0, 2, 4, 5, 6, 9, 13});
  check_rates(optim::warmup_staircase_decay_schedule(0, 1, 5, 4, 0.5),
              [](double t) { return t < 5 ? line(0, 1, t / 5) : std::pow(0.5, std::floor((t - 5) / 4)); },
              {0, 4, 5, 8, 9, 13});
}

TEST_CASE("pieces are constant, lines or cosines between boundaries") {
  check_rates(optim::piecewise_constant_schedule(1, {{3, 0.5}, {7, 0.1}}),
              [](double t) { return t < 3   ? 1
                                    : t < 7 ? 0.5
                                            : 0.05; }, {0, 2, 3, 6, 7, 8, 90});
  check_rates(optim::piecewise_interpolate_schedule<optim::interpolation::line>(1, {{4, 2}, {8, 0.25}}),
              [](double t) { return t < 4 ? line(1, 2, t / 4) : line(2, 0.5, (t - 4) / 4); }, {0, 1, 4, 5, 8, 9});
  check_rates(optim::piecewise_interpolate_schedule<optim::interpolation::cosine>(1, {{4, 2}, {8, 0.25}}),
              [](double t) { return t < 4 ? 2 - half_cosine(t / 4) : 0.5 + 1.5 * half_cosine((t - 4) / 4); },
              {0, 1, 4, 5, 8, 9});
}

TEST_CASE("one cycle rises to its peak and ends far below where it began") {
  check_rates(optim::cosine_onecycle_schedule(100, 2),
              [](double t) {
                const double first = 2.0 / 25, last = 2.0 / 25 * 1e-4;
                return t < 30 ? 2 - (2 - first) * half_cosine(t / 30) : last + (2 - last) * half_cosine((t - 30) / 70);
              },
              {0, 10, 30, 65, 99, 100, 101});
  check_rates(optim::linear_onecycle_schedule(100, 2),
              [](double t) {
                const double first = 2.0 / 25, last = first * 1e-4;
                return t < 30   ? line(first, 2, t / 30)
                       : t < 85 ? line(2, first, (t - 30) / 55)
                                : line(first, last, (t - 85) / 15);
              },
              {0, 10, 30, 60, 85, 90, 100, 101});
}

TEST_CASE("joined schedules count from 0 where they begin") {
  const auto joined = optim::join_schedules({4, 10}, optim::linear_schedule(0, 1, 4), optim::constant_schedule(1),
                                            optim::exponential_decay(1, 2, 0.5));
  check_rates(joined, [](double t) { return t < 4    ? t / 4
                                            : t < 10 ? 1
                                                     : std::pow(0.5, (t - 10) / 2); },
              {0, 1, 3, 4, 9, 10, 11, 14});
  const auto restarts = optim::sgdr_schedule({{0, 1, 2, 10}, {0.5, 0.8, 5, 20, 0.1}});
  check_rates(restarts,
              [](double t) {
                if (t < 10) return t < 2 ? t / 2 : half_cosine((t - 2) / 8);
                return t < 15 ? line(0.5, 0.8, (t - 10) / 5) : 0.1 + 0.7 * half_cosine((t - 15) / 15);
              },
              {0, 1, 2, 6, 9, 10, 12, 15, 20, 30, 31, 100});
}

TEST_CASE("every schedule refuses what is out of range") {
  CHECK_THAT(message_of([] { optim::cosine_decay_schedule(1, 0); }),
             Catch::Contains("cosine_decay_schedule: decay_steps is 0") && Catch::Contains("at least 1"));
  CHECK_THROWS_AS(optim::cosine_decay_schedule(1, -5), value_error);
  CHECK_THAT(message_of([] { optim::linear_schedule(1, 0, 0); }), Catch::Contains("transition_steps is 0"));
  CHECK_THAT(message_of([] { optim::linear_schedule(1, 0, 5, -1); }), Catch::Contains("transition_begin is -1"));
  CHECK_THAT(message_of([] { optim::polynomial_schedule(1, 0, 0, 5); }), Catch::Contains("power is 0"));
  CHECK_THAT(message_of([] { optim::exponential_decay(1, 5, 0); }), Catch::Contains("decay_rate is 0"));
  CHECK_THAT(message_of([] {
               optim::piecewise_constant_schedule(1, {{5, 1}, {5, 2}});
             }),
             Catch::Contains("a boundary is 5") && Catch::Contains("at least 6"));
  CHECK_THAT(message_of([] { optim::piecewise_constant_schedule(1, {{5, -1}}); }), Catch::Contains("a scale is -1"));
  CHECK_THAT(message_of([] { optim::cosine_onecycle_schedule(100, 1, {.pct_start = 1}); }),
             Catch::Contains("pct_start is 1"));
  CHECK_THAT(message_of([] { optim::join_schedules({0}, optim::constant_schedule(1), optim::constant_schedule(2)); }),
             Catch::Contains("a boundary is 0"));
}
