// SPDX-License-Identifier: Apache-2.0
// How products of float32 are computed.
#pragma once

#include <tessera/kernels/float_products.hpp>

namespace tessera {

using kernels::dot_algorithm;

/// While it lives, products of float32 are computed so in this process; the one made last counts, and they end in
/// reverse order. Names are those of JAX's DotAlgorithmPreset. Programs start with bf16_bf16_f32_x6.
///
/// - f32_f32_f32: fused multiply-adds.
/// - bf16_bf16_f32_x6: where the processor has matrix registers (AMX), for depths of 32 and more, each number as the
///   sum of three bfloat16 numbers and six products of these; elsewhere as f32_f32_f32. As near to the exact product
///   (docs/precision.md), and about twice as fast.
///
/// Bits depend on it, but neither on threads nor on shards.
class default_dot_algorithm {
 public:
  explicit default_dot_algorithm(dot_algorithm algorithm)
      : before_(kernels::float_products.exchange(algorithm, std::memory_order_relaxed)) {}
  default_dot_algorithm(const default_dot_algorithm&) = delete;
  default_dot_algorithm& operator=(const default_dot_algorithm&) = delete;
  ~default_dot_algorithm() { kernels::float_products.store(before_, std::memory_order_relaxed); }

  /// What holds now.
  static dot_algorithm now() { return kernels::float_products.load(std::memory_order_relaxed); }

 private:
  dot_algorithm before_;
};

}  // namespace tessera
