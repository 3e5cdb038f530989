// SPDX-License-Identifier: Apache-2.0
#include <tessera/analysis/describe.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/nn/stack.hpp>
#include <tessera/ops/math.hpp>
#include <tessera/ops/matmul.hpp>
#include <tessera/ops/reduce.hpp>
#include <tessera/ops/reshard.hpp>
#include <tessera/transform/plan.hpp>
#include <tessera/transform/trace.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <catch2/catch.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ts = tessera;
using ts::none, ts::P;

namespace {

using cluster = ts::mesh<ts::axis<"model", 4>>;
using alone = ts::mesh<ts::axis<"model", 1>>;

struct layer {
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<8, 16>, P<none, "model">, ts::nn::initializers::lecun_normal()> up;
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<16, 8>, P<"model">, ts::nn::initializers::lecun_normal()> down;
  ts::nn::variable<ts::nn::batch_stat, ts::f32, ts::shape<8>> seen;
  TESSERA_MODULE(layer, up, down, seen)

  constexpr auto operator()(auto x) {
    seen = ts::sum<0>(x);
    return x + ts::matmul(ts::tanh(ts::matmul(x, up)), down, ts::out_sharding<P<>>);
  }
};

template <std::int64_t N>
struct deep {
  ts::nn::stack<N, layer> layers;
  TESSERA_MODULE(deep, layers)
};
struct nested {
  ts::nn::stack<2, deep<3>> groups;
  TESSERA_MODULE(nested, groups)
};

using x_type = ts::tensor<ts::f32, ts::shape<4, 8>, P<>, cluster>;
inline constexpr auto gradient = [](auto& model, auto x) {
  auto [l, grads] = ts::value_and_grad([](auto& m, auto in) { return ts::sum(m.layers(in)); })(model, x);
  return std::tuple(l, ts::reshard<P<>>(grads.layers.template get<&layer::up>()));
};
template <std::int64_t N>
constexpr ts::graph::program program_of_layers() {
  return ts::transform::lower(ts::transform::traced<gradient, ts::nn::bound<deep<N>, cluster>, x_type>::run());
}

/// What an initialiser gives one layer.
std::vector<float> drawn(ts::random::key key, std::int64_t rows, std::int64_t columns) {
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  const std::int64_t extents[] = {rows, columns};
  ts::nn::initializers::lecun_normal().fill(std::span(values), key, extents);
  return values;
}

}  // namespace

TEST_CASE("A stack's variables have the layers in front, uncut, and the layer's cuts behind") {
  using stack = ts::nn::stack<3, layer>;
  STATIC_REQUIRE(std::is_same_v<std::tuple_element_t<0, stack::variables>::shape_type, ts::shape<3, 8, 16>>);
  STATIC_REQUIRE(std::is_same_v<std::tuple_element_t<0, stack::variables>::spec_type, P<none, none, "model">>);
  STATIC_REQUIRE(std::is_same_v<std::tuple_element_t<1, stack::variables>::spec_type, P<none, "model">>);
  STATIC_REQUIRE(std::is_same_v<std::tuple_element_t<2, stack::variables>::spec_type, P<>>);
}

TEST_CASE("Each layer of a stack draws with a key of its own, the same on any mesh") {
  const auto model = ts::init<deep<3>, cluster>(ts::nn::rngs{7});
  const auto whole = ts::init<deep<3>, alone>(ts::nn::rngs{7});
  const ts::random::key stack_key = ts::random::fold_in(ts::random::make_key(7), 0);
  const auto ups = ts::nn::to_vector(model.layers.get<&layer::up>());
  const auto downs = ts::nn::to_vector(model.layers.get<&layer::down>());
  CHECK(ups == ts::nn::to_vector(whole.layers.get<&layer::up>()));
  for (std::size_t i = 0; i < 3; ++i) {
    const ts::random::key own = ts::random::split(stack_key, 3)[i];
    const auto part = [&](const std::vector<float>& all) {
      return std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(128 * i),
                                all.begin() + static_cast<std::ptrdiff_t>(128 * (i + 1)));
    };
    CHECK(part(ups) == drawn(ts::random::fold_in(own, 0), 8, 16));
    CHECK(part(downs) == drawn(ts::random::fold_in(own, 1), 16, 8));
  }
}

TEST_CASE("A stack within a stack splits the key that its layer draws") {
  const auto model = ts::init<nested, alone>(ts::nn::rngs{7});
  std::vector<float> all;
  ts::visit_variables(model, [&](const auto& v) {
    if (all.empty()) all = ts::nn::to_vector(v);
  });
  REQUIRE(all.size() == 2 * 3 * 8 * 16);
  const ts::random::key outer = ts::random::fold_in(ts::random::make_key(7), 0);
  const ts::random::key group = ts::random::fold_in(ts::random::split(outer, 2)[1], 0);
  const ts::random::key own = ts::random::fold_in(ts::random::split(group, 3)[2], 0);
  CHECK(std::vector<float>(all.begin() + 5 * 128, all.end()) == drawn(own, 8, 16));
}

TEST_CASE("The program of a stack does not grow with its layers") {
  const ts::graph::program few = program_of_layers<2>();
  const ts::graph::program many = program_of_layers<64>();
  CHECK(few.steps.size() == many.steps.size());
  CHECK(few.buffers.size() == many.buffers.size());
  CHECK(few.words.size() == many.words.size());
}

TEST_CASE("Variables of a stack are described by the paths of a layer") {
  const std::string table = ts::describe(ts::init<deep<3>, cluster>(ts::nn::rngs{0}));
  CHECK(table.find("layers.up") != std::string::npos);
  CHECK(table.find("float32[3,8,16@model]") != std::string::npos);
  CHECK(table.find("layers.seen") != std::string::npos);
}
