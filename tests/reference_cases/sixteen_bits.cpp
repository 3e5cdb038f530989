// SPDX-License-Identifier: Apache-2.0
// Section 6.7 and exercise 4 without training: what 16-bit formats hold, products in several precisions, sums one by
// one, and a parameter that is too coarse for its updates.
#include "support.hpp"

#include <catch2/catch.hpp>

namespace small_numbers {

using namespace cases;
using ts::bf16, ts::f16, ts::f32;

using left = ts::tensor<f32, ts::shape<256, 1024>>;
using right = ts::tensor<f32, ts::shape<1024, 256>>;

inline constexpr auto product = [](auto a, auto b) { return ts::matmul(a, b); };
template <ts::dtype D>
inline constexpr auto rounded_product =
    [](auto a, auto b) { return ts::astype<f32>(ts::matmul(ts::astype<D>(a), ts::astype<D>(b))); };
inline constexpr auto wide_product = [](auto a, auto b) {
  return ts::matmul(ts::astype<bf16>(a), ts::astype<bf16>(b), ts::preferred_element_type<f32>);
};

/// max |a b - ref| / max |ref|, where ref is the product in float64.
struct products {
  xt::xarray<float> a = reference::load_npy<float>("s6_7_matmul_a.npy");
  xt::xarray<float> b = reference::load_npy<float>("s6_7_matmul_b.npy");
  std::vector<double> exact = std::vector<double>(256 * 256);

  products() {
    for (std::size_t i = 0; i < 256; ++i)
      for (std::size_t k = 0; k < 1024; ++k)
        for (std::size_t j = 0; j < 256; ++j) exact[256 * i + j] += double{a(i, k)} * double{b(k, j)};
  }

  template <const auto& F>
  double error() const {
    const auto x = ts::device_put<ts::shape<256, 1024>, P<>, ts::mesh<>>(a);
    const auto y = ts::device_put<ts::shape<1024, 256>, P<>, ts::mesh<>>(b);
    const std::vector<float> found = ts::jit<F>(x, y).to_vector();
    double apart = 0, largest = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      apart = std::max(apart, std::abs(double{found[i]} - exact[i]));
      largest = std::max(largest, std::abs(exact[i]));
    }
    return apart / largest;
  }
};

/// Two layers in bfloat16 of float32 weights; biases are zero.
inline constexpr auto forward = [](auto x, auto w0, auto w1) {
  const auto layer = [](auto in, auto w) { return ts::relu(ts::matmul(in, ts::astype<bf16>(w))); };
  return layer(layer(ts::astype<bf16>(x), w0), w1);
};

inline constexpr auto one_by_one = [](auto x) {
  return ts::fori_loop<0, 1000>([&](auto i, auto sum) { return sum + ts::take<0>(x, i); }, ts::zeros_like(ts::sum(x)));
};

/// 100 times w - 0.001 from 1, kept in bfloat16 and in float32.
inline constexpr auto descent = [](auto one) {
  const auto step = [](auto, auto kept) {
    const auto [small, master] = kept;
    return std::tuple{ts::astype<bf16>(ts::astype<f32>(small) - 1e-3F), master - 1e-3F};
  };
  const auto [small, master] = ts::fori_loop<0, 100>(step, std::tuple{ts::astype<bf16>(one), one});
  return std::tuple{ts::astype<f32>(small), master, ts::astype<f32>(ts::astype<bf16>(master))};
};

template <class T>
std::vector<double> limits() {
  constexpr ts::float_info has = ts::finfo<T>();
  return {double(has.bits), double(has.nexp), double(has.nmant), has.eps, has.max, has.tiny, has.smallest_subnormal};
}

}  // namespace small_numbers

using namespace small_numbers;

TEST_CASE("formats hold what their finfo says") {
  CHECK(reference::check("finfo_float32", limits<float>()));
  CHECK(limits<ts::float16>() == std::vector<double>{16, 5, 10, 0x1p-10, 65504, 0x1p-14, 0x1p-24});
  CHECK(reference::check("finfo_bfloat16", limits<ts::bfloat16>()));
  const auto of = [](double x) { return std::vector<double>{float{ts::float16(x)}, float{ts::bfloat16(x)}}; };
  CHECK(reference::check("round_1e-8", of(1e-8)));
  CHECK(std::isinf(of(7e4)[0]));
  CHECK(reference::check("round_7e4", reference::json{std::isinf(of(7e4)[0]) ? "inf" : "finite", of(7e4)[1]}));
  const std::vector<double> sums{float{ts::bfloat16(256) + ts::bfloat16(1)}, float{ts::float16(256) + ts::float16(1)}};
  CHECK(reference::check("256_plus_1", sums));
}

TEST_CASE("products of 16-bit numbers are as exact as their operands and the last rounding") {
  const products data;
  CHECK(reference::check("matmul_error_fp32", data.error<product>()));
  CHECK(reference::check("matmul_error_bf16_out_bf16", data.error<rounded_product<bf16>>()));
  CHECK(reference::check("matmul_error_bf16_acc_fp32", data.error<wide_product>()));
  CHECK(data.error<rounded_product<f16>>() == Approx(4.34e-4).epsilon(0.01));
}

TEST_CASE("layers in bfloat16 of float32 weights") {
  const auto x = ts::device_put<ts::shape<16, 64>, P<>, ts::mesh<>>(reference::load_npy<float>("s6_7_manual_x.npy"));
  const auto w0 = ts::device_put<ts::shape<64, 128>, P<>, ts::mesh<>>(reference::load_npy<float>("s6_7_manual_w0.npy"));
  const auto w1 = ts::device_put<ts::shape<128, 32>, P<>, ts::mesh<>>(reference::load_npy<float>("s6_7_manual_w1.npy"));
  double sum = 0;
  int zeros = 0;
  std::vector<double> row0;
  for (const ts::bfloat16 y : ts::jit<forward>(x, w0, w1).to_vector()) {
    if (row0.size() < 8) row0.push_back(float{y});
    sum += float{y};
    zeros += y == ts::bfloat16(0);
  }
  CHECK(reference::check("manual_bf16_forward", reference::json{{"row0", row0}, {"sum", sum}, {"zeros", zeros}}));
}

TEST_CASE("a sum that is kept in bfloat16 stops growing, a parameter stops moving") {
  const std::vector<ts::bfloat16> ones(1000, ts::bfloat16(1));
  const auto x = ts::device_put<ts::shape<1000>, P<>, ts::mesh<>>(ones);
  CHECK(reference::check("bf16_sequential_sum_1000", double{float{ts::jit<one_by_one>(x).item()}}));
  const auto one = ts::device_put<ts::shape<>, P<>, ts::mesh<>>(std::vector<float>{1});
  const auto [small, master, rounded] = ts::jit<descent>(one);
  CHECK(reference::check("ex4_bf16_vs_master", std::vector<double>{small.item(), master.item(), rounded.item()}));
}
