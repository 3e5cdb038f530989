// SPDX-License-Identifier: Apache-2.0
// Functions of vectors where xsimd's own lack special values or digits, and those that are computed lane by lane.
#pragma once

#include <tessera/graph/op.hpp>
#include <tessera/kernels/arch/fma.hpp>
#include <tessera/kernels/arch/rotate.hpp>
#include <tessera/kernels/arch/xsimd.hpp>
#include <tessera/random/erf_inv.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <type_traits>

namespace tessera::kernels::functions {

using graph::op;

using floats = xsimd::batch<float>;
using integers = xsimd::batch<std::int32_t>;

/// e^r - 1 and n, where x = n ln 2 + r and |r| is at most ln(2) / 2. ln 2 is taken off in two parts, the first so short
/// that its product with n is exact; then r + r^2 q(r) with the polynomial that is nearest on that interval, off by
/// 2^-28.
struct reduced_exponential {
  floats rest, n;

  explicit reduced_exponential(const floats& x) {
    n = xsimd::nearbyint(x * floats(std::numbers::log2e_v<float>));
    const floats r = detail::fma(n, floats(-0x1.7f7d1cp-20f), detail::fma(n, floats(-0x1.62e4p-1f), x));
    floats q(0x1.6db4e8p-10f);
    for (float c : {0x1.123bdep-7f, 0x1.55545ep-5f, 0x1.55548ep-3f, 0.5f}) q = detail::fma(q, r, floats(c));
    rest = detail::fma(r * r, q, r);
  }
};

/// e^x as high + low, for x from -105 to 89.5.
struct exponential_parts {
  floats high, low;

  explicit exponential_parts(const floats& x) {
    const reduced_exponential e(x);
    const floats sum = floats(1.0f) + e.rest;
    high = detail::scaled(sum, e.n);
    low = detail::scaled(e.rest - (sum - floats(1.0f)), e.n);
  }
};

/// exp(x) within 1.1 units in the last place, subnormal results and overflow included. What is 0 is not computed, since
/// underflow takes long: hidden scores of attention are such.
inline floats exp(const floats& x) {
  const floats above(89.5f), zero(0.0f);
  const auto none = x < floats(-104.0f);
  const floats e = exponential_parts(xsimd::select(x > above, above, xsimd::select(none, zero, x))).high;
  return xsimd::select(none, zero, e);
}

/// The same for x up to 0.
inline floats exp_of_negative(const floats& x) {
  const floats zero(0.0f);
  const auto none = x < floats(-104.0f);
  return xsimd::select(none, zero, exponential_parts(xsimd::select(none, zero, x)).high);
}

/// 1 / (1 + exp(-x)) within 1.1 units (1.4 where nothing is fused): from exp(-|x|), so that nothing overflows; what the
/// quotient's rounding leaves is put right.
inline floats logistic(const floats& x) {
  const floats zero(0.0f), one(1.0f), last(-105.0f);
  const floats depth = -xsimd::abs(x);
  const exponential_parts e(xsimd::select(depth < last, last, depth));
  const auto negative = x < zero;
  const floats divisor = one + e.high;
  const floats lost = e.high - (divisor - one) + e.low;
  const floats dividend = xsimd::select(negative, e.high, one);
  const floats quotient = dividend / divisor;
  const floats rest =
      detail::fma(-quotient, divisor, dividend) - quotient * lost + xsimd::select(negative, e.low, zero);
  const floats inverse = xsimd::select(negative, one - quotient, quotient);
  return xsimd::select(xsimd::isnan(x), x, detail::fma(rest, inverse, quotient));
}

/// erf(x) within 1.3 units: x + x p(x^2) near 0; else 1 - exp(-x u(x)), where u is the polynomial nearest to
/// -log(erfc(x)) / x up to 4, beyond which erf is 1 in float32.
inline floats erf(const floats& x) {
  const floats size = xsimd::abs(x);
  const floats square = x * x;
  floats p(8.345227e-05f);
  for (float c : {-0.0008137438f, 0.0052006342f, -0.02685927f, 0.11283694f, -0.37612635f, 0.12837917f})
    p = detail::fma(p, square, floats(c));
  const floats near = detail::fma(p, x, x);
  const floats reach = xsimd::select(size > floats(4.0f), floats(4.0f), size);
  floats u(-2.320746e-06f);
  for (float c : {3.696682e-05f, -0.0002344458f, 0.0005720878f, 0.0016803024f, -0.021101756f, 0.10405315f, 0.63614583f,
                  1.1284558f})
    u = detail::fma(u, reach, floats(c));
  const floats far = xsimd::copysign(floats(1.0f) - exp(-u * reach), x);
  return xsimd::select(size < floats(0.92f), near, xsimd::select(xsimd::isnan(x), x, far));
}

/// exp(x) - 1, given exp(x), which is as good where x is large: xsimd's own overflows too early. -0 stays -0. Of
/// float32 within 1.7 units.
template <class T>
xsimd::batch<T> expm1(const xsimd::batch<T>& x, const xsimd::batch<T>& exponential) {
  using batch = xsimd::batch<T>;
  const auto large = x > batch(T{sizeof(T) == 4 ? 40 : 80});
  batch near;
  if constexpr (sizeof(T) == 4) {
    const batch last(T{-40});
    const reduced_exponential e(xsimd::select(large, batch(T{1}), xsimd::select(x < last, last, x)));
    const batch scale = detail::scaled(batch(T{1}), e.n);
    near = detail::fma(scale, e.rest, scale - batch(T{1}));
  } else {
    near = xsimd::expm1(xsimd::select(large, batch(T{1}), x));
  }
  return xsimd::select(x == batch(T{0}), x, xsimd::select(large, exponential, near));
}

/// 2^x. Near the ends of the range it is 2^(x - s) times 2^s: xsimd's own overflows too early and has no subnormals.
template <class T>
xsimd::batch<T> exp2(const xsimd::batch<T>& x) {
  using batch = xsimd::batch<T>;
  const batch zero(T{0});
  const batch step(T{sizeof(T) == 4 ? 64 : 512});
  const batch up(sizeof(T) == 4 ? static_cast<T>(0x1p64) : static_cast<T>(0x1p512));
  const batch down(sizeof(T) == 4 ? static_cast<T>(0x1p-64) : static_cast<T>(0x1p-512));
  const batch end(T{sizeof(T) == 4 ? 100 : 900});
  const batch shift = xsimd::select(x > end, step, xsimd::select(x < -end, -step, zero));
  const batch scale = xsimd::select(x > end, up, xsimd::select(x < -end, down, batch(T{1})));
  return xsimd::exp2(x - shift) * scale;
}

/// log2(x); subnormal float64 numbers, which xsimd's own takes for others, are scaled first.
template <class T>
xsimd::batch<T> log2(const xsimd::batch<T>& x) {
  using batch = xsimd::batch<T>;
  if constexpr (sizeof(T) == 4) {
    return xsimd::log2(x);
  } else {
    const auto tiny = x < batch(std::numeric_limits<T>::min());
    return xsimd::log2(xsimd::select(tiny, x * batch(0x1p54), x)) - xsimd::select(tiny, batch(54.0), batch(0.0));
  }
}

/// The remainder with the sign of b, and the quotient that goes with it, as Python and NumPy have them; of integers
/// both are 0 where b is 0, and the quotient that no integer holds wraps around.
template <class T>
T remainder(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const T rest = std::fmod(a, b);
    if (rest == 0) return std::copysign(rest, b);
    return (b < 0) != (rest < 0) ? rest + b : rest;
  } else if constexpr (std::is_unsigned_v<T>) {
    return b == 0 ? 0 : a % b;
  } else {
    if (b == 0 || b == -1) return 0;
    const T rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
}
template <class T>
T floor_quotient(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (b == 0) return a / b;
    const T rest = std::fmod(a, b);
    T quotient = (a - rest) / b;
    if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(T{0}, a / b);
    const T below = std::floor(quotient);
    return quotient - below > T{0.5} ? below + 1 : below;
  } else if constexpr (std::is_unsigned_v<T>) {
    return b == 0 ? 0 : a / b;
  } else {
    if (b == 0) return 0;
    if (b == -1) return static_cast<T>(0U - static_cast<std::uint32_t>(a));
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  }
}

/// Shifts by 32 or more, or by less than 0, leave nothing but the sign.
template <class T>
T shift_left(T a, T by) {
  const auto count = static_cast<std::uint32_t>(by);
  return count > 31 ? 0 : static_cast<T>(static_cast<std::uint32_t>(a) << count);
}
template <class T>
T shift_right(T a, T by) {
  const auto count = static_cast<std::uint32_t>(by);
  return count > 31 ? static_cast<T>(a < 0 ? -1 : 0) : static_cast<T>(a >> count);
}

template <op Code, class T>
T of_element(T a, T b) {
  if constexpr (Code == op::atan2) return std::atan2(a, b);
  else if constexpr (Code == op::mod) return remainder(a, b);
  else if constexpr (Code == op::floor_div) return floor_quotient(a, b);
  else if constexpr (Code == op::shift_left) return shift_left(a, b);
  else return shift_right(a, b);
}

/// erf_inv where it is defined, infinite at the ends, else NaN.
template <class T>
T inverse_error_function(T x) {
  const T size = std::abs(x);
  if (size < 1) return random::detail::erf_inv_inside(x);
  return size == 1 ? std::copysign(std::numeric_limits<T>::infinity(), x) : std::numeric_limits<T>::quiet_NaN();
}

/// f(x), one lane after the other.
template <class T, class F>
xsimd::batch<T> each_lane(const xsimd::batch<T>& x, F f) {
  constexpr std::size_t width = xsimd::batch<T>::size;
  T lanes[width];
  x.store_unaligned(lanes);
  for (T& lane : lanes) lane = f(lane);
  return xsimd::batch<T>::load_unaligned(lanes);
}

/// random::threefry2x32 with the keys (k0(i), k1(i)) and the counters (0, lo(i)), vectors each: they go through each
/// round together, because one alone would wait for each of its own instructions.
template <class Vector, std::size_t Count>
struct threefry_vectors {
  Vector x0[Count];
  Vector x1[Count];

  template <class K0, class K1, class Counter>
  threefry_vectors(const K0& k0, const K1& k1, const Counter& lo) {
    for (std::size_t i = 0; i < Count; ++i) x0[i] = k0(i), x1[i] = lo(i) + k1(i);
    const auto k2 = [&](std::size_t i) { return k0(i) ^ k1(i) ^ Vector(0x1BD11BDAU); };
    even_rounds(), inject(k1, k2, 1);
    odd_rounds(), inject(k2, k0, 2);
    even_rounds(), inject(k0, k1, 3);
    odd_rounds(), inject(k1, k2, 4);
    even_rounds(), inject(k2, k0, 5);
  }

  template <op Word>
  Vector word(std::size_t i) const {
    if constexpr (Word == op::threefry_hi) return x0[i];
    else if constexpr (Word == op::threefry_lo) return x1[i];
    else return x0[i] ^ x1[i];
  }

 private:
  void even_rounds() { round<13>(), round<15>(), round<26>(), round<6>(); }
  void odd_rounds() { round<17>(), round<29>(), round<16>(), round<24>(); }
  template <int By>
  void round() {
    for (std::size_t i = 0; i < Count; ++i) x0[i] = x0[i] + x1[i];
    for (std::size_t i = 0; i < Count; ++i) x1[i] = detail::rotate_left<By>(x1[i]) ^ x0[i];
  }
  template <class A, class B>
  void inject(const A& a, const B& b, std::uint32_t step) {
    for (std::size_t i = 0; i < Count; ++i) x0[i] = x0[i] + a(i), x1[i] = x1[i] + (b(i) + Vector(step));
  }
};

/// Count vectors that go through each operation together: one alone would wait for each of its own instructions.
template <class Vector, std::size_t Count>
struct side_by_side {
  Vector part[Count];

  side_by_side() = default;
  template <class Number>
  requires std::is_arithmetic_v<Number>
  explicit side_by_side(Number x) {
    for (Vector& each : part) each = Vector(x);
  }

  /// f(0), f(1), ...
  template <class F>
  static side_by_side of(const F& f) {
    side_by_side made;
    for (std::size_t i = 0; i < Count; ++i) made.part[i] = f(i);
    return made;
  }
  friend side_by_side operator+(const side_by_side& a, const side_by_side& b) {
    return of([&](std::size_t i) { return a.part[i] + b.part[i]; });
  }
  friend side_by_side operator-(const side_by_side& a, const side_by_side& b) {
    return of([&](std::size_t i) { return a.part[i] - b.part[i]; });
  }
  friend side_by_side operator*(const side_by_side& a, const side_by_side& b) {
    return of([&](std::size_t i) { return a.part[i] * b.part[i]; });
  }
  friend side_by_side operator/(const side_by_side& a, const side_by_side& b) {
    return of([&](std::size_t i) { return a.part[i] / b.part[i]; });
  }
  friend side_by_side operator-(const side_by_side& a) {
    return of([&](std::size_t i) { return -a.part[i]; });
  }
  friend side_by_side operator<<(const side_by_side& a, int by) {
    return of([&](std::size_t i) { return a.part[i] << by; });
  }
  friend side_by_side operator>>(const side_by_side& a, int by) {
    return of([&](std::size_t i) { return a.part[i] >> by; });
  }
};

template <std::size_t Count>
struct vectors_of_floats {
  using number = side_by_side<floats, Count>;
  using integer = side_by_side<integers, Count>;

  static integer bits(const number& x) {
    return integer::of([&](std::size_t i) { return xsimd::bitwise_cast<integers>(x.part[i]); });
  }
  static number from_bits(const integer& x) {
    return number::of([&](std::size_t i) { return xsimd::bitwise_cast<floats>(x.part[i]); });
  }
  static number convert(const integer& x) {
    return number::of([&](std::size_t i) { return xsimd::to_float(x.part[i]); });
  }
  static floats root(const floats& x) { return xsimd::sqrt(x); }
  template <class F>
  static number choose(const number& w, float limit, const number& below, const F& above) {
    return number::of([&](std::size_t i) -> floats {
      const auto is_below = w.part[i] < floats(limit);
      if (xsimd::all(is_below)) [[likely]]
        return below.part[i];
      return xsimd::select(is_below, below.part[i], above(w.part[i]));
    });
  }
};

/// The bits of inverse_error_function of each lane.
template <std::size_t Count>
side_by_side<floats, Count> inverse_error_functions(const side_by_side<floats, Count>& x) {
  auto y = random::detail::erf_inv_of_floats<vectors_of_floats<Count>>(x);
  for (std::size_t i = 0; i < Count; ++i) {
    const floats size = xsimd::abs(x.part[i]);
    const auto inside = size < floats(1);
    if (xsimd::all(inside)) [[likely]]
      continue;
    const floats outside = xsimd::select(size == floats(1), floats(std::numeric_limits<float>::infinity()),
                                         floats(std::numeric_limits<float>::quiet_NaN()));
    y.part[i] = xsimd::select(inside, y.part[i], xsimd::copysign(outside, x.part[i]));
  }
  return y;
}
inline floats inverse_error_functions(const floats& x) {
  return inverse_error_functions(side_by_side<floats, 1>::of([&](std::size_t) { return x; })).part[0];
}
inline xsimd::batch<double> inverse_error_functions(const xsimd::batch<double>& x) {
  return each_lane(x, [](double lane) { return inverse_error_function(lane); });
}

/// f(a, b), one lane after the other.
template <op Code, class T>
xsimd::batch<T> lane_by_lane(const xsimd::batch<T>& a, const xsimd::batch<T>& b) {
  constexpr std::size_t width = xsimd::batch<T>::size;
  T left[width];
  T right[width];
  a.store_unaligned(left);
  b.store_unaligned(right);
  for (std::size_t i = 0; i < width; ++i) left[i] = of_element<Code>(left[i], right[i]);
  return xsimd::batch<T>::load_unaligned(left);
}

}  // namespace tessera::kernels::functions
