// SPDX-License-Identifier: Apache-2.0
// Floating-point numbers of 16 bits: bfloat16, which has the range of float32, and IEEE 754's float16.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>
#include <type_traits>

namespace tessera {

/// How a bfloat16 is written: 1 bit of sign, 8 of exponent, 7 of mantissa; the upper half of a float32.
struct bfloat16_format {
  static constexpr std::string_view name = "bfloat16";
  static constexpr int exponent_bits = 8;
  static constexpr int mantissa_bits = 7;

  static constexpr float to_float(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }

  static constexpr std::uint16_t from_float(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    if (x != x) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
    return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
  }
};

/// How a float16 is written: 1 bit of sign, 5 of exponent, 10 of mantissa.
struct float16_format {
  static constexpr std::string_view name = "float16";
  static constexpr int exponent_bits = 5;
  static constexpr int mantissa_bits = 10;

  static constexpr std::uint32_t rebias = (127U - 15U) << 23;   ///< between the exponents of float32 and float16
  static constexpr std::uint32_t smallest_normal = 113U << 23;  ///< 2^-14 as a float32
  static constexpr std::uint32_t too_large = 143U << 23;        ///< 2^16 as a float32

  static constexpr float to_float(std::uint16_t bits) {
    const std::uint32_t sign = (bits & 0x8000U) << 16;
    const std::uint32_t rest = (bits & 0x7fffU) << 13;
    if (rest >= 31U << 23)  // infinities, and NaN made quiet
      return std::bit_cast<float>(sign | 0x7f800000U | (rest & 0x7fffffU) | ((rest & 0x7fffffU) != 0 ? 0x400000U : 0U));
    if (rest >= 1U << 23) return std::bit_cast<float>(sign | (rest + rebias));
    const float magnitude = static_cast<float>(rest >> 13) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }

  static constexpr std::uint16_t from_float(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t sign = bits >> 16 & 0x8000U;
    const std::uint32_t rest = bits & 0x7fffffffU;
    if (x != x) return static_cast<std::uint16_t>(sign | 0x7e00U | (rest >> 13 & 0x3ffU));
    if (rest >= too_large) return static_cast<std::uint16_t>(sign | 0x7c00U);
    if (rest >= smallest_normal)  // a carry out of the mantissa raises the exponent, to infinity at last
      return static_cast<std::uint16_t>(sign | (rest - rebias + 0xfffU + (rest >> 13 & 1U)) >> 13);
    const float shifted = std::bit_cast<float>(rest) + 0.5F;  // an addition rounds at 2^-24, the last place of 0.5
    return static_cast<std::uint16_t>(sign |
                                      (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F)));
  }
};

/// A number of 16 bits in storage. It becomes a float without loss wherever one is wanted; made from other numbers it
/// is rounded to the nearest, ties to even, beyond the largest to infinity; subnormals are kept and NaN stays NaN. The
/// arithmetic of two of them is that of float, rounded.
template <class Format>
class small_float {
 public:
  using format = Format;

  constexpr small_float() = default;
  constexpr explicit small_float(float x) : bits_(Format::from_float(x)) {}
  constexpr explicit small_float(double x) : small_float(to_odd(x)) {}
  template <class T>
  requires std::is_integral_v<T>
  constexpr explicit small_float(T x) : small_float(static_cast<double>(x)) {}

  static constexpr small_float from_bits(std::uint16_t bits) {
    small_float x;
    x.bits_ = bits;
    return x;
  }
  constexpr std::uint16_t bits() const { return bits_; }
  constexpr operator float() const { return Format::to_float(bits_); }

  constexpr small_float operator-() const { return from_bits(static_cast<std::uint16_t>(bits_ ^ 0x8000U)); }
  friend constexpr small_float operator+(small_float a, small_float b) { return small_float(float{a} + float{b}); }
  friend constexpr small_float operator-(small_float a, small_float b) { return small_float(float{a} - float{b}); }
  friend constexpr small_float operator*(small_float a, small_float b) { return small_float(float{a} * float{b}); }
  friend constexpr small_float operator/(small_float a, small_float b) { return small_float(float{a} / float{b}); }
  friend constexpr bool operator==(small_float a, small_float b) { return float{a} == float{b}; }
  friend constexpr auto operator<=>(small_float a, small_float b) { return float{a} <=> float{b}; }

 private:
  /// The float next to a double, odd where it is not the same: rounding it again rounds as if from the double.
  static constexpr float to_odd(double x) {
    constexpr auto largest = static_cast<double>(std::numeric_limits<float>::max());
    if (x != x || x > largest || x < -largest)
      return x != x  ? std::numeric_limits<float>::quiet_NaN()
             : x > 0 ? std::numeric_limits<float>::infinity()
                     : -std::numeric_limits<float>::infinity();
    const auto near = static_cast<float>(x);
    const auto bits = std::bit_cast<std::uint32_t>(near);
    if (static_cast<double>(near) == x || (bits & 1U) != 0) return near;
    const bool below = static_cast<double>(near) < x;
    return std::bit_cast<float>(below == (x > 0) ? bits + 1 : bits - 1);
  }

  std::uint16_t bits_ = 0;
};

using bfloat16 = small_float<bfloat16_format>;
using float16 = small_float<float16_format>;

template <class T>
inline constexpr bool is_small_float = false;
template <class Format>
inline constexpr bool is_small_float<small_float<Format>> = true;

/// What arithmetic on elements of type T is done in: float for 16-bit numbers, else T.
template <class T>
using compute_t = std::conditional_t<is_small_float<std::remove_cv_t<T>>, float, T>;

}  // namespace tessera

template <class Format>
struct std::numeric_limits<tessera::small_float<Format>> {
  using number = tessera::small_float<Format>;

  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr bool is_iec559 = true;
  static constexpr bool has_infinity = true;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = true;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr int radix = 2;
  static constexpr int digits = Format::mantissa_bits + 1;
  static constexpr int digits10 = Format::mantissa_bits * 30103 / 100000;
  static constexpr int max_digits10 = 2 + digits * 30103 / 100000;
  static constexpr int max_exponent = 1 << (Format::exponent_bits - 1);
  static constexpr int min_exponent = 3 - max_exponent;
  static constexpr int max_exponent10 = max_exponent * 30103 / 100000;
  static constexpr int min_exponent10 = -((1 - min_exponent) * 30103 / 100000);

  static constexpr std::uint16_t one_of_exponent = 1U << Format::mantissa_bits;
  static constexpr std::uint16_t infinity_bits = ((1U << Format::exponent_bits) - 1U) << Format::mantissa_bits;

  static constexpr number min() { return number::from_bits(one_of_exponent); }
  static constexpr number denorm_min() { return number::from_bits(1); }
  static constexpr number max() { return number::from_bits(infinity_bits - 1); }
  static constexpr number lowest() { return -max(); }
  static constexpr number epsilon() { return number(1.0F / static_cast<float>(one_of_exponent)); }
  static constexpr number round_error() { return number(0.5F); }
  static constexpr number infinity() { return number::from_bits(infinity_bits); }
  static constexpr number quiet_NaN() { return number::from_bits(infinity_bits | one_of_exponent >> 1U); }
  static constexpr number signaling_NaN() { return number::from_bits(infinity_bits | 1U); }
};

/// Equal numbers have equal hashes, also 0 and -0.
template <class Format>
struct std::hash<tessera::small_float<Format>> {
  std::size_t operator()(tessera::small_float<Format> x) const { return x == -x ? 0 : std::size_t{x.bits()}; }
};
