// SPDX-License-Identifier: Apache-2.0
#include <tessera/core/partition_spec.hpp>
#include <tessera/runtime/tensor.hpp>

#include <catch2/catch.hpp>

#include <concepts>

namespace ts = tessera;
using ts::axes, ts::none, ts::P;

TEST_CASE("A spec is normalised: trailing nones are implied") {
  STATIC_REQUIRE(std::same_as<P<"data">, P<"data", none>>);
  STATIC_REQUIRE(std::same_as<P<"data">, P<"data", none, none, none>>);
  STATIC_REQUIRE(std::same_as<P<>, P<none, none>>);
  STATIC_REQUIRE(!std::same_as<P<"data">, P<none, "data">>);
  STATIC_REQUIRE(P<none, "data", none>::rank == 2 && P<>::rank == 0);
}

TEST_CASE("One axis is one spelling, alone or as a list; the order of several counts") {
  STATIC_REQUIRE(std::same_as<P<axes<"data">>, P<"data">>);
  STATIC_REQUIRE(std::same_as<P<axes<>>, P<none>>);
  STATIC_REQUIRE(!std::same_as<P<axes<"data", "model">>, P<axes<"model", "data">>>);
  STATIC_REQUIRE(!std::same_as<P<axes<"data", "model">>, P<"data", "model">>);
  STATIC_REQUIRE(std::same_as<P<axes<"data", "model">>, ts::partition_spec<ts::cut<"data", "model">>>);
}

TEST_CASE("A spec reads in a type as its axes") {
  STATIC_REQUIRE(
      std::same_as<P<"data", none, "model">, ts::partition_spec<ts::cut<"data">, ts::cut<>, ts::cut<"model">>>);
  STATIC_REQUIRE(std::same_as<decltype(ts::out_sharding<P<"data">>)::spec, P<"data">>);
}

TEST_CASE("One dimension may be cut by every axis a mesh can have") {
  using all = P<axes<"a", "b", "c", "d", "e", "f", "g", "h">>;
  STATIC_REQUIRE(std::same_as<all, ts::partition_spec<ts::cut<"a", "b", "c", "d", "e", "f", "g", "h">>>);
}

template <class T>
constexpr auto cut_in_a_template(T) {
  return ts::tensor<ts::f32, ts::shape<8, 8>, ts::P<ts::axes<"data", "model">>,
                    ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>>::type;
}

TEST_CASE("A spec of several axes on one dimension may be written inside a template") {
  STATIC_REQUIRE(ts::axis_count(cut_in_a_template(0).dims[0].axes) == 2);
}
