// SPDX-License-Identifier: Apache-2.0
// The inverse error function, by the polynomials that JAX's normal numbers are defined with.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <tessera/core/error.hpp>
#include <tessera/core/number_text.hpp>

namespace tessera::random {

namespace detail {

/// For numbers of type Number, which are of type T or vectors of them.
template <class Number, class T, std::size_t N>
constexpr Number horner(const std::array<T, N>& coefficients, const Number& x) {
  Number p(coefficients[0]);
  for (std::size_t i = 1; i < N; ++i) p = Number(coefficients[i]) + p * x;
  return p;
}

inline constexpr std::array<float, 9> erf_inv_f32_centre{2.81022636e-08F,  3.43273939e-07F, -3.5233877e-06F,
                                                         -4.39150654e-06F, 0.00021858087F,  -0.00125372503F,
                                                         -0.00417768164F,  0.246640727F,    1.50140941F};
inline constexpr std::array<float, 9> erf_inv_f32_tail{-0.000200214257F, 0.000100950558F, 0.00134934322F,
                                                       -0.00367342844F,  0.00573950773F,  -0.0076224613F,
                                                       0.00943887047F,   1.00167406F,     2.83297682F};
inline constexpr std::array<double, 23> erf_inv_f64_centre{
    -3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,  1.115787767802518096e-17,
    -1.333171662854620906e-16,  2.0972767875968561637e-17,  6.6376381343583238325e-15,  -4.0545662729752068639e-14,
    -8.1519341976054721522e-14, 2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
    1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
    -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352,   -0.00074070253416626697512,
    -0.0060336708714301490533,  0.24015818242558961693,     1.6536545626831027356};
inline constexpr std::array<double, 19> erf_inv_f64_middle{
    2.2137376921775787049e-09,  9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
    1.5027403968909827627e-06,  -4.013867526981545969e-06, 2.9234449089955446044e-06,  1.2475304481671778723e-05,
    -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05,  -0.0003550375203628474796,
    0.00095328937973738049703,  -0.0016882755560235047313, 0.0024914420961078508066,   -0.0037512085075692412107,
    0.005370914553590063617,    1.0052589676941592334,     3.0838856104922207635};
inline constexpr std::array<double, 17> erf_inv_f64_tail{
    -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,  -3.7894654401267369937e-09,
    7.6157012080783393804e-09,  -1.4960026627149240478e-08, 2.9147953450901080826e-08,  -6.7711997758452339498e-08,
    2.2900482228026654717e-07,  -9.9298272942317002539e-07, 4.5260625972231537039e-06,  -1.9681778105531670567e-05,
    7.5995277030017761139e-05,  -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977,
    4.8499064014085844221};

inline constexpr std::array<float, 9> log_f32{7.0376836292e-2F,  -1.1514610310e-1F, 1.1676998740e-1F,
                                              -1.2420140846e-1F, 1.4249322787e-1F,  -1.6668057665e-1F,
                                              2.0000714765e-1F,  -2.4999993993e-1F, 3.3333331174e-1F};

/// What differs between single numbers and the vectors of kernels::functions, whose bits are to be the same.
struct single_floats {
  using number = float;
  using integer = std::int32_t;

  static integer bits(number x) { return std::bit_cast<integer>(x); }
  static number from_bits(integer x) { return std::bit_cast<number>(x); }
  static number convert(integer x) { return static_cast<number>(x); }
  static number root(number x) { return std::sqrt(x); }
  /// `below` where w < limit, else above(w), which is seldom needed.
  template <class F>
  static number choose(number w, float limit, number below, const F& above) {
    return w < limit ? below : above(w);
  }
};

/// log(1 + t) for t in (-1, 0], right to one unit in the last place: 1 + t = 2^e m with m in [sqrt(1/2), sqrt 2), and
/// what the sum has lost. Source of the polynomial: S. Moshier, Cephes.
template <class Floats>
typename Floats::number log_of_one_plus(const typename Floats::number& t) {
  using number = typename Floats::number;
  using integer = typename Floats::integer;
  const number u = number(1.0F) + t;
  const integer e = (Floats::bits(u) - integer(0x3f3504f3)) >> 23;
  const number f = Floats::from_bits(Floats::bits(u) - (e << 23)) - number(1.0F);
  const number power = Floats::convert(e), square = f * f;
  const number tail = f * square * horner(log_f32, f) - number(0.5F) * square;
  const number lost = (t - (u - number(1.0F))) / u;
  return power * number(0x1.62ep-1F) + (f + (tail + (lost + power * number(0x1.0bfbe8p-15F))));
}

/// erf_inv for |x| < 1, unchecked.
template <class Floats>
typename Floats::number erf_inv_of_floats(const typename Floats::number& x) {
  using number = typename Floats::number;
  const number w = -log_of_one_plus<Floats>(-(x * x));
  const number centre = horner(erf_inv_f32_centre, w - number(2.5F));
  return x * Floats::choose(w, 5.0F, centre, [](const auto& far) {
           using part = std::remove_cvref_t<decltype(far)>;
           return horner(erf_inv_f32_tail, part(Floats::root(far) - part(3.0F)));
         });
}

inline float erf_inv_inside(float x) { return erf_inv_of_floats<single_floats>(x); }

inline double erf_inv_inside(double x) {
  const double w = -std::log1p(-x * x);
  if (w < 6.25) return x * horner(erf_inv_f64_centre, w - 3.125);
  if (w < 16.0) return x * horner(erf_inv_f64_middle, std::sqrt(w) - 3.25);
  return x * horner(erf_inv_f64_tail, std::sqrt(w) - 5.0);
}

}  // namespace detail

/// y with erf(y) = x, for x in [-1, 1]; plus or minus infinity at the ends. Anything else, NaN too, raises value_error.
/// A polynomial in w = -log(1 - x^2) or its root. Float is right to 1e-6 relative, less where x^2 rounds close to 1, as
/// there 1 - x^2 has few digits left; double is right to a few units in the last place.
/// Source: M. Giles, "Approximating the erfinv function", GPU Computing Gems 2 (2011), the coefficients of JAX.
template <std::floating_point T>
T erf_inv(T x) {
  if (!(std::abs(x) <= 1)) throw value_error("random::erf_inv: " + number_text(x) + " is outside [-1, 1]");
  if (std::abs(x) == 1) return std::copysign(std::numeric_limits<T>::infinity(), x);
  return detail::erf_inv_inside(x);
}

}  // namespace tessera::random
