// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/collectives.hpp>
#include <tessera/types.hpp>

#include <catch2/catch.hpp>

#include <string_view>

namespace ts = tessera;
using std::string_view;
using ts::along, ts::tiled, ts::to_invarying, ts::to_reduced, ts::to_unreduced, ts::to_varying;

namespace {

using line = ts::mesh<ts::axis<"x", 2>>;
using ring = ts::mesh<ts::axis<"x", 4>>;
using square = ts::mesh<ts::axis<"x", 2>, ts::axis<"y", 2>>;

/// A value of a body over all axes of Mesh, of one state along some of them.
template <class Mesh, ts::manual_state State, ts::axis_set Axes, std::int64_t... Extents>
struct body {
  static constexpr ts::aval type =
      ts::sharding::with_state(ts::plain_aval<ts::f32, ts::shape<Extents...>>(), Axes, State);
  using handle = ts::expr<type, ts::region<Mesh, ts::axis_kind::manual, (1U << Mesh::value.rank) - 1>>;
};

constexpr ts::axis_set x = 1;
constexpr ts::axis_set y = 2;
constexpr ts::axis_set none = 0;

template <class Mesh, ts::axis_set Axes, std::int64_t... Extents>
constexpr auto varying = typename body<Mesh, ts::manual_state::varying, Axes, Extents...>::handle{};
template <class Mesh, ts::axis_set Axes, std::int64_t... Extents>
constexpr auto unreduced = typename body<Mesh, ts::manual_state::unreduced, Axes, Extents...>::handle{};
template <class Mesh, ts::axis_set Axes, std::int64_t... Extents>
constexpr auto reduced = typename body<Mesh, ts::manual_state::reduced, Axes, Extents...>::handle{};

#define TYPE_OF(...) ts::type_text<std::remove_cvref_t<decltype(__VA_ARGS__)>>()

}  // namespace

TEST_CASE("An operation on values that vary over different axes varies over all of them") {
  STATIC_REQUIRE(TYPE_OF(varying<line, x, 4> * varying<line, none, 4>) == "float32[4]{V:x}");
  STATIC_REQUIRE(TYPE_OF(varying<square, x, 4> + varying<square, y, 4>) == "float32[4]{V:x,y}");
  STATIC_REQUIRE(TYPE_OF(varying<line, x, 4> * reduced<line, x, 4>) == "float32[4]{V:x}");
  STATIC_REQUIRE(TYPE_OF(varying<line, none, 4> * 2) == "float32[4]");
  STATIC_REQUIRE(TYPE_OF(ts::matmul(varying<line, x, 4, 3>, varying<line, none, 3, 5>)) == "float32[4,5]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::sum<0>(varying<line, x, 4, 3>)) == "float32[3]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::mean(varying<line, x, 4, 3>)) == "float32[]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::reshape<12>(varying<line, x, 4, 3>)) == "float32[12]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::where(varying<line, x, 4> > 0, varying<line, none, 4>, 0)) == "float32[4]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::softmax(varying<line, x, 4, 3>)) == "float32[4,3]{V:x}");
}

TEST_CASE("psum, pmean, pmax and pmin make a value the same on all devices of the axes they name") {
  STATIC_REQUIRE(TYPE_OF(ts::psum<"x">(varying<line, x, 4>)) == "float32[4]");
  STATIC_REQUIRE(TYPE_OF(ts::psum<"x">(varying<square, x | y, 4>)) == "float32[4]{V:y}");
  STATIC_REQUIRE(TYPE_OF(ts::psum<"x", "y">(varying<square, x | y, 4>)) == "float32[4]");
  STATIC_REQUIRE(TYPE_OF(ts::psum<"x">(varying<line, none, 4>)) == "float32[4]");
  STATIC_REQUIRE(TYPE_OF(ts::psum<"x">(unreduced<line, x, 4>)) == "float32[4]");
  STATIC_REQUIRE(TYPE_OF(ts::pmean<"x">(varying<line, x, 4>)) == "float32[4]");
  STATIC_REQUIRE(TYPE_OF(ts::pmax<"x">(varying<line, x, 4>)) == "float32[4]");
  STATIC_REQUIRE(TYPE_OF(ts::pmin<"y">(varying<square, x | y, 4>)) == "float32[4]{V:x}");
}

TEST_CASE("all_gather lays blocks along a dimension, or along a new one, as varying, invarying or reduced") {
  STATIC_REQUIRE(TYPE_OF(ts::all_gather<"x">(varying<line, x, 4>, tiled)) == "float32[8]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::all_gather<"x">(varying<line, x, 4>, tiled, to_invarying)) == "float32[8]");
  STATIC_REQUIRE(TYPE_OF(ts::all_gather<"x">(varying<line, x, 4>, tiled, to_reduced)) == "float32[8]{R:x}");
  STATIC_REQUIRE(TYPE_OF(ts::all_gather<"x">(varying<line, x, 4>)) == "float32[2,4]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::all_gather<"x">(varying<line, x, 4>, along<-1>)) == "float32[4,2]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::all_gather<"x">(varying<line, x, 4, 3>, along<1>, tiled)) == "float32[4,6]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::all_gather<"y", "x">(varying<square, x | y, 4>, tiled, to_invarying)) == "float32[16]");
}

TEST_CASE("psum_scatter leaves each device its block of the sum") {
  STATIC_REQUIRE(TYPE_OF(ts::psum_scatter<"x">(varying<line, x, 8>, tiled)) == "float32[4]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::psum_scatter<"x">(unreduced<line, x, 8>, tiled)) == "float32[4]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::psum_scatter<"x">(varying<line, x, 2, 8>)) == "float32[8]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::psum_scatter<"x">(varying<line, x, 3, 8>, along<1>, tiled)) == "float32[3,4]{V:x}");
}

TEST_CASE("pcast knows four transitions") {
  STATIC_REQUIRE(TYPE_OF(ts::pcast<"x">(varying<line, none, 4>, to_varying)) == "float32[4]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::pcast<"x">(varying<line, none, 4>, to_reduced)) == "float32[4]{R:x}");
  STATIC_REQUIRE(TYPE_OF(ts::pcast<"x">(varying<line, x, 4>, to_unreduced)) == "float32[4]{U:x}");
  STATIC_REQUIRE(TYPE_OF(ts::pcast<"x">(reduced<line, x, 4>, to_varying)) == "float32[4]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::pcast<"y">(varying<square, x, 4>, to_varying)) == "float32[4]{V:x,y}");
}

constexpr ts::message cast_fault(ts::manual_state from, ts::manual_state to) {
  return ts::sharding::pcast(ts::sharding::with_state(ts::plain_aval<ts::f32, ts::shape<4>>(), x, from),
                             ts::axis_append(0, 0), to)
      .failure;
}

TEST_CASE("pcast knows no other transition") {
  using ts::manual_state;
  const manual_state all[] = {manual_state::invarying, manual_state::varying, manual_state::unreduced,
                              manual_state::reduced};
  int known = 0;
  for (manual_state from : all)
    for (manual_state to : all) known += cast_fault(from, to) == ts::message::none;
  CHECK(known == 4);
  STATIC_REQUIRE(cast_fault(manual_state::varying, manual_state::reduced) == ts::message::pcast_transition);
  STATIC_REQUIRE(cast_fault(manual_state::unreduced, manual_state::varying) == ts::message::pcast_transition);
}

TEST_CASE("axis_index differs from device to device, axis_size is a constant") {
  STATIC_REQUIRE(TYPE_OF(ts::axis_index<"x">(varying<line, none, 4>)) == "int32[]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::axis_index<"x", "y">(varying<square, none, 4>)) == "int32[]{V:x,y}");
  STATIC_REQUIRE(ts::axis_size<"x">(varying<ring, none, 4>) == 4);
  STATIC_REQUIRE(ts::axis_size<"x", "y">(varying<square, none, 4>) == 4);
}

TEST_CASE("all_to_all cuts one dimension and grows another, or takes one away and adds one") {
  using ts::concat_along, ts::split_along;
  STATIC_REQUIRE(TYPE_OF(ts::all_to_all<"x">(varying<ring, x, 2, 8>, split_along<1>, concat_along<0>, tiled)) ==
                 "float32[8,2]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::all_to_all<"x">(varying<ring, x, 4, 3>)) == "float32[4,3]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::all_to_all<"x">(varying<ring, x, 3, 4, 5>, split_along<1>, concat_along<0>)) ==
                 "float32[4,3,5]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::all_to_all<"x">(varying<ring, x, 4, 3, 5>, split_along<0>, concat_along<-1>)) ==
                 "float32[3,5,4]{V:x}");
}

TEST_CASE("ppermute keeps the type") {
  STATIC_REQUIRE(TYPE_OF(ts::ppermute<"x", ts::send<0, 1>, ts::send<1, 2>>(varying<ring, x, 4>)) == "float32[4]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::ppermute<"x">(varying<ring, x, 4>, ts::ring<1>)) == "float32[4]{V:x}");
  STATIC_REQUIRE(TYPE_OF(ts::ppermute<"x">(varying<ring, none, 4>, ts::shift<-1>)) == "float32[4]{V:x}");
}

TEST_CASE("What is made of nothing is the same on all devices") {
  STATIC_REQUIRE(TYPE_OF(ts::zeros<ts::shape<3>>(varying<line, x, 4>)) == "float32[3]");
  STATIC_REQUIRE(TYPE_OF(ts::iota<ts::shape<3>>(varying<line, x, 4>)) == "int32[3]");
  STATIC_REQUIRE(TYPE_OF(ts::arange<5>(varying<line, x, 4>)) == "int32[5]");
}
