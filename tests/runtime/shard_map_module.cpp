// SPDX-License-Identifier: Apache-2.0
// A module that is passed to shard_map computes with the blocks of its variables: values and gradients are those of the
// global view.
#include "runtime/mesh_independence.hpp"

#include <tessera/ops.hpp>
#include <tessera/tessera.hpp>

#include <catch2/catch.hpp>

using namespace runtime_test;
namespace ts = tessera;

namespace {

struct mlp {
  nn::linear<8, 16, kernel<P<none, "model">>> up;
  nn::linear<16, 4, kernel<P<"model", none>>> down;
  TESSERA_MODULE(mlp, up, down)
};

inline constexpr auto global = [](auto& model, auto x) {
  return model.down(relu(model.up(x)), out_sharding<P<"data">>);
};
/// The bias is the same on all devices and is added once, behind the sum.
inline constexpr auto blocks = [](auto& model, auto x) {
  const auto h = relu(model.up(x));
  return psum<"model">(matmul(h, model.down.kernel)) + model.down.bias;
};
inline constexpr auto by_hand = [](auto& model, auto x) {
  return shard_map<in_specs<own_specs, P<"data">>, out_specs<P<"data">>>(blocks)(model, x);
};
inline constexpr auto without_specs = [](auto& model, auto x) {
  return shard_map<out_specs<P<"data">>>(blocks)(model, x);
};

template <const auto& F>
inline constexpr auto trained = [](auto& model, auto x) {
  auto [l, g] = value_and_grad([](auto& m, auto all) { return mean(square(F(m, all))); })(model, x);
  return std::tuple{l,
                    F(model, x),
                    reshard<P<none, "model">>(g.up.kernel),
                    reshard<P<"model">>(g.up.bias),
                    reshard<P<"model">>(g.down.kernel),
                    reshard<P<>>(g.down.bias)};
};
/// The gradient is taken by each device: what its blocks need of it is all there.
inline constexpr auto trained_inside = [](auto& model, auto x) {
  return shard_map<out_specs<P<>, P<"data">, P<none, "model">, P<"model">, P<"model">, P<>>>([](auto& m, auto rows) {
    auto [l, g] =
        value_and_grad([](auto& v, auto block) { return pmean<"data">(mean(square(blocks(v, block)))); })(m, rows);
    return std::tuple{l, blocks(m, rows), g.up.kernel, g.up.bias, g.down.kernel, g.down.bias};
  })(model, x);
};

template <const auto& F, class Cluster>
program traced_step() {
  using model = decltype(init<mlp, Cluster>(nn::rngs{.params = 0}));
  using batch = tensor<dtype::f32, shape<8, 8>, P<"data">, Cluster>;
  program p{transform::traced<F, model, batch>::run(), {}};
  REQUIRE(p.g.fault.what == message::none);
  std::mt19937 bits(4);
  for (int id : p.g.parameters) p.inputs.push_back(to_bytes(draw({{}, -1, 1}, p.g.type(id).size(), bits), dtype::f32));
  return p;
}

template <std::int64_t Data, std::int64_t Model>
void check_on() {
  using cluster = mesh<axis<"data", Data>, axis<"model", Model>>;
  INFO(Data << " x " << Model << " devices");
  const program expected = traced_step<trained<global>, cluster>();
  const std::vector<bytes> answer = runtime::evaluate(expected.g, expected.inputs);
  for (const program& p : {traced_step<trained<by_hand>, cluster>(), traced_step<trained<without_specs>, cluster>(),
                           traced_step<trained_inside, cluster>()})
    check_equal(p, runtime::evaluate(p.g, p.inputs), answer, 1e-5);
}

}  // namespace

TEST_CASE("Values and gradients of a module by hand are those of the global view") {
  check_on<1, 1>();
  check_on<2, 2>();
  check_on<4, 1>();
}

TEST_CASE("A module that the body captures stands for whole arrays, and is refused where they are cut") {
  using cluster = mesh<axis<"data", 2>, axis<"model", 2>>;
  static constexpr auto captures = [](auto& model, auto x) {
    return shard_map<out_specs<P<"data">>>([&](auto rows) { return psum<"model">(matmul(rows, model.up.kernel)); })(x);
  };
  using model = decltype(init<mlp, cluster>(nn::rngs{.params = 0}));
  using batch = tensor<dtype::f32, shape<8, 8>, P<"data">, cluster>;
  CHECK(transform::traced<captures, model, batch>::run().fault.what == message::shard_map_captured);
}
