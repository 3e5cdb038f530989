// SPDX-License-Identifier: Apache-2.0
// What a training run needs, before it is built: bytes per device, FLOPs, days, bytes on the wire; all constexpr.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <tessera/core/error.hpp>
#include <tessera/core/number_text.hpp>

namespace tessera::plan {

namespace detail {

template <class T>
[[noreturn]] void throw_outside(const char* what, T value, const char* range) {
  throw value_error(std::string("plan: ") + what + " = " + number_text(value) + " is outside " + range);
}

constexpr void require_at_least(std::int64_t least, const char* what, std::int64_t value) {
  if (value < least) throw_outside(what, value, least == 0 ? "[0, 2^63)" : "[1, 2^63)");
}

constexpr void require_positive(const char* what, double value) {
  if (!(value > 0 && value <= std::numeric_limits<double>::max())) throw_outside(what, value, "(0, inf)");
}

/// a b of two numbers that are not negative.
constexpr std::int64_t product(const char* what, std::int64_t a, std::int64_t b) {
  if (b != 0 && a > std::numeric_limits<std::int64_t>::max() / b)
    throw_outside(what, static_cast<double>(a) * static_cast<double>(b), "[0, 2^63)");
  return a * b;
}

constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }

}  // namespace detail

/// Bytes that training keeps for one parameter, by what they hold.
struct bytes_per_parameter {
  std::int64_t parameter = 4;
  std::int64_t gradient = 4;
  std::int64_t master = 0;  // the full-precision copy that the optimiser updates
  std::int64_t moments = 0;

  constexpr std::int64_t optimizer() const { return master + moments; }
  constexpr std::int64_t total() const { return parameter + gradient + optimizer(); }

  friend constexpr bool operator==(const bytes_per_parameter&, const bytes_per_parameter&) = default;
};

inline constexpr bytes_per_parameter fp32_sgd{4, 4, 0, 0};
inline constexpr bytes_per_parameter fp32_momentum{4, 4, 0, 4};
inline constexpr bytes_per_parameter fp32_adam{4, 4, 0, 8};
/// bf16 or f16 parameters and gradients; f32 master copy and Adam moments.
inline constexpr bytes_per_parameter mixed_adam{2, 2, 4, 8};

/// What data-parallel devices share out among themselves rather than all keep; each stage includes the one before.
/// Source: S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models" (2020).
enum class zero_stage { none = 0, optimizer = 1, gradients = 2, parameters = 3 };

/// Bytes on one device; activations and work space come on top.
struct model_memory {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;

  /// What stays between steps.
  constexpr std::int64_t persistent() const { return parameters + optimizer; }
  constexpr std::int64_t total() const { return parameters + gradients + optimizer; }

  friend constexpr bool operator==(const model_memory&, const model_memory&) = default;
};

/// Bytes per device of a model of `parameters` parameters: parameters x bytes each, or ceil(parameters / devices) x
/// bytes each for what the stage shards. A negative count, no device, or more than 2^63 bytes raise value_error.
constexpr model_memory memory_per_device(std::int64_t parameters, const bytes_per_parameter& bytes,
                                         zero_stage stage = zero_stage::none, std::int64_t devices = 1) {
  detail::require_at_least(0, "parameters", parameters);
  detail::require_at_least(1, "devices", devices);
  for (const std::int64_t each : {bytes.parameter, bytes.gradient, bytes.master, bytes.moments})
    if (each < 0 || each > 1'000'000) detail::throw_outside("bytes per parameter", each, "[0, 1000000]");
  const std::int64_t share = detail::divide_up(parameters, devices);
  const auto held = [&](zero_stage sharded_from) { return stage >= sharded_from ? share : parameters; };
  detail::product("bytes per device", parameters, bytes.total());
  return {.parameters = held(zero_stage::parameters) * bytes.parameter,
          .gradients = held(zero_stage::gradients) * bytes.gradient,
          .optimizer = held(zero_stage::optimizer) * bytes.optimizer()};
}

/// FLOPs of training a dense model: 6 N D for N parameters and D tokens, 2 forward and 4 backward.
/// Source: J. Kaplan et al., "Scaling Laws for Neural Language Models" (2020).
constexpr double training_flops(double parameters, double tokens) {
  detail::require_positive("parameters", parameters);
  detail::require_positive("tokens", tokens);
  return 6 * parameters * tokens;
}

/// Days that `flops` take: flops / (devices x peak FLOP/s of one x utilisation) / 86400, utilisation in (0, 1].
constexpr double training_days(double flops, std::int64_t devices, double peak_flops_per_second, double utilisation) {
  detail::require_positive("flops", flops);
  detail::require_at_least(1, "devices", devices);
  detail::require_positive("peak_flops_per_second", peak_flops_per_second);
  if (!(utilisation > 0 && utilisation <= 1)) detail::throw_outside("utilisation", utilisation, "(0, 1]");
  return flops / (static_cast<double>(devices) * peak_flops_per_second * utilisation) / 86'400;
}

/// Bytes that each device sends (and receives) to gather an array of `bytes` from n shards round a ring:
/// (n - 1) ceil(bytes / n).
/// Source: R. Thakur et al., "Optimization of Collective Communication Operations in MPICH" (2005).
constexpr std::int64_t all_gather_bytes(std::int64_t bytes, std::int64_t devices) {
  detail::require_at_least(0, "bytes", bytes);
  detail::require_at_least(1, "devices", devices);
  return detail::product("bytes sent", detail::divide_up(bytes, devices), devices - 1);
}

/// Bytes that each device sends to add n arrays of `bytes` and keep 1/n of the sum: (n - 1) ceil(bytes / n).
constexpr std::int64_t reduce_scatter_bytes(std::int64_t bytes, std::int64_t devices) {
  return all_gather_bytes(bytes, devices);
}

/// Bytes that each device sends to add n arrays of `bytes` and keep the whole sum, a reduce-scatter and an all-gather:
/// 2 (n - 1) ceil(bytes / n).
constexpr std::int64_t ring_all_reduce_bytes(std::int64_t bytes, std::int64_t devices) {
  return detail::product("bytes sent", all_gather_bytes(bytes, devices), 2);
}

/// The share of a pipeline's time in which a stage waits: (p - 1) / (m + p - 1) for p stages and m micro-batches.
/// Source: Y. Huang et al., "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism" (2019).
constexpr double gpipe_bubble(std::int64_t stages, std::int64_t micro_batches) {
  detail::require_at_least(1, "stages", stages);
  detail::require_at_least(1, "micro_batches", micro_batches);
  return static_cast<double>(stages - 1) / (static_cast<double>(micro_batches) + static_cast<double>(stages - 1));
}

}  // namespace tessera::plan
