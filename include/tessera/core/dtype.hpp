// SPDX-License-Identifier: Apache-2.0
// Element types: their tags, names, sizes and the C++ types that store them.
#pragma once

#include <tessera/core/sixteen_bits.hpp>

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tessera {

/// The element type of a tensor.
enum class dtype : std::uint8_t { f32, f64, i32, u32, bool_, bf16, f16 };

inline constexpr dtype f32 = dtype::f32;
inline constexpr dtype f64 = dtype::f64;
inline constexpr dtype i32 = dtype::i32;
inline constexpr dtype u32 = dtype::u32;
inline constexpr dtype bool_ = dtype::bool_;
inline constexpr dtype bf16 = dtype::bf16;
inline constexpr dtype f16 = dtype::f16;

/// What the library knows of one element type.
struct dtype_info {
  std::string_view name;  ///< as printed in a type
  std::int64_t size;      ///< bytes an element
  bool floating;
};

inline constexpr dtype_info dtype_table[] = {{"float32", 4, true}, {"float64", 8, true}, {"int32", 4, false},
                                             {"uint32", 4, false}, {"bool", 1, false},   {"bfloat16", 2, true},
                                             {"float16", 2, true}};

/// The row of the table for `d`.
constexpr const dtype_info& info(dtype d) { return dtype_table[static_cast<int>(d)]; }

constexpr bool is_floating(dtype d) { return info(d).floating; }

/// Whether elements are floating-point numbers of 16 bits, whose arithmetic is done in float32 and rounded.
constexpr bool is_sixteen_bit(dtype d) { return d == dtype::bf16 || d == dtype::f16; }

/// What sums and products of such elements are kept in.
constexpr dtype accumulator(dtype d) { return is_sixteen_bit(d) ? dtype::f32 : d; }

template <dtype D>
struct storage_of;
template <>
struct storage_of<f32> : std::type_identity<float> {};
template <>
struct storage_of<f64> : std::type_identity<double> {};
template <>
struct storage_of<i32> : std::type_identity<std::int32_t> {};
template <>
struct storage_of<u32> : std::type_identity<std::uint32_t> {};
template <>
struct storage_of<bool_> : std::type_identity<bool> {};
template <>
struct storage_of<bf16> : std::type_identity<bfloat16> {};
template <>
struct storage_of<f16> : std::type_identity<float16> {};

/// The C++ type of one element: float, double, std::int32_t, std::uint32_t, bool, bfloat16, float16.
template <dtype D>
using storage_t = typename storage_of<D>::type;

template <class T>
struct dtype_of_storage;
template <>
struct dtype_of_storage<float> : std::integral_constant<dtype, f32> {};
template <>
struct dtype_of_storage<double> : std::integral_constant<dtype, f64> {};
template <>
struct dtype_of_storage<std::int32_t> : std::integral_constant<dtype, i32> {};
template <>
struct dtype_of_storage<std::uint32_t> : std::integral_constant<dtype, u32> {};
template <>
struct dtype_of_storage<bool> : std::integral_constant<dtype, bool_> {};
template <>
struct dtype_of_storage<bfloat16> : std::integral_constant<dtype, bf16> {};
template <>
struct dtype_of_storage<float16> : std::integral_constant<dtype, f16> {};

/// Whether a C++ type is the one of an element type.
template <class T>
concept DtypeStorage = requires {
  dtype_of_storage<std::remove_cv_t<T>>::value;
};

/// The element type that a C++ type stores.
template <class T>
inline constexpr dtype dtype_of = dtype_of_storage<std::remove_cv_t<T>>::value;

}  // namespace tessera
