// SPDX-License-Identifier: Apache-2.0
// Schedules: reference values, the same on the host and in a trace, and arguments that are refused.
#include "support.hpp"

#include <catch2/catch.hpp>

#include "reference/reference.hpp"

#include <limits>

using namespace optim_test;

namespace {

/// What the schedule gives within a step.
template <class Schedule>
float traced(const Schedule& schedule, std::int64_t step) {
  graph::graph g;
  Schedule s = schedule;
  transform::bind_argument<mesh<>>(g, s);
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
