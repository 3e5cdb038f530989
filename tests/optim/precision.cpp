// SPDX-License-Identifier: Apache-2.0
// Parameters of 16 bits: moments and master copies are float32 unless told, and what is narrower is spelled.
#include "running.hpp"

#include <tessera/nn/linear.hpp>
#include <tessera/nn/loss_scale.hpp>
#include <tessera/nn/optimizer.hpp>
#include <tessera/ops.hpp>
#include <tessera/optim/adaptive.hpp>
#include <tessera/optim/contrib.hpp>
#include <tessera/optim/factored.hpp>
#include <tessera/optim/gradient_scaling.hpp>
#include <tessera/optim/wrappers.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <catch2/catch.hpp>

#include <cmath>

using namespace optim_test;
using nn::param;

namespace {

template <dtype D, dtype Master>
struct weights {
  nn::variable<param, D, shape<3>, P<>, nn::initializers::zeros(), nn::role::other, Master> w;
  TESSERA_MODULE(weights, w)
};
using half = weights<dtype::f16, dtype::f32>;
using brain = weights<dtype::bf16, dtype::f32>;
using brain_alone = weights<dtype::bf16, dtype::bf16>;
using whole = weights<dtype::f32, dtype::f32>;

/// One step with the gradient `g`.
inline constexpr auto step = [](auto& m, auto& optimizer, auto g) {
  const auto loss = [](auto& model, auto gradient) { return sum(astype<f32>(model.w) * gradient); };
  auto [l, grads] = value_and_grad(loss)(m, g);
  optimizer.update(m, grads);
  return l;
};

inline constexpr auto scaled_step = [](auto& m, auto& optimizer, auto& scale, auto g) {
  const auto loss = [](auto& model, auto gradient) { return sum(astype<f32>(model.w) * gradient); };
  auto [l, grads] = scale.value_and_grad(loss)(m, g);
  scale.update(optimizer, m, grads);
  return l;
};

/// A model, its optimiser and a gradient that stays the same.
template <class Model, class Transformation>
struct training {
  nn::bound<Model, mesh<>> model = init<Model>(nn::rngs{0});
  decltype(nn::optimizer<param>(model, std::declval<Transformation>())) optimizer;

  training(const Transformation& t, const std::vector<float>& start)
      : model(started(start)), optimizer(nn::optimizer<param>(model, t)) {}

  running with(const numbers& gradient) {
    running r{transform::traced<step, decltype(model), decltype(optimizer), tensor<f32, shape<3>>>::run()};
    r.add(model), r.add(optimizer);
    r.inputs.push_back(bytes_of(gradient));
    return r;
  }

 private:
  static nn::bound<Model, mesh<>> started(const std::vector<float>& start) {
    auto m = init<Model>(nn::rngs{0});
    using T = storage_t<decltype(m.w)::element>;
    std::vector<T> narrow;
    for (const float each : start) narrow.push_back(static_cast<T>(each));
    runtime::copy_from_host(*m.w.data, narrow.data());
    return m;
  }
};

template <class T>
std::vector<float> floats(const std::vector<std::byte>& bytes) {
  std::vector<T> x(bytes.size() / sizeof(T));
  std::memcpy(x.data(), bytes.data(), bytes.size());
  return {x.begin(), x.end()};
}

const std::vector<float> start_at{1, -2, 0.5F};

/// After a step of zero gradients a float16 parameter is what it was.
template <class Transformation>
void check_still(const Transformation& t) {
  running r = training<half, Transformation>(t, start_at).with({0, 0, 0});
  for (int i = 0; i < 3; ++i) r.step();
  CHECK(floats<float16>(r.inputs[0]) == start_at);
}

}  // namespace

TEST_CASE("zero gradients leave float16 parameters where they are, with eps 1e-8") {
  const double rate = 1e-3;
  check_still(optim::adam(rate));
  check_still(optim::amsgrad(rate));
  check_still(optim::adabelief(rate));
  check_still(optim::yogi(rate));
  check_still(optim::radam(rate));
  check_still(optim::adamax(rate));
  check_still(optim::adan(rate));
  check_still(optim::novograd(rate));
}

TEST_CASE("a bfloat16 parameter moves by steps that are smaller than its last place") {
  const std::vector<float> ones{1, 1, 1};
  training<brain, decltype(optim::sgd(6e-4))> with_master(optim::sgd(6e-4), ones);
  running r = with_master.with({1, 1, 1});
  for (int i = 0; i < 100; ++i) r.step();
  CHECK(floats<bfloat16>(r.inputs[0]) == std::vector<float>(3, 0.94140625F));
  CHECK(numbers_of(r.inputs[r.inputs.size() - 2])[0] == Approx(0.940002).margin(1e-5));

  running alone = training<brain_alone, decltype(optim::sgd(6e-4))>(optim::sgd(6e-4), ones).with({1, 1, 1});
  for (int i = 0; i < 100; ++i) alone.step();
  CHECK(floats<bfloat16>(alone.inputs[0]) == ones);
}

TEST_CASE("a parameter that was replaced starts a new master copy") {
  running r = training<brain, decltype(optim::sgd(6e-4))>(optim::sgd(6e-4), {1, 1, 1}).with({1, 1, 1});
  for (int i = 0; i < 3; ++i) r.step();
  const std::vector<bfloat16> loaded{bfloat16(4.0F), bfloat16(1.0F), bfloat16(-2.0F)};
  std::memcpy(r.inputs[0].data(), loaded.data(), 6);
  r.step();
  const numbers master = numbers_of(r.inputs[r.inputs.size() - 2]);
  CHECK(master[0] == 4.0F - 6e-4F);
  CHECK(master[1] == Approx(1 - 4 * 6e-4).epsilon(1e-6));
  CHECK(master[2] == -2.0F - 6e-4F);
}

TEST_CASE("the update of 16-bit parameters is that of float32 ones, rounded") {
  const auto check = [](const auto& t) {
    using transformation = std::remove_cvref_t<decltype(t)>;
    running narrow = training<brain, transformation>(t, start_at).with({0.5F, 0.25F, -1});
    running wide = training<whole, transformation>(t, start_at).with({0.5F, 0.25F, -1});
    for (int i = 0; i < 5; ++i) narrow.step(), wide.step();
    std::vector<float> rounded;
    for (const float x : numbers_of(wide.inputs[0])) rounded.push_back(float{bfloat16(x)});
    CHECK(floats<bfloat16>(narrow.inputs[0]) == rounded);
    CHECK(numbers_of(narrow.inputs[narrow.inputs.size() - 2]) == numbers_of(wide.inputs[0]));
  };
  check(optim::adam(1e-2));
  check(optim::lookahead(optim::lion(1e-2), 2, 0.5));
  check(optim::chain(optim::clip_by_global_norm(0.5), optim::adamw(1e-2)));
}

TEST_CASE("states are float32 for 16-bit parameters; a narrower first moment is spelled and is half as large") {
  constexpr std::int64_t n = 3, count = 4;
  const auto of = []<class Model, class T>(std::type_identity<Model>, const T&) {
    return nn::optimizer_state_of<param, Model, mesh<>, T>::state_bytes_per_device();
  };
  constexpr std::type_identity<whole> f32_model{};
  constexpr std::type_identity<brain> bf16_model{};
  constexpr optim::adam_form small{.typed_mu = true, .mu_dtype = dtype::bf16};
  CHECK(of(f32_model, optim::adam(1e-3)) == count + n * 8);
  CHECK(of(f32_model, optim::adam<small>(1e-3, {})) == count + n * 6);
  CHECK(of(bf16_model, optim::adam(1e-3)) == count + n * (4 + 8));
  CHECK(of(std::type_identity<brain_alone>{}, optim::adam(1e-3)) == count + n * 8);
  CHECK(of(bf16_model, optim::sgd(1e-3)) == n * 4);
}

TEST_CASE("a first moment that is kept in bfloat16 is computed in float32 and rounded once a step") {
  constexpr optim::adam_form small{.typed_mu = true, .mu_dtype = dtype::bf16};
  running r = training<whole, decltype(optim::adam<small>(1e-2, {}))>(optim::adam<small>(1e-2, {}), start_at)
                  .with({0.3F, 0.2F, -1});
  const auto mu = [&] { return floats<bfloat16>(r.inputs[r.inputs.size() - 3]); };
  r.step();
  CHECK(mu()[0] == float{bfloat16((1 - 0.9F) * 0.3F)});
  r.step();
  const float before = float{bfloat16((1 - 0.9F) * 0.3F)};
  CHECK(mu()[0] == float{bfloat16(0.9F * before + (1 - 0.9F) * 0.3F)});
}

TEST_CASE("a skipped step leaves master copies as they were") {
  training<half, decltype(optim::adam(1e-2))> t(optim::adam(1e-2), start_at);
  const auto scale = nn::make_loss_scale({.initial = 4});
  using scale_type = std::remove_const_t<decltype(scale)>;
  running r{transform::traced<scaled_step, decltype(t.model), decltype(t.optimizer), scale_type,
                              tensor<f32, shape<3>>>::run()};
  r.add(t.model), r.add(t.optimizer);
  const std::size_t master = r.inputs.size() - 1;
  r.add(scale);
  r.inputs.push_back(bytes_of({0.5F, -0.25F, 1}));
  r.step();
  CHECK(numbers_of(r.inputs[master])[0] == Approx(0.99).epsilon(1e-5));
  const auto parameter = r.inputs[0], kept = r.inputs[master];
  r.inputs.back() = bytes_of({0.5F, 3e4F, 1});
  r.step();
  CHECK(r.inputs[0] == parameter);
  CHECK(r.inputs[master] == kept);
}

TEST_CASE("state spread over a mesh axis holds master copies spread as well") {
  using cluster = mesh<axis<"data", 8>>;
  using spread = nn::optimizer_state_of<param, nn::linear<16, 8, precision<bf16>>, cluster, decltype(optim::adam(1e-3)),
                                        nn::zero1<"data">>;
  CHECK(spread::state_bytes_per_device() == 4 + (16 * 8 + 8) / 8 * 12);
}
