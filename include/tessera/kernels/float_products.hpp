// SPDX-License-Identifier: Apache-2.0
// Which algorithm products of floats have.
#pragma once

#include <atomic>

namespace tessera::kernels {

/// See tessera::default_dot_algorithm.
enum class dot_algorithm { f32_f32_f32, bf16_bf16_f32_x6 };

inline constinit std::atomic<dot_algorithm> float_products = dot_algorithm::bf16_bf16_f32_x6;

}  // namespace tessera::kernels
