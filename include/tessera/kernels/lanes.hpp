// SPDX-License-Identifier: Apache-2.0
// Vectors of every element type with one number of lanes, and each elementwise operation on them.
#pragma once

#include <tessera/core/dtype.hpp>
#include <tessera/graph/op.hpp>
#include <tessera/kernels/arch/mask_bytes.hpp>
#include <tessera/kernels/arch/sixteen_bits.hpp>
#include <tessera/kernels/arch/xsimd.hpp>
#include <tessera/kernels/detail/instance.hpp>
#include <tessera/kernels/functions.hpp>
#include <tessera/kernels/gelu.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

namespace tessera::kernels {

using graph::op;

/// One element converted: to bool whether it is not 0; to an integer towards 0, NaN to 0 and what does not fit to the
/// nearest end.
template <class To, class From>
To convert_element(From x) {
  if constexpr (is_small_float<From>) {
    return convert_element<To>(float{x});
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From{0};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (x != x) return 0;
    constexpr auto low = static_cast<double>(std::numeric_limits<To>::lowest());
    constexpr auto high = static_cast<double>(std::numeric_limits<To>::max());
    const auto wide = static_cast<double>(x);
    return wide <= low    ? std::numeric_limits<To>::lowest()
           : wide >= high ? std::numeric_limits<To>::max()
                          : static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

/// Whether an operation on 16-bit numbers gives one of them without rounding.
constexpr bool is_exact(op code) {
  switch (code) {
    case op::neg:
    case op::abs:
    case op::sign:
    case op::relu:
    case op::copy:
    case op::stop_gradient:
    case op::floor:
    case op::ceil:
    case op::round:
    case op::trunc:
    case op::max:
    case op::min: return true;
    default: return graph::is_predicate(code);
  }
}

/// Vectors with as many lanes as one of Widest has; bool is a mask over Widest, 16-bit numbers are floats that are
/// rounded to their type after every operation.
template <class Widest>
struct vector_lanes {
  static constexpr std::int64_t width = static_cast<std::int64_t>(xsimd::batch<Widest>::size);

  template <dtype D>
  struct vector_of : std::type_identity<xsimd::batch<Widest>> {};
  template <dtype D>
  requires(D == bool_) struct vector_of<D> : std::type_identity<xsimd::batch_bool<Widest>> {
  };
  template <dtype D>
  requires(D != bool_ && sizeof(compute_t<storage_t<D>>) == sizeof(Widest)) struct vector_of<D>
      : std::type_identity<xsimd::batch<compute_t<storage_t<D>>>> {
  };
  template <dtype D>
  using vector = typename vector_of<D>::type;

  template <dtype D>
  static vector<D> repeat(storage_t<D> x) {
    return vector<D>(compute_t<storage_t<D>>{x});
  }

  template <dtype D>
  static vector<D> load(const storage_t<D>* from) {
    if constexpr (D == bool_) return load_mask(from);
    else if constexpr (is_sixteen_bit(D)) return detail::load_widened(from);
    else return vector<D>::load_unaligned(from);
  }

  // Bytes become lanes, and lanes bytes, by operations on the whole vector; xsimd's own goes lane by lane.

  using mask_lane = std::conditional_t<sizeof(Widest) == 4, std::int32_t, std::int64_t>;

  static vector<bool_> load_mask(const bool* from) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(from);
    mask_lane lanes[width];
    for (std::int64_t i = 0; i < width; ++i) lanes[i] = bytes[i];
    using batch = xsimd::batch<mask_lane>;
    return mask_of(batch::load_unaligned(lanes) > batch(mask_lane{0}));
  }

  static void store_mask(bool* to, const vector<bool_>& mask) {
    auto* bytes = reinterpret_cast<unsigned char*>(to);
    if constexpr (detail::packs_masks<Widest>) return detail::store_packed(bytes, mask);
    mask_lane lanes[width];
    using batch = xsimd::batch<mask_lane>;
    xsimd::select(recast<mask_lane>(mask), batch(mask_lane{1}), batch(mask_lane{0})).store_unaligned(lanes);
    for (std::int64_t i = 0; i < width; ++i) bytes[i] = static_cast<unsigned char>(lanes[i]);
  }

  /// Elements `stride` apart.
  template <dtype D>
  static vector<D> load_strided(const storage_t<D>* from, std::int64_t stride) {
    storage_t<D> lanes[width];
    for (std::int64_t i = 0; i < width; ++i) lanes[i] = from[i * stride];
    return load<D>(lanes);
  }

  template <dtype D>
  static vector<D> count_from(std::int64_t first) {
    alignas(64) storage_t<D> lanes[width];
    if constexpr (std::is_integral_v<storage_t<D>> && D != bool_) {
      for (std::int64_t i = 0; i < width; ++i) lanes[i] = static_cast<storage_t<D>>(i);
      return load<D>(lanes) + repeat<D>(static_cast<storage_t<D>>(first));
    } else {
      for (std::int64_t i = 0; i < width; ++i) lanes[i] = static_cast<storage_t<D>>(first + i);
      return load<D>(lanes);
    }
  }

  template <dtype D>
  static void store(storage_t<D>* to, const vector<D>& x) {
    if constexpr (D == bool_) store_mask(to, x);
    else if constexpr (is_sixteen_bit(D)) detail::store_rounded(to, x);
    else x.store_unaligned(to);
  }

  template <dtype D>
  static vector<D> choose(const vector<bool_>& mask, const vector<D>& a, const vector<D>& b) {
    if constexpr (D == bool_) return (mask && a) || (!mask && b);
    else return xsimd::select(recast<compute_t<storage_t<D>>>(mask), a, b);
  }

  /// The same mask over lanes of another type of one size.
  template <class To, class From>
  static xsimd::batch_bool<To> recast(const xsimd::batch_bool<From>& mask) {
    if constexpr (std::is_same_v<To, From>) return mask;
    else return std::bit_cast<typename xsimd::batch_bool<To>::register_type>(mask.data);
  }
  template <class T>
  static vector<bool_> mask_of(const xsimd::batch_bool<T>& mask) {
    return recast<Widest>(mask);
  }

  template <dtype To, dtype From>
  static vector<To> convert(const vector<From>& x) {
    using wide_from = compute_t<storage_t<From>>;
    if constexpr (To == From || (To == f32 && is_sixteen_bit(From))) {
      return x;
    } else if constexpr (From == bool_) {
      return choose<To>(x, vector<To>(compute_t<storage_t<To>>{1}), vector<To>(compute_t<storage_t<To>>{0}));
    } else if constexpr (To == bool_) {
      return mask_of(!(x == vector<From>(wide_from{0})));
    } else if constexpr (From == i32 && To == f32) {
      return xsimd::to_float(x);
    } else if constexpr ((From == i32 && To == u32) || (From == u32 && To == i32)) {
      return xsimd::bitwise_cast<vector<To>>(x);
    } else if constexpr (is_sixteen_bit(To) && std::is_same_v<wide_from, float>) {
      return detail::rounded_to<storage_t<To>>(x);
    } else {
      wide_from in[width];
      storage_t<To> out[width];
      x.store_unaligned(in);
      for (std::int64_t i = 0; i < width; ++i) out[i] = convert_element<storage_t<To>>(in[i]);
      return load<To>(out);
    }
  }

  /// The result of an operation in float32 as a 16-bit number.
  template <op Code, dtype D, class Result>
  static auto narrowed(const Result& x) {
    if constexpr (is_exact(Code)) return x;
    else return detail::rounded_to<storage_t<D>>(x);
  }

  template <op Code, dtype D>
  static auto unary(const vector<D>& x) {
    using batch = vector<D>;
    if constexpr (is_sixteen_bit(D)) return narrowed<Code, D>(unary<Code, f32>(x));
    else if constexpr (Code == op::logical_not) return vector<bool_>(!x);
    else if constexpr (Code == op::copy || Code == op::stop_gradient) return x;
    else if constexpr (Code == op::neg) return negative<D>(x);
    else if constexpr (Code == op::abs) return absolute<D>(x);
    else if constexpr (Code == op::sign) return sign<D>(x);
    else if constexpr (Code == op::square) return batch(x * x);
    else if constexpr (Code == op::relu)
      return batch(xsimd::select(x <= batch(storage_t<D>{0}), batch(storage_t<D>{0}), x));
    else if constexpr (Code == op::sqrt) return xsimd::sqrt(x);
    else if constexpr (Code == op::rsqrt) return batch(batch(storage_t<D>{1}) / xsimd::sqrt(x));
    else if constexpr (Code == op::exp) return exponential<D>(x);
    else if constexpr (Code == op::log) return logarithm<D>(x);
    else if constexpr (Code == op::log1p) return log_of_one_plus<D>(x);
    else if constexpr (Code == op::tanh) return xsimd::tanh(x);
    else if constexpr (Code == op::sin) return sine<D>(x);
    else if constexpr (Code == op::cos) return cosine<D>(x);
    else if constexpr (Code == op::erf) return error_function<D>(x);
    else if constexpr (Code == op::logistic) return logistic<D>(x);
    else if constexpr (Code == op::gelu) return kernels::gelu(x);
    else if constexpr (Code == op::gelu_slope) return kernels::gelu_slope(x);
    else if constexpr (Code == op::bit_not) return batch(~x);
    else return function_of<Code, D>(x);
  }

  template <op Code, dtype D>
  static vector<D> function_of(const vector<D>& x) {
    if constexpr (Code == op::expm1) return functions::expm1(x, exponential<D>(x));
    else if constexpr (Code == op::exp2) return functions::exp2(x);
    else if constexpr (Code == op::log2) return functions::log2(x);
    else if constexpr (Code == op::erf_inv) return functions::inverse_error_functions(x);
    else if constexpr (Code == op::tan) return xsimd::tan(x);
    else if constexpr (Code == op::asin) return xsimd::asin(x);
    else if constexpr (Code == op::acos) return xsimd::acos(x);
    else if constexpr (Code == op::atan) return xsimd::atan(x);
    else if constexpr (Code == op::sinh) return xsimd::sinh(x);
    else if constexpr (Code == op::cosh) return xsimd::cosh(x);
    else if constexpr (Code == op::floor) return xsimd::floor(x);
    else if constexpr (Code == op::ceil) return xsimd::ceil(x);
    else if constexpr (Code == op::round) return xsimd::nearbyint(x);
    else return xsimd::trunc(x);
  }

  /// -x; xsimd's own subtracts from 0, which makes 0 of 0 instead of -0.
  template <dtype D>
  static vector<D> negative(const vector<D>& x) {
    if constexpr (is_floating(D)) return x ^ vector<D>(-storage_t<D>{0});
    else return -x;
  }

  template <dtype D>
  static vector<D> absolute(const vector<D>& x) {
    if constexpr (D == u32) return x;
    else return xsimd::abs(x);
  }

  /// -1, 0 or 1; NaN stays NaN.
  template <dtype D>
  static vector<D> sign(const vector<D>& x) {
    using batch = vector<D>;
    const batch zero(storage_t<D>{0});
    const batch one(storage_t<D>{1});
    if constexpr (D == u32) return xsimd::select(x == zero, zero, one);
    else return xsimd::select(x > zero, one, xsimd::select(x < zero, batch(-one), x));
  }

  /// exp(x). Near the ends of float64's range it is exp(x / 2) squared: xsimd's own overflows too early and has no
  /// subnormals.
  template <dtype D>
  static vector<D> exponential(const vector<D>& x) {
    using batch = vector<D>;
    if constexpr (D == f32) return functions::exp(x);
    const auto far = xsimd::abs(x) > batch(storage_t<D>{708});
    const batch e = xsimd::exp(xsimd::select(far, x * batch(storage_t<D>{0.5}), x));
    return xsimd::select(far, e * e, e);
  }

  /// log(x); subnormal float64 numbers, which xsimd's own takes for others, are scaled first.
  template <dtype D>
  static vector<D> logarithm(const vector<D>& x) {
    using batch = vector<D>;
    if constexpr (D == f32) {
      return xsimd::log(x);
    } else {
      const auto tiny = x < batch(std::numeric_limits<double>::min());
      const batch shift = xsimd::select(tiny, batch(54 * std::numbers::ln2), batch(0.0));
      return xsimd::log(xsimd::select(tiny, x * batch(0x1p54), x)) - shift;
    }
  }

  // Functions too long to stand in every loop that calls them are compiled once for a program, see instances.hpp.

  /// erf(x), which is 1 beyond 6.5 even in float64, for which xsimd's own gives NaN there.
  template <dtype D>
  static vector<D> error_function(vector<D> x);

  /// a^b with the special values of C's pow; off by about |b log a| units in the last place.
  template <dtype D>
  static vector<D> power(vector<D> a, vector<D> b);

  template <dtype D>
  static vector<D> sine(vector<D> x);
  template <dtype D>
  static vector<D> cosine(vector<D> x);

  /// log(1 + x); -0 stays -0.
  template <dtype D>
  static vector<D> log_of_one_plus(vector<D> x);

  /// 1 / (1 + exp(-x)), from exp(-|x|) so that nothing overflows.
  template <dtype D>
  static vector<D> logistic(const vector<D>& x) {
    using batch = vector<D>;
    if constexpr (D == f32) return functions::logistic(x);
    const batch one(storage_t<D>{1});
    const batch e = exponential<D>(-xsimd::abs(x));
    return xsimd::select(x < batch(storage_t<D>{0}), e / (one + e), one / (one + e));
  }

  template <op Code, dtype D>
  static auto binary(const vector<D>& a, const vector<D>& b) {
    using batch = vector<D>;
    if constexpr (is_sixteen_bit(D)) return narrowed<Code, D>(binary<Code, f32>(a, b));
    else if constexpr (Code == op::add) return batch(a + b);
    else if constexpr (Code == op::sub) return batch(a - b);
    else if constexpr (Code == op::mul) return batch(a * b);
    else if constexpr (Code == op::div) return batch(a / b);
    else if constexpr (Code == op::pow) return power<D>(a, b);
    else if constexpr (Code == op::max) return extremum<D>(a > b, a, b);
    else if constexpr (Code == op::min) return extremum<D>(a < b, a, b);
    else if constexpr (Code == op::bit_and) return batch(a & b);
    else if constexpr (Code == op::bit_or) return batch(a | b);
    else if constexpr (Code == op::bit_xor) return batch(a ^ b);
    else if constexpr (Code == op::atan2 || Code == op::mod || Code == op::floor_div || Code == op::shift_left ||
                       Code == op::shift_right)
      return functions::lane_by_lane<Code>(a, b);
    else if constexpr (Code == op::logical_and) return vector<bool_>(a && b);
    else if constexpr (Code == op::logical_or) return vector<bool_>(a || b);
    else if constexpr (D == bool_)
      return Code == op::eq ? vector<bool_>((a && b) || (!a && !b)) : vector<bool_>((a && !b) || (!a && b));
    else if constexpr (Code == op::eq) return mask_of(a == b);
    else if constexpr (Code == op::ne) return mask_of(!(a == b));
    else if constexpr (Code == op::lt) return mask_of(ordered(a) < ordered(b));
    else if constexpr (Code == op::le) return mask_of(ordered(a) <= ordered(b));
    else if constexpr (Code == op::gt) return mask_of(ordered(a) > ordered(b));
    else return mask_of(ordered(a) >= ordered(b));
  }

  /// Numbers of the same order: on AVX2 xsimd compares unsigned ones by halves, signed ones at once.
  template <class T>
  static auto ordered(const xsimd::batch<T>& x) {
    constexpr bool halves = std::is_same_v<T, std::uint32_t> && sizeof(x) == 32;
    if constexpr (!halves) return x;
    else return xsimd::bitwise_cast<xsimd::batch<std::int32_t>>(x ^ xsimd::batch<T>(0x80000000U));
  }

  /// to(i) = the operation on a(i), b(i) and c(i) for i < Count.
  template <op Code, dtype D, std::size_t Count, class To, class A, class B, class C>
  static void ternary(const To& to, const A& a, const B& b, const C& c) {
    const functions::threefry_vectors<vector<D>, Count> made(a, b, c);
    for (std::size_t i = 0; i < Count; ++i) to(i) = made.template word<Code>(i);
  }

  /// to(i) = erf_inv(x(i)), in float32, for i < Count.
  template <std::size_t Count, class To, class X>
  static void inverse_error_functions(const To& to, const X& x) {
    const auto made = functions::inverse_error_functions(functions::side_by_side<vector<f32>, Count>::of(x));
    for (std::size_t i = 0; i < Count; ++i) to(i) = made.part[i];
  }

  /// a where it wins or is NaN, else b (which is NaN where it is). xsimd 8.1 says that NaN != NaN is false on AVX, so
  /// that comparison is nowhere used.
  template <dtype D, class Mask>
  static vector<D> extremum(const Mask& wins, const vector<D>& a, const vector<D>& b) {
    if constexpr (is_floating(D)) return xsimd::select(wins || xsimd::isnan(a), a, b);
    else return xsimd::select(wins, a, b);
  }
};

template <class Widest>
template <dtype D>
auto vector_lanes<Widest>::error_function(vector<D> x) -> vector<D> {
  using batch = vector<D>;
  if constexpr (D == f32) return functions::erf(x);
  const batch last(storage_t<D>{6.5});
  return xsimd::erf(xsimd::select(xsimd::abs(x) > last, xsimd::copysign(last, x), x));
}

template <class Widest>
template <dtype D>
auto vector_lanes<Widest>::power(vector<D> a, vector<D> b) -> vector<D> {
  using batch = vector<D>;
  const batch zero(storage_t<D>{0});
  const batch one(storage_t<D>{1});
  const batch infinity(std::numeric_limits<storage_t<D>>::infinity());
  const batch size = xsimd::abs(a);
  const batch half = b * batch(storage_t<D>{0.5});
  const auto whole = xsimd::floor(b) == b;
  const auto odd = whole && xsimd::floor(half) != half;
  const auto below = xsimd::copysign(one, a) < zero;
  const batch magnitude = exponential<D>(b * logarithm<D>(size));
  const batch with_sign = xsimd::select(below && odd, negative<D>(magnitude), magnitude);
  const auto undefined = below && !whole && size > zero && size < infinity;
  const batch result = xsimd::select(undefined, batch(std::numeric_limits<storage_t<D>>::quiet_NaN()), with_sign);
  return xsimd::select(b == zero || a == one || (size == one && xsimd::abs(b) == infinity), one, result);
}

template <class Widest>
template <dtype D>
auto vector_lanes<Widest>::sine(vector<D> x) -> vector<D> {
  return xsimd::sin(x);
}

template <class Widest>
template <dtype D>
auto vector_lanes<Widest>::cosine(vector<D> x) -> vector<D> {
  return xsimd::cos(x);
}

template <class Widest>
template <dtype D>
auto vector_lanes<Widest>::log_of_one_plus(vector<D> x) -> vector<D> {
  return xsimd::select(x == vector<D>(storage_t<D>{0}), x, xsimd::log1p(x));
}

/// One element at a time, for conversions between sizes.
struct scalar_lanes {
  static constexpr std::int64_t width = 1;
  template <dtype D>
  using vector = storage_t<D>;

  template <dtype D>
  static storage_t<D> repeat(storage_t<D> x) {
    return x;
  }
  template <dtype D>
  static storage_t<D> load(const storage_t<D>* from) {
    return *from;
  }
  template <dtype D>
  static storage_t<D> load_strided(const storage_t<D>* from, std::int64_t) {
    return *from;
  }
  template <dtype D>
  static storage_t<D> count_from(std::int64_t first) {
    return static_cast<storage_t<D>>(first);
  }
  template <dtype D>
  static void store(storage_t<D>* to, storage_t<D> x) {
    *to = x;
  }
  template <dtype D>
  static storage_t<D> choose(bool mask, storage_t<D> a, storage_t<D> b) {
    return mask ? a : b;
  }
  template <dtype To, dtype From>
  static storage_t<To> convert(storage_t<From> x) {
    return convert_element<storage_t<To>>(x);
  }
};

#if defined(TESSERA_INSTANCE)

#define TESSERA_LANE_FUNCTIONS(T, D)                                                            \
  TESSERA_INSTANCE xsimd::batch<T> vector_lanes<T>::error_function<D>(xsimd::batch<T>);         \
  TESSERA_INSTANCE xsimd::batch<T> vector_lanes<T>::power<D>(xsimd::batch<T>, xsimd::batch<T>); \
  TESSERA_INSTANCE xsimd::batch<T> vector_lanes<T>::sine<D>(xsimd::batch<T>);                   \
  TESSERA_INSTANCE xsimd::batch<T> vector_lanes<T>::cosine<D>(xsimd::batch<T>);                 \
  TESSERA_INSTANCE xsimd::batch<T> vector_lanes<T>::log_of_one_plus<D>(xsimd::batch<T>);

TESSERA_LANE_FUNCTIONS(float, f32)
TESSERA_LANE_FUNCTIONS(double, f64)
#undef TESSERA_LANE_FUNCTIONS

#endif

template <int Bytes>
struct lanes_for : std::type_identity<vector_lanes<float>> {};
template <>
struct lanes_for<8> : std::type_identity<vector_lanes<double>> {};
template <>
struct lanes_for<-1> : std::type_identity<scalar_lanes> {};

/// The lanes for elements of 4 bytes (and bool, and of 16 bits), of 8 bytes (and bool), or (-1) of several sizes.
template <int Bytes>
using lanes_of_width = typename lanes_for<Bytes>::type;

}  // namespace tessera::kernels
