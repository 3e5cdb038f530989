// SPDX-License-Identifier: Apache-2.0
// What a floating-point type can hold, as numpy.finfo says it.
#pragma once

#include <tessera/core/dtype.hpp>

#include <limits>
#include <string_view>

namespace tessera {

/// Bits in all, of the exponent and of the mantissa; the step after 1; the largest number, the smallest normal and the
/// smallest subnormal one.
struct float_info {
  std::string_view dtype;
  int bits;
  int nexp;
  int nmant;
  double eps;
  double max;
  double tiny;
  double smallest_subnormal;
};

/// `finfo<bfloat16>()`, `finfo<float>()`. Source: numpy.finfo.
template <class T>
requires(DtypeStorage<T>&& std::numeric_limits<T>::is_iec559) constexpr float_info finfo() {
  using limits = std::numeric_limits<T>;
  constexpr int bits = 8 * static_cast<int>(sizeof(T));
  return {info(dtype_of<T>).name,
          bits,
          bits - limits::digits,
          limits::digits - 1,
          static_cast<double>(limits::epsilon()),
          static_cast<double>(limits::max()),
          static_cast<double>(limits::min()),
          static_cast<double>(limits::denorm_min())};
}

/// `finfo<ts::bf16>()`
template <dtype D>
constexpr float_info finfo() {
  return finfo<storage_t<D>>();
}

}  // namespace tessera
