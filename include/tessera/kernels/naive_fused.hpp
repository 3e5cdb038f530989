// SPDX-License-Identifier: Apache-2.0
// The naive twin of the fused kernel: the same instruction lists, interpreted element by element.
#pragma once

#include <tessera/kernels/fused.hpp>
#include <tessera/random/threefry.hpp>

#include <cmath>
#include <cstring>
#include <span>
#include <vector>

namespace tessera::kernels::naive {

/// `x` as an element of type `d` keeps it.
inline double as_element(double x, dtype d) {
  switch (d) {
    case dtype::f32: return static_cast<double>(static_cast<float>(x));
    case dtype::i32: return static_cast<double>(static_cast<std::int32_t>(static_cast<std::int64_t>(x)));
    case dtype::u32: return static_cast<double>(static_cast<std::uint32_t>(static_cast<std::int64_t>(x)));
    case dtype::bool_: return x != 0 ? 1 : 0;
    case dtype::bf16: return static_cast<double>(float{bfloat16(x)});
    case dtype::f16: return static_cast<double>(float{float16(x)});
    default: return x;
  }
}

inline double read_element(const void* from, std::int64_t i, dtype d) {
  switch (d) {
    case dtype::f32: return static_cast<double>(static_cast<const float*>(from)[i]);
    case dtype::f64: return static_cast<const double*>(from)[i];
    case dtype::i32: return static_cast<const std::int32_t*>(from)[i];
    case dtype::u32: return static_cast<const std::uint32_t*>(from)[i];
    case dtype::bf16: return static_cast<double>(float{static_cast<const bfloat16*>(from)[i]});
    case dtype::f16: return static_cast<double>(float{static_cast<const float16*>(from)[i]});
    default: return static_cast<const bool*>(from)[i] ? 1 : 0;
  }
}

inline void write_element(void* to, std::int64_t i, dtype d, double x) {
  switch (d) {
    case dtype::f32: static_cast<float*>(to)[i] = static_cast<float>(x); return;
    case dtype::f64: static_cast<double*>(to)[i] = x; return;
    case dtype::i32: static_cast<std::int32_t*>(to)[i] = static_cast<std::int32_t>(x); return;
    case dtype::u32: static_cast<std::uint32_t*>(to)[i] = static_cast<std::uint32_t>(x); return;
    case dtype::bf16: static_cast<bfloat16*>(to)[i] = bfloat16(x); return;
    case dtype::f16: static_cast<float16*>(to)[i] = float16(x); return;
    default: static_cast<bool*>(to)[i] = x != 0; return;
  }
}

/// `x` of type `from` converted: what does not fit goes to the nearest end if it is floating-point, else it wraps
/// around.
inline double convert_number(double x, dtype from, dtype to) {
  if (!is_floating(from)) return as_element(x, to);
  switch (to) {
    case dtype::i32: return convert_element<std::int32_t>(x);
    case dtype::u32: return convert_element<std::uint32_t>(x);
    default: return as_element(x, to);
  }
}

inline double unary(graph::op code, double x) {
  using graph::op;
  switch (code) {
    case op::neg: return -x;
    case op::abs: return std::abs(x);
    case op::sign: return x > 0 ? 1 : x < 0 ? -1 : x;
    case op::square: return x * x;
    case op::sqrt: return std::sqrt(x);
    case op::rsqrt: return 1 / std::sqrt(x);
    case op::exp: return std::exp(x);
    case op::log: return std::log(x);
    case op::log1p: return std::log1p(x);
    case op::tanh: return std::tanh(x);
    case op::logistic: return 1 / (1 + std::exp(-x));
    case op::gelu: return gelu(x);
    case op::gelu_slope: return gelu_slope(x);
    case op::sin: return std::sin(x);
    case op::cos: return std::cos(x);
    case op::erf: return std::erf(x);
    case op::relu: return x <= 0 ? 0 : x;
    case op::logical_not: return x == 0 ? 1 : 0;
    case op::expm1: return std::expm1(x);
    case op::exp2: return std::exp2(x);
    case op::log2: return std::log2(x);
    case op::tan: return std::tan(x);
    case op::asin: return std::asin(x);
    case op::acos: return std::acos(x);
    case op::atan: return std::atan(x);
    case op::sinh: return std::sinh(x);
    case op::cosh: return std::cosh(x);
    case op::floor: return std::floor(x);
    case op::ceil: return std::ceil(x);
    case op::round: return std::nearbyint(x);
    case op::trunc: return std::trunc(x);
    case op::bit_not: return static_cast<double>(~static_cast<std::int64_t>(x));
    default: return x;
  }
}

inline double binary(graph::op code, double a, double b) {
  using graph::op;
  switch (code) {
    case op::add: return a + b;
    case op::sub: return a - b;
    case op::mul: return a * b;
    case op::div: return a / b;
    case op::pow: return std::pow(a, b);
    case op::atan2: return std::atan2(a, b);
    case op::mod: return a - b * std::floor(a / b);
    case op::floor_div: return std::floor(a / b);
    case op::max: return a > b || a != a ? a : b;
    case op::min: return a < b || a != a ? a : b;
    case op::eq: return a == b;
    case op::ne: return a != b;
    case op::lt: return a < b;
    case op::le: return a <= b;
    case op::gt: return a > b;
    case op::ge: return a >= b;
    case op::logical_and: return a != 0 && b != 0;
    default: return a != 0 || b != 0;
  }
}

/// a * b as an element of type `d`; products of integers wrap around and may need more digits than a double has.
inline double product(double a, double b, dtype d) {
  if (is_floating(d)) return as_element(a * b, d);
  const auto wrapped = static_cast<std::uint64_t>(static_cast<std::int64_t>(a)) *
                       static_cast<std::uint64_t>(static_cast<std::int64_t>(b));
  return d == dtype::u32 ? static_cast<double>(static_cast<std::uint32_t>(wrapped))
                         : static_cast<double>(static_cast<std::int32_t>(wrapped));
}

/// Operations on whole numbers: quotients and remainders towards minus infinity, 0 where the divisor is 0; bits; shifts
/// by 32 or more, or by less than 0, leave nothing but the sign.
inline double whole_number(graph::op code, double x, double y, dtype d) {
  using graph::op;
  const auto a = static_cast<std::int64_t>(x);
  const auto b = static_cast<std::int64_t>(y);
  const bool out = b < 0 || b > 31;
  const std::int64_t quotient = b == 0 ? 0 : a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
  const auto result = [&]() -> std::int64_t {
    switch (code) {
      case op::floor_div: return quotient;
      case op::mod: return b == 0 ? 0 : a - quotient * b;
      case op::bit_and: return a & b;
      case op::bit_or: return a | b;
      case op::bit_xor: return a ^ b;
      case op::shift_left: return out ? 0 : a * (std::int64_t{1} << b);
      default: return out ? (a < 0 ? -1 : 0) : a >> b;
    }
  };
  return as_element(static_cast<double>(result()), d);
}

/// The words of the hash, as whole numbers.
inline double threefry(graph::op code, double k0, double k1, double counter) {
  const auto word = [](double x) { return static_cast<std::uint32_t>(x); };
  const random::key made = random::threefry2x32({word(k0), word(k1)}, 0, word(counter));
  return code == graph::op::threefry_hi ? made.hi : code == graph::op::threefry_lo ? made.lo : made.hi ^ made.lo;
}

/// In float32 as it is computed there, since random numbers are defined by it.
inline double inverse_error_function(double x, dtype d) {
  if (d == dtype::f64) return functions::inverse_error_function(x);
  return as_element(static_cast<double>(functions::inverse_error_function(static_cast<float>(x))), d);
}

constexpr bool is_whole_number(graph::op code, dtype d) {
  using graph::op;
  return code == op::bit_and || code == op::bit_or || code == op::bit_xor || code == op::shift_left ||
         code == op::shift_right || ((code == op::mod || code == op::floor_div) && !is_floating(d));
}

/// Functions as the C library has them, in float64.
struct library_functions {
  static double unary(graph::op code, double x, dtype) { return naive::unary(code, x); }
  static double binary(graph::op code, double a, double b, dtype) { return naive::binary(code, a, b); }
};

/// Runs an instruction list (see `transform::lowering::fused_step`) over elements [first, last) of a call, in row-major
/// order. Each instruction is
/// computed in float64 and rounded to its type, which for + - * / and sqrt is the same as computing in the type;
/// transcendental functions of float32 are rounded twice.
template <class Functions = library_functions>
void fused(std::span<const graph::word> words, const fused_call& call, std::int64_t first, std::int64_t last) {
  const auto word = [&](int i) { return words[static_cast<std::size_t>(i)].value; };
  const int sources = word(1);
  const int instructions = word(2);
  const int results = word(3);
  const int first_result = graph::result_word(sources, instructions, 0);
  std::vector<double> registers(static_cast<std::size_t>(sources + instructions));
  const auto reg = [&](int i) -> double& { return registers[static_cast<std::size_t>(i)]; };
  for (std::int64_t index = first; index < last; ++index) {
    const auto offset = [&](int array) {
      std::int64_t rest = index;
      std::int64_t sum = 0;
      for (int d = call.rank - 1; d >= 0; --d) {
        sum += rest % call.extents[d] * call.strides[array][d];
        rest /= call.extents[d];
      }
      return sum;
    };
    for (int i = 0; i < sources; ++i) {
      const auto mode = static_cast<graph::source_mode>(word(graph::source_word(i) + 1));
      const bool counts = mode == graph::source_mode::count || mode == graph::source_mode::count_repeated;
      reg(i) = counts ? static_cast<double>(call.base[i] + offset(i))
                      : read_element(call.data[i], offset(i), static_cast<dtype>(word(graph::source_word(i))));
    }
    for (int i = 0; i < instructions; ++i) {
      const int at = graph::instruction_word(sources, i);
      const auto code = static_cast<graph::op>(word(at));
      const auto type = static_cast<dtype>(word(at + 1));
      double& to = reg(sources + i);
      if (code == graph::op::select) to = reg(word(at + 3)) != 0 ? reg(word(at + 4)) : reg(word(at + 5));
      else if (code == graph::op::convert)
        to = convert_number(reg(word(at + 3)), static_cast<dtype>(word(at + 2)), type);
      else if (code == graph::op::mul) to = product(reg(word(at + 3)), reg(word(at + 4)), type);
      else if (code == graph::op::square) to = product(reg(word(at + 3)), reg(word(at + 3)), type);
      else if (about(code).operands == 3) to = threefry(code, reg(word(at + 3)), reg(word(at + 4)), reg(word(at + 5)));
      else if (code == graph::op::erf_inv) to = inverse_error_function(reg(word(at + 3)), type);
      else if (is_whole_number(code, type)) to = whole_number(code, reg(word(at + 3)), reg(word(at + 4)), type);
      else if (about(code).operands == 1) to = as_element(Functions::unary(code, reg(word(at + 3)), type), type);
      else to = as_element(Functions::binary(code, reg(word(at + 3)), reg(word(at + 4)), type), type);
    }
    for (int i = 0; i < results; ++i) {
      const int at = first_result + 2 * i;
      write_element(call.data[sources + i], offset(sources + i), static_cast<dtype>(word(at)), reg(word(at + 1)));
    }
  }
}

/// The same over all elements.
template <class Functions = library_functions>
void fused(std::span<const graph::word> words, const fused_call& call) {
  fused<Functions>(words, call, 0, call.rows() * call.columns());
}

}  // namespace tessera::kernels::naive
