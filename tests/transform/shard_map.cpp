// SPDX-License-Identifier: Apache-2.0
#include <tessera/analysis/lowered.hpp>
#include <tessera/ops.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <catch2/catch.hpp>

namespace ts = tessera;
using ts::P, ts::none, ts::in_specs, ts::out_specs;

namespace {

using line = ts::mesh<ts::axis<"x", 2>>;
using ring = ts::mesh<ts::axis<"x", 4>>;
using square = ts::mesh<ts::axis<"x", 2>, ts::axis<"y", 2>>;

template <class Mesh, class Shape, class Spec = P<>>
using array = ts::tensor<ts::f32, Shape, Spec, Mesh>;
template <class Mesh, class Shape, class Spec = P<>>
constexpr ts::expr<array<Mesh, Shape, Spec>::type, Mesh> handle{};

#define TYPE_OF(...) ts::type_text<decltype(__VA_ARGS__)>()

}  // namespace

TEST_CASE("A body sees the block of an argument, varying over the axes that cut it") {
  const auto mapped = ts::shard_map<in_specs<P<"x", none>, P<>>, out_specs<P<"x">>>([](auto a, auto b) {
    static_assert(ts::type_text<decltype(a)>() == "float32[4,4]{V:x}");
    STATIC_REQUIRE(ts::type_text<decltype(b)>() == "float32[8,4]");
    return a;
  });
  STATIC_REQUIRE(TYPE_OF(mapped(handle<line, ts::shape<8, 4>, P<"x">>, handle<line, ts::shape<8, 4>>)) ==
                 "float32[8@x,4]");
}

TEST_CASE("in_specs may be left out; numbers and tuples pass") {
  const auto mapped = ts::shard_map<out_specs<P<"x">, P<>>>([](auto pair, double factor) {
    return std::tuple{std::get<0>(pair) * factor, std::pair{std::get<1>(pair), ts::psum<"x">(std::get<0>(pair))}};
  });
  using result = decltype(mapped(std::tuple{handle<line, ts::shape<8>, P<"x">>, handle<line, ts::shape<3>>}, 2.0));
  STATIC_REQUIRE(ts::type_text<std::tuple_element_t<0, result>>() == "float32[8@x]");
  using second = std::tuple_element_t<1, result>;
  STATIC_REQUIRE(ts::type_text<std::tuple_element_t<0, second>>() == "float32[3]");
  STATIC_REQUIRE(ts::type_text<std::tuple_element_t<1, second>>() == "float32[4]");
}

TEST_CASE("Several axes cut a dimension, major first") {
  const auto mapped = ts::shard_map<out_specs<P<none, ts::axes<"y", "x">>>>([](auto a) {
    static_assert(ts::type_text<decltype(a)>() == "float32[2,3]{V:x,y}");
    return a;
  });
  STATIC_REQUIRE(TYPE_OF(mapped(handle<square, ts::shape<8, 3>, P<ts::axes<"x", "y">>>)) == "float32[2,12@(y,x)]");
}

TEST_CASE("A result that does not vary over an axis of out_specs is repeated along it") {
  const auto mapped = ts::shard_map<out_specs<P<"x">>>([](auto a) { return a; });
  STATIC_REQUIRE(TYPE_OF(mapped(handle<line, ts::shape<4>>)) == "float32[8@x]");
}

TEST_CASE("axis_names leaves other axes as they are, and bodies nest") {
  const auto inner = [](auto b) {
    STATIC_REQUIRE(ts::type_text<decltype(b)>() == "float32[4,2]{V:x,y}");
    return b * 2;
  };
  const auto outer = [=](auto a) {
    static_assert(ts::type_text<decltype(a)>() == "float32[4,4@y]{V:x}");
    STATIC_REQUIRE(TYPE_OF(a * a) == "float32[4,4@y]{V:x}");
    return ts::shard_map<ts::axis_names<"y">, out_specs<P<none, "y">>>(inner)(a);
  };
  const auto mapped = ts::shard_map<ts::axis_names<"x">, out_specs<P<"x">>>(outer);
  STATIC_REQUIRE(TYPE_OF(mapped(handle<square, ts::shape<8, 4>, P<"x", "y">>)) == "float32[8@x,4@y]");
}

inline constexpr auto identity = [](auto v) {
  return ts::sum(ts::shard_map<out_specs<P<"x">>>([](auto a) { return a; })(v));
};
inline constexpr auto grad_of_identity = [](auto v) { return ts::grad(identity)(v); };

TEST_CASE("The gradient of an argument that is the same on all devices is one sum over them") {
  using program = ts::lowered<grad_of_identity, array<ring, ts::shape<8>>>;
  STATIC_REQUIRE(program::collectives().all_reduce == 1);
  STATIC_REQUIRE(program::collectives().all_gather == 0);
}

/// w is one number for both devices, d is cut: loss = psum((w^2 + 1) d).
inline constexpr auto through_psum = [](auto w, auto d) {
  return ts::shard_map<out_specs<P<>>>(
      [](auto weight, auto data) { return ts::psum<"x">(ts::sum((ts::square(weight) + 1) * data)); })(w, d);
};
inline constexpr auto grad_through_psum = [](auto w, auto d) { return ts::grad(through_psum)(w, d); };

/// The same gradient, taken inside the body.
inline constexpr auto grad_inside = [](auto w, auto d) {
  return ts::shard_map<out_specs<P<>>>([](auto weight, auto data) {
    const auto loss = [](auto v, auto part) { return ts::psum<"x">(ts::sum((ts::square(v) + 1) * part)); };
    const auto g = ts::grad(loss)(weight, data);
    static_assert(ts::type_text<decltype(g)>() == "float32[]");
    return g;
  })(w, d);
};

TEST_CASE("A gradient through psum needs one sum over the devices, taken outside or inside") {
  using outside = ts::lowered<grad_through_psum, array<line, ts::shape<>>, array<line, ts::shape<2>, P<"x">>>;
  using inside = ts::lowered<grad_inside, array<line, ts::shape<>>, array<line, ts::shape<2>, P<"x">>>;
  STATIC_REQUIRE(outside::collectives().all_reduce == 1);
  STATIC_REQUIRE(inside::collectives().all_reduce == 1);
}

/// Each device's part of the loss only: psum comes with the gradient of what is the same on all devices.
inline constexpr auto local_loss = [](auto w, auto d) {
  return ts::shard_map<out_specs<P<>, P<"x">>>([](auto weight, auto data) {
    const auto loss = [](auto both) { return ts::sum(ts::square(std::get<0>(both)) * std::get<1>(both)); };
    const auto g = ts::grad(loss)(std::tuple{weight, data});
    static_assert(ts::type_text<std::tuple_element_t<0, std::remove_const_t<decltype(g)>>>() == "float32[]");
    static_assert(ts::type_text<std::tuple_element_t<1, std::remove_const_t<decltype(g)>>>() == "float32[1]{V:x}");
    return g;
  })(w, d);
};

TEST_CASE("The gradient of a device's own loss is a sum for what all share, and its own for what it holds") {
  using program = ts::lowered<local_loss, array<line, ts::shape<>>, array<line, ts::shape<2>, P<"x">>>;
  STATIC_REQUIRE(program::collectives().all_reduce == 1);
}
