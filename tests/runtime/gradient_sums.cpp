// SPDX-License-Identifier: Apache-2.0
// Gradients that are added up over devices in fewer bits: half the bytes, and types that say so.
#include "nn/layer_cases.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/nn/loss_scale.hpp>

#include <algorithm>

using namespace layer_cases;
using ts::bf16, ts::f32, ts::reduced, ts::shape;

namespace {

using data4 = ts::mesh<ts::axis<"data", 4>>;
using layer = ts::nn::linear<16, 8, ts::kernel<P<reduced<"data">>>, ts::use_bias<false>>;
using narrow_layer =
    ts::nn::linear<16, 8, ts::kernel<P<reduced<"data">>>, ts::use_bias<false>, ts::precision<f32, bf16>>;
using biased_layer = ts::nn::linear<16, 8, ts::kernel<P<reduced<"data">>>>;
using batch = array<shape<32, 16>, f32, P<"data">, data4>;

inline constexpr auto loss = [](auto& m, auto x) { return ts::mean(ts::square(ts::astype<f32>(m(x)))); };

/// The gradient of the kernel with sums as told.
template <auto... Sums>
inline constexpr auto gradients =
    [](auto& m, auto x) { return ts::reshard<P<reduced<"data">>>(ts::grad(loss, Sums...)(m, x).kernel); };
inline constexpr auto& whole = gradients<>;
inline constexpr auto& halved = gradients<ts::sums_in<bf16>>;

template <const auto& F, class Layer>
constexpr std::int64_t reduced_bytes() {
  return ts::lowered<F, ts::nn::bound<Layer, data4>, batch>::collectives().all_reduce_bytes;
}

inline constexpr auto both = [](auto& m, auto x) {
  const auto grads = ts::grad(loss, ts::sums_in<bf16>)(m, x);
  return std::tuple(ts::reshard<P<reduced<"data">>>(grads.kernel), ts::reshard<P<>>(grads.bias));
};

/// An array's gradient, which the program itself converts.
inline constexpr auto by_hand = [](auto w, auto x) {
  const auto grads = ts::grad([](auto a, auto in) { return ts::mean(ts::square(ts::matmul(in, a))); })(w, x);
  const auto narrow = ts::astype<bf16>(grads);
  static_assert(ts::type_text<decltype(narrow)>() == "bfloat16[16,8]{U:data}");
  return ts::astype<f32>(ts::reshard<P<reduced<"data">>>(narrow));
};
using weight = array<shape<16, 8>, f32, P<reduced<"data">>, data4>;

inline constexpr auto scaled = [](auto& m, auto& scale, auto x) {
  const auto [l, grads] = scale.value_and_grad(loss, ts::sums_in<bf16>)(m, x);
  return l + ts::sum(ts::reshard<P<reduced<"data">>>(grads.kernel));
};

}  // namespace

TEST_CASE("gradients that are summed in bfloat16 move half the bytes") {
  constexpr std::int64_t numbers_moved = 16 * 8;
  STATIC_REQUIRE(reduced_bytes<whole, layer>() == 4 * numbers_moved);
  STATIC_REQUIRE(reduced_bytes<halved, layer>() == 2 * numbers_moved);
  STATIC_REQUIRE(reduced_bytes<whole, narrow_layer>() == 4 * numbers_moved);
  STATIC_REQUIRE(reduced_bytes<halved, narrow_layer>() == 2 * numbers_moved);
  STATIC_REQUIRE(reduced_bytes<both, biased_layer>() == 2 * numbers_moved + 4 * 8);
  STATIC_REQUIRE(ts::lowered<by_hand, weight, batch>::collectives().all_reduce_bytes == 2 * 16 * 8);
  using scale_type = ts::nn::static_loss_scale<data4>;
  STATIC_REQUIRE(ts::lowered<scaled, ts::nn::bound<layer, data4>, scale_type, batch>::collectives().all_reduce_bytes ==
                 2 * numbers_moved + 4);
}

TEST_CASE("each device rounds what it has to add, and sums are rounded once a device") {
  const auto exact = trace<whole, layer, batch>();
  const auto rounded = trace<halved, layer, batch>();
  const auto inputs = draw_inputs(exact);
  const auto wide = run(exact, inputs), narrow = run(rounded, inputs);
  double apart = 0, largest = 0;
  for (std::size_t i = 0; i < wide[0].size(); ++i) {
    CHECK(narrow[0][i] == double{float{ts::bfloat16(narrow[0][i])}});
    apart = std::max(apart, std::abs(narrow[0][i] - wide[0][i]));
    largest = std::max(largest, std::abs(wide[0][i]));
  }
  CHECK(apart > 0);
  CHECK(apart < largest * 4 * 0x1p-8);
}
