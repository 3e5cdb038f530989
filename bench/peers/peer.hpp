// SPDX-License-Identifier: Apache-2.0
// What a library that tessera's products are compared with looks like from the benchmark: a plug-in with one function.
#pragma once

#include <cstdint>

namespace bench {

enum class element { f32, f64, bf16 };

/// C = A B on row-major matrices without gaps; A or B may be stored transposed. C of bf16 is float.
struct product {
  element type = element::f32;
  bool a_transposed = false;
  bool b_transposed = false;
  std::int64_t m = 0;
  std::int64_t k = 0;
  std::int64_t n = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
};

/// A product that a peer is ready to run, as often as wanted.
struct prepared {
  virtual void run() = 0;
  virtual ~prepared() = default;
};

/// `extern "C" bench::prepared* peer_prepare(const bench::product&, int threads)` in each plug-in: nullptr where the
/// peer has no such product.
using peer_prepare_function = prepared* (*)(const product&, int threads);

}  // namespace bench
