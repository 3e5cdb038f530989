// SPDX-License-Identifier: Apache-2.0
#include <tessera/core/units.hpp>
#include <tessera/plan/budget.hpp>

#include <cstdint>
#include <limits>
#include <vector>

#include <catch2/catch.hpp>

#include "reference/reference.hpp"

namespace plan = tessera::plan;
using plan::zero_stage;
using tessera::GB;

static_assert(tessera::KiB == 1024 && tessera::MiB == 1024 * tessera::KiB && tessera::GiB == 1024 * tessera::MiB &&
              tessera::TiB == 1024 * tessera::GiB);
static_assert(tessera::KB == 1000 && tessera::MB == 1000 * tessera::KB && GB == 1000 * tessera::MB &&
              tessera::TB == 1000 * GB);

constexpr std::int64_t ten_billion = 10'000'000'000;

static_assert(plan::fp32_adam.total() == 16 && plan::mixed_adam.total() == 16);
static_assert(plan::fp32_sgd.total() == 8 && plan::fp32_momentum.total() == 12);

constexpr plan::model_memory fp32 = plan::memory_per_device(ten_billion, plan::fp32_adam);
static_assert(fp32 == plan::model_memory{40 * GB, 40 * GB, 80 * GB});
static_assert(fp32.persistent() == 120 * GB && fp32.total() == 160 * GB);

// Mixed precision on 64 devices, stage by stage: 160, 4 + 12/64, 2 + 14/64, 16/64 bytes a parameter.
constexpr std::int64_t mixed_total(zero_stage stage) {
  return plan::memory_per_device(ten_billion, plan::mixed_adam, stage, 64).total();
}
static_assert(mixed_total(zero_stage::none) == 160 * GB);
static_assert(mixed_total(zero_stage::optimizer) == 40 * GB + 120 * GB / 64);
static_assert(mixed_total(zero_stage::gradients) == 20 * GB + 140 * GB / 64);
static_assert(mixed_total(zero_stage::parameters) == 160 * GB / 64);
// A share is rounded up to whole parameters.
static_assert(plan::memory_per_device(10, plan::fp32_sgd, zero_stage::parameters, 4) == plan::model_memory{12, 12, 0});

static_assert(plan::training_flops(1e10, 1e12) == 6e22);
static_assert(plan::training_days(86'400.0, 2, 0.5, 1.0) == 1.0);

static_assert(plan::ring_all_reduce_bytes(40 * GB, 8) == 70 * GB);
static_assert(plan::ring_all_reduce_bytes(40 * GB, 64) == 78'750'000'000);
static_assert(plan::all_gather_bytes(40 * GB, 8) == 35 * GB && plan::reduce_scatter_bytes(40 * GB, 8) == 35 * GB);
static_assert(plan::ring_all_reduce_bytes(10, 4) == 18 && plan::ring_all_reduce_bytes(10, 1) == 0);

static_assert(plan::gpipe_bubble(4, 1) == 0.75 && plan::gpipe_bubble(1, 8) == 0.0);

TEST_CASE("bytes of a model of ten billion parameters agree with the reference") {
  const auto gb = [](std::int64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(GB); };
  CHECK(reference::check("memory_10b_fp32_gb",
                         std::vector<double>{gb(fp32.parameters), gb(fp32.gradients), gb(fp32.optimizer),
                                             gb(fp32.persistent()), gb(fp32.total())}));
  CHECK(reference::check("mixed_bytes_per_param", plan::mixed_adam.total()));
  std::vector<double> sharded, reduced;
  for (const std::int64_t devices : {8, 64, 512})
    sharded.push_back(
        gb(plan::memory_per_device(ten_billion, plan::mixed_adam, zero_stage::parameters, devices).total()));
  for (const std::int64_t devices : {8, 64})
    reduced.push_back(gb(plan::ring_all_reduce_bytes(fp32.gradients, devices)));
  CHECK(reference::check("zero3_gb_per_device", sharded));
  CHECK(reference::check("ring_allreduce_gb", reduced));
}

TEST_CASE("pipeline bubbles agree with the reference") {
  CHECK(reference::check("gpipe_bubble_p4_m1", 100 * plan::gpipe_bubble(4, 1)));
  CHECK(reference::check("gpipe_bubble_p4_m4", 100 * plan::gpipe_bubble(4, 4)));
}

TEST_CASE("a trillion tokens through ten billion parameters take 256 devices 22.6 days") {
  CHECK(plan::training_days(plan::training_flops(1e10, 1e12), 256, 300e12, 0.4) == Approx(22.6056).epsilon(1e-5));
}

TEST_CASE("Adam's state is twice the parameters and one step count") {
  constexpr std::int64_t parameters = 1024 * 512 + 512;
  constexpr plan::model_memory memory = plan::memory_per_device(parameters, plan::fp32_adam);
  const auto state = memory.optimizer + std::int64_t{sizeof(std::int32_t)};
  CHECK(reference::check("adam_state_ratio_toy", static_cast<double>(state) / static_cast<double>(memory.parameters)));
}

TEST_CASE("bad arguments are refused with the value and the range") {
  using tessera::value_error;
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_WITH(plan::memory_per_device(-1, plan::fp32_adam), "plan: parameters = -1 is outside [0, 2^63)");
  CHECK_THROWS_WITH(plan::memory_per_device(1, plan::fp32_adam, zero_stage::none, 0),
                    "plan: devices = 0 is outside [1, 2^63)");
  CHECK_THROWS_AS(plan::memory_per_device(1, {.parameter = -4}), value_error);
  CHECK_THROWS_AS(plan::memory_per_device(1, {.master = huge, .moments = huge}), value_error);
  CHECK_THROWS_AS(plan::memory_per_device(huge / 8, plan::fp32_adam), value_error);
  CHECK_THROWS_AS(plan::training_flops(0, 1), value_error);
  CHECK_THROWS_AS(plan::training_flops(1, std::numeric_limits<double>::quiet_NaN()), value_error);
  CHECK_THROWS_WITH(plan::training_days(1, 1, 1, 1.5), "plan: utilisation = 1.5 is outside (0, 1]");
  CHECK_THROWS_AS(plan::training_days(1, 1, 1, 0), value_error);
  CHECK_THROWS_AS(plan::training_days(1, 0, 1, 1), value_error);
  CHECK_THROWS_AS(plan::training_days(1, 1, std::numeric_limits<double>::infinity(), 1), value_error);
  CHECK_THROWS_AS(plan::all_gather_bytes(-1, 8), value_error);
  CHECK_THROWS_AS(plan::ring_all_reduce_bytes(huge, 8), value_error);
  CHECK_THROWS_AS(plan::ring_all_reduce_bytes(1, 0), value_error);
  CHECK_THROWS_AS(plan::gpipe_bubble(0, 1), value_error);
  CHECK_THROWS_WITH(plan::gpipe_bubble(4, 0), "plan: micro_batches = 0 is outside [1, 2^63)");
}
