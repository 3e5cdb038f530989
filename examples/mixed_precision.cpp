// SPDX-License-Identifier: Apache-2.0
// What 16-bit numbers hold, what a product of them loses, and one network trained in float32, bfloat16 and float16 on
// float32 weights: tables, and an SVG picture of the losses, of what a loss scale saves, and of the scale over time.
#include <support/args.hpp>
#include <support/svg_chart.hpp>

#include <tessera/tessera.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

namespace ts = tessera;
using ts::bf16, ts::f16, ts::f32, ts::P;

namespace {

/// Kept in float32, computed in D.
template <ts::dtype D>
struct network {
  ts::nn::linear<8, 64, ts::precision<f32, D>> first;
  ts::nn::linear<64, 64, ts::precision<f32, D>> second;
  ts::nn::linear<64, 1, ts::precision<f32, D>> third;
  TESSERA_MODULE(network, first, second, third)

  constexpr auto operator()(auto x) const { return third(ts::tanh(second(ts::tanh(first(x))))); }
};

/// The loss of a 16-bit prediction is computed in float32.
inline constexpr auto loss = [](auto& model, auto x, auto y) {
  return ts::mean(ts::square(ts::astype<f32>(model(x)) - y));
};

inline constexpr auto train_step = [](auto& model, auto& optimizer, auto& scale, auto x, auto y) {
  auto [l, grads] = scale.value_and_grad(loss)(model, x, y);
  scale.update(optimizer, model, grads);
  return l;
};

/// The gradient of a loss that counts 1e-4, with a scale.
inline constexpr auto small_gradient = [](auto& model, auto& scale, auto x, auto y) {
  const auto part = [](auto& m, auto a, auto b) { return loss(m, a, b) * 1e-4F; };
  auto [l, grads] = scale.value_and_grad(part)(model, x, y);
  return std::tuple{ts::reshard<P<>>(grads.first.kernel), ts::reshard<P<>>(grads.second.kernel),
                    ts::reshard<P<>>(grads.third.kernel)};
};

/// One product with operands and results of several types.
inline constexpr auto products = [](auto a, auto b) {
  const auto in = [&]<ts::dtype D>(ts::preferred_element_type_t<D>, auto... options) {
    return ts::astype<f32>(ts::matmul(ts::astype<D>(a), ts::astype<D>(b), options...));
  };
  using ts::preferred_element_type;
  return std::tuple{ts::matmul(a, b), in(preferred_element_type<bf16>),
                    in(preferred_element_type<bf16>, preferred_element_type<f32>), in(preferred_element_type<f16>)};
};

struct batch {
  ts::tensor<f32, ts::shape<512, 8>> x;
  ts::tensor<f32, ts::shape<512, 1>> y;
};

/// x uniform in [-2, 2), y the sine of the sum of a row.
batch drawn(unsigned seed) {
  std::vector<float> x(512 * 8), y(512);
  ts::random::fill_uniform(std::span(x), ts::random::make_key(seed), 0, -2.0F, 2.0F);
  for (std::size_t row = 0; row < y.size(); ++row) {
    float sum = 0;
    for (std::size_t i = 0; i < 8; ++i) sum += x[8 * row + i];
    y[row] = std::sin(sum);
  }
  return {ts::device_put<ts::shape<512, 8>, P<>, ts::mesh<>>(x), ts::device_put<ts::shape<512, 1>, P<>, ts::mesh<>>(y)};
}

template <class T>
void print_format() {
  constexpr ts::float_info has = ts::finfo<T>();
  std::printf("%-9s %4d %8d %8d %10.3g %11.4g %11.4g %12.4g\n", has.dtype.data(), has.bits, has.nexp, has.nmant,
              has.eps, has.max, has.tiny, has.smallest_subnormal);
}

void print_formats() {
  std::printf("%-9s %4s %8s %8s %10s %11s %11s %12s\n", "format", "bits", "exponent", "mantissa", "eps", "max", "tiny",
              "subnormal");
  print_format<float>(), print_format<ts::float16>(), print_format<ts::bfloat16>();
  const auto both = [](const char* what, ts::float16 half, ts::bfloat16 brain) {
    std::printf("%-9s float16 %g, bfloat16 %g\n", what, static_cast<double>(half), static_cast<double>(brain));
  };
  both("1e-8", ts::float16(1e-8), ts::bfloat16(1e-8));
  both("7e4", ts::float16(7e4), ts::bfloat16(7e4));
  both("256 + 1", ts::float16(256) + ts::float16(1), ts::bfloat16(256) + ts::bfloat16(1));
}

/// The largest error of each product against float64, a share of the largest element.
void print_product_errors() {
  constexpr std::size_t M = 256, K = 1024, N = 256;
  std::vector<float> a(M * K), b(K * N);
  ts::random::fill_normal(std::span(a), ts::random::make_key(0));
  ts::random::fill_normal(std::span(b), ts::random::make_key(1));
  std::vector<double> exact(M * N);
  for (std::size_t i = 0; i < M; ++i)
    for (std::size_t k = 0; k < K; ++k)
      for (std::size_t j = 0; j < N; ++j)
        exact[i * N + j] += static_cast<double>(a[i * K + k]) * static_cast<double>(b[k * N + j]);
  const double largest = std::abs(*std::ranges::max_element(exact, {}, [](double x) { return std::abs(x); }));
  const auto print = [&](const char* name, const auto& found) {
    const std::vector<float> y = found.to_vector();
    double apart = 0;
    for (std::size_t i = 0; i < y.size(); ++i) apart = std::max(apart, std::abs(static_cast<double>(y[i]) - exact[i]));
    std::printf("%-32s %.2e\n", name, apart / largest);
  };
  const auto [wide, brain, brain_wide, half] =
      ts::jit<products>(ts::device_put<ts::shape<256, 1024>, P<>, ts::mesh<>>(a),
                        ts::device_put<ts::shape<1024, 256>, P<>, ts::mesh<>>(b));
  std::printf("\n%-32s %s\n", "product 256x1024 by 1024x256", "error");
  print("float32", wide);
  print("bfloat16, result bfloat16", brain);
  print("bfloat16, result float32", brain_wide);
  print("float16, result float16", half);
}

struct training {
  std::vector<double> step, log_loss, log_scale;
  double first = 0, last = 0, skipped = 0;
};

template <ts::dtype D, class Scale>
training train(const batch& data, int steps, Scale scale) {
  auto model = ts::init<network<D>>(ts::nn::rngs{.params = 0});
  auto optimizer = ts::nn::optimizer<ts::nn::param>(model, ts::optim::adam(3e-3));
  training seen;
  for (int i = 0; i < steps; ++i) {
    seen.log_scale.push_back(std::log2(static_cast<double>(ts::nn::to_vector(scale.scale)[0])));
    const auto l = static_cast<double>(ts::jit<train_step>(model, optimizer, scale, data.x, data.y).item());
    if (i == 0) seen.first = l;
    seen.last = l;
    seen.step.push_back(i);
    seen.log_loss.push_back(std::log10(l));
  }
  if constexpr (requires { scale.skipped_steps; })
    seen.skipped = static_cast<double>(ts::nn::to_vector(scale.skipped_steps)[0]);
  return seen;
}

void print_training(const char* name, const training& seen) {
  std::printf("%-9s %10.4f %12.5f %10.0f %12.0f\n", name, seen.first, seen.last, seen.skipped, seen.log_scale.back());
}

template <ts::dtype D>
std::vector<float> gradient(const batch& data, double scale) {
  auto model = ts::init<network<D>>(ts::nn::rngs{.params = 0});
  const auto found = ts::jit<small_gradient>(model, ts::nn::make_static_loss_scale(scale), data.x, data.y);
  std::vector<float> all;
  std::apply(
      [&](const auto&... arrays) {
        const auto append = [&](const std::vector<float>& x) { all.insert(all.end(), x.begin(), x.end()); };
        (append(arrays.to_vector()), ...);
      },
      found);
  return all;
}

/// What becomes 0 in float16, and how far the rest is from the float32 gradient, by the scale's logarithm.
examples::chart underflow(const batch& data) {
  const std::vector<float> exact = gradient<f32>(data, 1);
  const float largest = std::abs(*std::ranges::max_element(exact, {}, [](float x) { return std::abs(x); }));
  std::printf("\nlargest gradient of 1e-4 times the loss: %.2e; smallest normal float16: %.2e\n",
              static_cast<double>(largest), ts::finfo<ts::float16>().tiny);
  std::printf("%-9s %10s %10s\n", "scale", "lost", "error");
  examples::chart drawn{"Gradients in float16", "log2 of the scale", "percent", {}};
  std::vector<double> at, lost_share, error;
  for (int power = 0; power <= 32; power += 2) {
    const std::vector<float> found = gradient<f16>(data, std::ldexp(1.0, power));
    double lost = 0, apart = 0, squares = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const double off = static_cast<double>(found[i]) - static_cast<double>(exact[i]);
      lost += found[i] == 0 && exact[i] != 0 ? 1 : 0;
      apart += off * off, squares += static_cast<double>(exact[i]) * static_cast<double>(exact[i]);
    }
    at.push_back(power);
    lost_share.push_back(100 * lost / static_cast<double>(exact.size()));
    error.push_back(100 * std::sqrt(apart / squares));
    std::printf("2^%-7d %9.1f%% %10.2e\n", power, lost_share.back(), error.back() / 100);
  }
  drawn.line("lost to 0", at, lost_share);
  drawn.line("relative error", at, error);
  return drawn;
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 400;
  unsigned seed = 3;
  std::string out = "mixed_precision.svg";
  examples::args args{"mixed_precision", "Trains an 8-64-64-1 network in float32, bfloat16 and float16."};
  args.number("--steps", steps, 1, 100'000, "steps of each training");
  args.number("--seed", seed, 0U, 4294967295U, "of the batch");
  args.text("--out", out, "FILE", "the picture");
  args.parse_or_exit(argc, argv);

  print_formats();
  print_product_errors();

  const batch data = drawn(seed);
  std::printf("\n%-9s %10s %12s %10s %12s\n", "computed", "first loss", "final loss", "skipped", "log2 scale");
  const training wide = train<f32>(data, steps, ts::nn::make_static_loss_scale(1));
  print_training("float32", wide);
  const training brain = train<bf16>(data, steps, ts::nn::make_static_loss_scale(1));
  print_training("bfloat16", brain);
  const training half = train<f16>(data, steps, ts::nn::make_loss_scale({.initial = 0x1p24, .period = 50}));
  print_training("float16", half);

  examples::chart losses{"Training on float32 weights", "step", "log10 of the mean squared error", {}};
  losses.line("float32", wide.step, wide.log_loss);
  losses.line("bfloat16", brain.step, brain.log_loss);
  losses.line("float16, scaled", half.step, half.log_loss);
  examples::chart scale{"Loss scale of float16", "step", "log2 of the scale", {}};
  scale.line("scale", half.step, half.log_scale);
  examples::write_svg(out, {losses, underflow(data), scale});
  std::printf("picture: %s\n", out.c_str());
}
