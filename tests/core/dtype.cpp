// SPDX-License-Identifier: Apache-2.0
#include <tessera/core/dtype.hpp>

#include <catch2/catch.hpp>

#include <cstdint>
#include <type_traits>

namespace ts = tessera;

TEST_CASE("A dtype knows its printed name, its bytes and whether it is floating-point") {
  STATIC_REQUIRE(ts::info(ts::f32).name == "float32" && ts::info(ts::f64).name == "float64");
  STATIC_REQUIRE(ts::info(ts::i32).name == "int32" && ts::info(ts::u32).name == "uint32");
  STATIC_REQUIRE(ts::info(ts::bool_).name == "bool");
  STATIC_REQUIRE(ts::info(ts::bf16).name == "bfloat16" && ts::info(ts::f16).name == "float16");
  STATIC_REQUIRE(ts::is_floating(ts::f32) && ts::is_floating(ts::f64) && ts::is_floating(ts::bf16) &&
                 ts::is_floating(ts::f16));
  STATIC_REQUIRE(!ts::is_floating(ts::i32) && !ts::is_floating(ts::u32) && !ts::is_floating(ts::bool_));
}

template <ts::dtype D>
constexpr bool stored_in_its_bytes = sizeof(ts::storage_t<D>) == ts::info(D).size;

TEST_CASE("The C++ type of an element has the bytes of its dtype, and leads back to it") {
  STATIC_REQUIRE(stored_in_its_bytes<ts::f32> && stored_in_its_bytes<ts::f64> && stored_in_its_bytes<ts::i32> &&
                 stored_in_its_bytes<ts::u32> && stored_in_its_bytes<ts::bool_> && stored_in_its_bytes<ts::bf16> &&
                 stored_in_its_bytes<ts::f16>);
  STATIC_REQUIRE(ts::dtype_of<float> == ts::f32 && ts::dtype_of<double> == ts::f64 &&
                 ts::dtype_of<std::int32_t> == ts::i32 && ts::dtype_of<std::uint32_t> == ts::u32 &&
                 ts::dtype_of<bool> == ts::bool_);
  STATIC_REQUIRE(ts::dtype_of<const float> == ts::f32);
  STATIC_REQUIRE(std::is_same_v<ts::storage_t<ts::f32>, float> && std::is_same_v<ts::storage_t<ts::bool_>, bool>);
}
