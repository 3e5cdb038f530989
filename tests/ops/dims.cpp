// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/dims.hpp>

#include "ops/support.hpp"

TEST_CASE("New dimensions are uncut, those of extent 1 vanish with their cut, the others keep theirs") {
  STATIC_REQUIRE(TYPE(ts::expand_dims<1>(by_xy)) == "float32[4@x,1,8@y]");
  STATIC_REQUIRE(TYPE(ts::expand_dims<0, -1>(by_xy)) == "float32[1,4@x,8@y,1]");
  STATIC_REQUIRE(TYPE(ts::expand_dims<0>(scalar)) == "float32[1]");
  STATIC_REQUIRE(TYPE(ts::squeeze<1>(ts::expand_dims<1>(by_xy))) == "float32[4@x,8@y]");
  STATIC_REQUIRE(TYPE(ts::squeeze(ts::expand_dims<0, 2>(by_x))) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(ts::squeeze<>(by_x)) == "float32[4@x,8]");
}

TEST_CASE("Dimensions change places with their cuts") {
  STATIC_REQUIRE(TYPE(ts::moveaxis<0, -1>(ts::expand_dims<2>(by_xy))) == "float32[8@y,1,4@x]");
  STATIC_REQUIRE(TYPE(ts::moveaxis<-1, 0>(ts::expand_dims<2>(by_xy))) == "float32[1,4@x,8@y]");
  STATIC_REQUIRE(TYPE(ts::swapaxes<0, 1>(by_xy)) == "float32[8@y,4@x]");
  STATIC_REQUIRE(TYPE(ts::swapaxes<1, 1>(by_xy)) == "float32[4@x,8@y]");
}

TEST_CASE("A dimension that is not there, is named twice or is longer than 1 has no type") {
  STATIC_REQUIRE(fault<ts::ops::expand_rule<3>, decltype(by_x)> == message::shape_no_dimension);
  STATIC_REQUIRE(fault<ts::ops::expand_rule<0, -4>, decltype(by_x)> == message::shape_dimension_twice);
  STATIC_REQUIRE(fault<ts::ops::expand_rule<0, 1, 2, 3, 4, 5, 6>, decltype(by_x)> == message::shape_rank);
  STATIC_REQUIRE(fault<ts::ops::squeeze_rule<0>, decltype(by_x)> == message::squeeze_extent);
  STATIC_REQUIRE(fault<ts::ops::squeeze_rule<2>, decltype(by_x)> == message::shape_no_dimension);
  STATIC_REQUIRE(fault<ts::ops::permute_rule<&ts::ops::moved, 0, 2>, decltype(by_x)> == message::shape_no_dimension);
}
