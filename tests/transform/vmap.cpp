// SPDX-License-Identifier: Apache-2.0
// The types of mapped functions, and what cannot be mapped.
#include <tessera/analysis/lowered.hpp>
#include <tessera/ops.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include "ops/support.hpp"

using ts::in_axes, ts::out_axes, ts::vmap;

namespace {

inline constexpr auto twice = [](auto x) { return x * 2; };
inline constexpr auto product = [](auto x, auto w) { return ts::matmul(x, w); };
inline constexpr auto both = [](auto x) { return std::pair(ts::sum(x), x + 1); };

}  // namespace

extern const array<ts::f32, shape<8, 3>> weights;
extern const array<ts::f32, shape<8, 4>> by_columns;
extern const array<ts::f32, shape<4, 8, 3>, P<"x">> many_weights;

TEST_CASE("Results have the examples, cut as those of the arguments, along a new dimension") {
  STATIC_REQUIRE(TYPE(vmap(twice)(by_x)) == "float32[4@x,8]");
  STATIC_REQUIRE(TYPE(vmap(twice)(by_xy)) == "float32[4@x,8@y]");
  STATIC_REQUIRE(TYPE(vmap<in_axes<1>>(twice)(by_xy)) == "float32[8@y,4@x]");
  STATIC_REQUIRE(TYPE(vmap<in_axes<-1>, out_axes<-1>>(twice)(by_xy)) == "float32[4@x,8@y]");
  STATIC_REQUIRE(TYPE(vmap<in_axes<0, none>>(product)(by_x, weights)) == "float32[4@x,3]");
  STATIC_REQUIRE(TYPE(vmap(product)(by_x, many_weights)) == "float32[4@x,3]");
  STATIC_REQUIRE(TYPE(vmap<in_axes<1, none>>(product)(by_columns, weights)) == "float32[4,3]");
}

TEST_CASE("Several results have several places for the examples") {
  using results = std::remove_cvref_t<decltype(vmap<in_axes<0>, out_axes<0, 1>>(both)(by_x))>;
  STATIC_REQUIRE(ts::type_text<std::tuple_element_t<0, results>>() == "float32[4@x]");
  STATIC_REQUIRE(ts::type_text<std::tuple_element_t<1, results>>() == "float32[8,4@x]");
}

TEST_CASE("Mapped functions nest, and are mapped over tuples and with modules that all examples share") {
  STATIC_REQUIRE(TYPE(vmap(vmap(twice))(by_xy)) == "float32[4@x,8@y]");
  STATIC_REQUIRE(TYPE(vmap<in_axes<0, none>>(vmap<in_axes<1, none>>(product))(many_weights, weights)) ==
                 "float32[4@x,3,3]");
  STATIC_REQUIRE(TYPE(vmap([](auto pair) { return std::get<0>(pair) * std::get<1>(pair); })(std::tuple{by_x, by_x})) ==
                 "float32[4@x,8]");
}

TEST_CASE("A mapped product has a batch dimension only where both operands are mapped") {
  STATIC_REQUIRE(TYPE(vmap([](auto x) { return ts::one_hot<5>(x); })(ints)) == "float32[4@x,8,5]");
  STATIC_REQUIRE(TYPE(vmap([](auto x) { return ts::softmax(x); })(doubles)) == "float64[4@x,8]");
}

namespace {

using two = ts::mesh<ts::axis<"data", 2>>;
using weight = ts::tensor<ts::f32, shape<16, 4>, P<>, two>;
using batch = ts::tensor<ts::f32, shape<32, 8, 16>, P<"data">, two>;
using starts = ts::tensor<ts::i32, shape<32>, P<"data">, two>;

inline constexpr auto score = [](auto w, auto x) { return ts::sum(ts::square(ts::tanh(ts::matmul(x, w)))); };
inline constexpr auto scores = [](auto w, auto x) { return vmap<in_axes<none, 0>>(score)(w, x); };
inline constexpr auto gradients = [](auto w, auto x) { return vmap<in_axes<none, 0>>(ts::grad(score))(w, x); };
inline constexpr auto gradient_of_all = [](auto w, auto x) {
  return ts::grad([](auto v, auto all) { return ts::sum(scores(v, all)); })(w, x);
};
inline constexpr auto parts = [](auto x, auto start) {
  return vmap([](auto rows, auto i) { return ts::dynamic_slice_in_dim<2>(rows, i); })(x, start);
};

template <const auto& F, class... Args>
constexpr int moves() {
  const auto c = ts::lowered<F, Args...>::collectives();
  return c.all_reduce + c.all_gather + c.reduce_scatter + c.all_to_all + c.collective_permute;
}

}  // namespace

TEST_CASE("Examples on many devices move nothing of their own") {
  STATIC_REQUIRE(moves<scores, weight, batch>() == 0);
  STATIC_REQUIRE(moves<gradients, weight, batch>() == 0);
  STATIC_REQUIRE(moves<parts, batch, starts>() == 0);
}

TEST_CASE("The gradient of what all examples share is one all-reduce") {
  STATIC_REQUIRE(moves<gradient_of_all, weight, batch>() == 1);
  STATIC_REQUIRE(ts::lowered<gradient_of_all, weight, batch>::collectives().all_reduce == 1);
}
