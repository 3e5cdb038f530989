// SPDX-License-Identifier: Apache-2.0
#include "nn/layer_cases.hpp"

#include <tessera/analysis/lowered.hpp>

#include <string_view>

using namespace layer_cases;
using ts::bf16, ts::f16, ts::f32, ts::f64, ts::precision, ts::shape;
namespace nn = ts::nn;

namespace {

inline constexpr auto attend = [](auto& m, auto x) { return m.attend(x); };

template <const auto& F, class Layer, class X>
constexpr std::string_view result_of() {
  return ts::type_text<typename ts::lowered<F, nn::bound<Layer, ts::mesh<>>, X>::traced::result_type>();
}

/// The gradient of the sum of a layer's result for its kernel, and for its bias.
inline constexpr auto gradient = [](auto& m, auto x) {
  return ts::grad([](auto& model, auto in) { return ts::sum(ts::astype<f32>(model(in))); })(m, x);
};
inline constexpr auto of_kernel = [](auto& m, auto x) { return ts::reshard<P<>>(gradient(m, x).kernel); };
inline constexpr auto of_bias = [](auto& m, auto x) { return ts::reshard<P<>>(gradient(m, x).bias); };

using narrow = precision<f32, bf16>;
using x_f32 = array<shape<4, 8>, f32>;
using x_bf16 = array<shape<4, 8>, bf16>;

}  // namespace

TEST_CASE("a precision names storage, computation, sums and masters; sums and masters are float32 unless told") {
  using all = precision<bf16>;
  STATIC_REQUIRE((all::storage == bf16 && all::compute == bf16 && all::accumulate == f32 && all::master == f32));
  STATIC_REQUIRE((narrow::storage == f32 && narrow::compute == bf16 && narrow::master == f32));
  STATIC_REQUIRE(precision<f32>::accumulate == f32);
  STATIC_REQUIRE(precision<f64>::master == f64);
  using told = nn::linear<8, 4, precision<bf16, bf16, f32, bf16>>;
  STATIC_REQUIRE((told::kernel_type::element == bf16 && told::kernel_type::master == bf16));
  using kept = nn::linear<8, 4, ts::param_dtype<bf16>>;
  STATIC_REQUIRE((kept::kernel_type::element == bf16 && kept::kernel_type::master == f32));
  using stacked = typename nn::stack<3, nn::linear<8, 8, precision<bf16, bf16, f32, bf16>>>::variables;
  STATIC_REQUIRE(std::tuple_element_t<0, stacked>::master == bf16);
}

TEST_CASE("layers convert inputs and parameters to what they compute in, and give that") {
  using linear = nn::linear<8, 4, narrow>;
  STATIC_REQUIRE(linear::kernel_type::element == f32);
  STATIC_REQUIRE(linear::bias_type::element == f32);
  STATIC_REQUIRE(result_of<call, linear, x_f32>() == "bfloat16[4,4]");
  STATIC_REQUIRE(result_of<call, linear, x_bf16>() == "bfloat16[4,4]");
  STATIC_REQUIRE(result_of<call, nn::linear<8, 4, ts::compute_dtype<f16>>, x_f32>() == "float16[4,4]");
  STATIC_REQUIRE(result_of<call, nn::linear<8, 4, ts::param_dtype<bf16>, ts::compute_dtype<f32>>, x_bf16>() ==
                 "float32[4,4]");
  STATIC_REQUIRE(result_of<call, nn::linear<8, 4, precision<f32, f32, f64>>, x_f32>() == "float32[4,4]");
  STATIC_REQUIRE(result_of<call, nn::linear_general<shape<8>, shape<2, 3>, narrow>, x_f32>() == "bfloat16[4,2,3]");
  STATIC_REQUIRE(result_of<call, nn::conv<3, 4, shape<3, 3>, narrow>, array<shape<2, 5, 5, 3>, f32>>() ==
                 "bfloat16[2,5,5,4]");
  STATIC_REQUIRE(result_of<call, nn::embed<10, 4, narrow>, array<shape<2, 3>, ts::i32>>() == "bfloat16[2,3,4]");
  STATIC_REQUIRE(result_of<attend, nn::embed<10, 8, narrow>, x_f32>() == "bfloat16[4,10]");
  STATIC_REQUIRE(result_of<call, nn::mlp<shape<8, 16, 2>, ts::gelu, narrow>, x_f32>() == "bfloat16[4,2]");
  using tokens = array<shape<2, 4, 8>, f32>;
  STATIC_REQUIRE(result_of<call, nn::multi_head_attention<2, 8, narrow>, tokens>() == "bfloat16[2,4,8]");
  STATIC_REQUIRE(result_of<call, nn::transformer_block<8, 2, 16, narrow>, tokens>() == "float32[2,4,8]");
  STATIC_REQUIRE(result_of<call, nn::transformer_block<8, 2, 16, narrow>, array<shape<2, 4, 8>, bf16>>() ==
                 "bfloat16[2,4,8]");
}

TEST_CASE("norms give what they compute in, or what they are given") {
  STATIC_REQUIRE(result_of<call, nn::layer_norm<8, narrow>, x_f32>() == "bfloat16[4,8]");
  STATIC_REQUIRE(result_of<call, nn::layer_norm<8>, x_bf16>() == "bfloat16[4,8]");
  STATIC_REQUIRE(result_of<call, nn::rms_norm<8, narrow>, x_bf16>() == "bfloat16[4,8]");
  STATIC_REQUIRE(result_of<call, nn::group_norm<8, ts::num_groups<2>, narrow>, x_f32>() == "bfloat16[4,8]");
  using batch = nn::batch_norm<8, precision<bf16>>;
  STATIC_REQUIRE(result_of<call, batch, x_bf16>() == "bfloat16[4,8]");
  STATIC_REQUIRE(decltype(batch::mean)::element == f32);
}

TEST_CASE("gradients have the types of parameters, whatever is computed in") {
  STATIC_REQUIRE(result_of<of_kernel, nn::linear<8, 4, narrow>, x_f32>() == "float32[8,4]");
  STATIC_REQUIRE(result_of<of_bias, nn::linear<8, 4, narrow>, x_bf16>() == "float32[4]");
  STATIC_REQUIRE(result_of<of_kernel, nn::linear<8, 4, precision<bf16>>, x_bf16>() == "bfloat16[8,4]");
}

TEST_CASE("a layer without a computation type converts nothing, and takes an option about types once") {
  STATIC_REQUIRE(!nn::linear<8, 4>::dtypes::converts);
  STATIC_REQUIRE(ts::Poison<nn::linear<8, 4>::result_type<ts::expr<ts::plain_aval<bf16, shape<4, 8>>(), ts::mesh<>>>>);
  STATIC_REQUIRE(!ts::Poison<nn::linear<8, 4>::result_type<ts::expr<ts::plain_aval<f32, shape<4, 8>>(), ts::mesh<>>>>);
  using allowed = nn::linear<8, 4>::allowed;
  STATIC_REQUIRE(allowed::fit<ts::param_dtype<f32>, ts::compute_dtype<bf16>>());
  STATIC_REQUIRE(allowed::fit<narrow>());
  STATIC_REQUIRE(!allowed::fit<narrow, ts::param_dtype<f32>>());
  STATIC_REQUIRE(!allowed::fit<ts::compute_dtype<bf16>, narrow>());
  STATIC_REQUIRE(!allowed::fit<narrow, narrow>());
}

TEST_CASE("a layer that computes in bfloat16 has the numbers of its operations on converted arrays") {
  static constexpr auto by_hand = [](auto& m, auto x) {
    const auto in = ts::astype<bf16>(x);
    const auto y = ts::matmul(in, ts::astype<bf16>(m.kernel)) + ts::astype<bf16>(m.bias);
    const auto wide = ts::matmul(ts::astype<f64>(in), ts::astype<f64>(ts::astype<bf16>(m.kernel)));
    const auto rounded_later = ts::astype<bf16>(wide) + ts::astype<bf16>(m.bias);
    return std::tuple(m(x), y, rounded_later);
  };
  const auto check_pair = [](const ts::graph::graph& g, std::size_t other) {
    const auto found = run(g, draw_inputs(g));
    CHECK(found[0] == found[other]);
    CHECK(std::abs(found[0][0]) > 0);
  };
  check_pair(trace<by_hand, nn::linear<8, 4, narrow>, x_f32>(), 1);
  check_pair(trace<by_hand, nn::linear<8, 4, precision<f32, bf16, f64>>, x_f32>(), 2);

  static constexpr auto normed = [](auto& m, auto x) {
    const auto centred = x - ts::mean<-1>(x, ts::keepdims);
    const auto spread = ts::mean<-1>(ts::square(centred), ts::keepdims);
    return std::tuple(m(x), ts::astype<bf16>(centred * ts::rsqrt(spread + 1e-6) * m.scale + m.bias));
  };
  check_pair(trace<normed, nn::layer_norm<8, narrow>, x_f32>(), 1);
}
