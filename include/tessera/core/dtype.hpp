// SPDX-License-Identifier: Apache-2.0
// Element types: their tags, names, sizes and the C++ types that store them.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tessera {

/// The element type of a tensor. The 16-bit types are named here and have no arithmetic yet.
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
struct storage_of<bf16> : std::type_identity<std::uint16_t> {};
template <>
struct storage_of<f16> : std::type_identity<std::uint16_t> {};

/// The C++ type of one element: float, double, std::int32_t, std::uint32_t, bool; 16-bit
/// types are kept as their bits.
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

/// Whether a C++ type is the one of an element type.
template <class T>
concept DtypeStorage = requires {
  dtype_of_storage<std::remove_cv_t<T>>::value;
};

/// The element type that a C++ type stores.
template <class T>
inline constexpr dtype dtype_of = dtype_of_storage<std::remove_cv_t<T>>::value;

}  // namespace tessera
