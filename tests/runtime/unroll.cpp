// SPDX-License-Identifier: Apache-2.0
// Scans with several trips in one body give the bits of plain ones.
#include <tessera/tessera.hpp>

#include <tessera/runtime/evaluate.hpp>

#include <catch2/catch.hpp>

#include <cstring>
#include <vector>

namespace ts = tessera;
using ts::none, ts::P;

namespace {

using pair_mesh = ts::mesh<ts::axis<"x", 2>>;
template <class Shape, class Spec = P<>>
using array = ts::tensor<ts::f32, Shape, Spec, pair_mesh>;
using bytes = std::vector<std::byte>;

bytes numbers(std::size_t count, int seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = 0.1F * static_cast<float>((static_cast<int>(i) * 7 + seed) % 13) - 0.6F;
  bytes all(count * sizeof(float));
  std::memcpy(all.data(), values.data(), all.size());
  return all;
}

template <const auto& Step, class... Args>
std::vector<bytes> run(const std::vector<bytes>& inputs) {
  return ts::runtime::evaluate(ts::transform::traced<Step, Args...>::run(), inputs);
}

inline constexpr auto body = [](auto h, auto slice) {
  auto next = ts::tanh(ts::matmul(h, slice.first)) + slice.second;
  return std::pair(next, std::tuple(ts::sum<0>(next), next * 2.0));
};

/// Value, stacked outputs and gradients of a scan with these options.
template <auto... Options>
inline constexpr auto step = [](auto x, auto w, auto b) {
  const auto loss = [&](auto weights) {
    auto [last, outputs] = ts::scan(body, x, std::pair(weights, b), Options...);
    return ts::sum(last) + ts::sum(ts::square(std::get<0>(outputs)));
  };
  auto [last, outputs] = ts::scan(body, x, std::pair(w, b), Options...);
  auto [value, gradient] = ts::value_and_grad(loss)(w);
  return std::tuple(last, std::get<0>(outputs), std::get<1>(outputs), value, gradient);
};

struct layer {
  ts::nn::variable<ts::nn::param, ts::f32, ts::shape<4, 4>> weight;
  TESSERA_MODULE(layer, weight)
};
template <auto... Options>
inline constexpr auto stack_step = [](auto& layers, auto x) {
  return ts::scan([](auto h, auto each) { return std::pair(ts::tanh(ts::matmul(h, each.weight)), none); }, x, layers,
                  Options...)
      .first;
};

}  // namespace

TEST_CASE("Unrolled scans give the values, outputs and gradients of plain ones, forwards and backwards") {
  const std::vector<bytes> inputs{numbers(8, 1), numbers(6 * 16, 2), numbers(6 * 4, 3)};
  using x = array<ts::shape<2, 4>, P<"x">>;
  using w = array<ts::shape<6, 4, 4>>;
  using b = array<ts::shape<6, 4>>;
  const auto plain = run<step<>, x, w, b>(inputs);
  CHECK(run<step<ts::unroll<2>>, x, w, b>(inputs) == plain);
  CHECK(run<step<ts::unroll<3>>, x, w, b>(inputs) == plain);
  CHECK(run<step<ts::unroll<6>>, x, w, b>(inputs) == plain);
  const auto backwards = run<step<ts::reverse>, x, w, b>(inputs);
  CHECK(run<step<ts::reverse, ts::unroll<3>>, x, w, b>(inputs) == backwards);
  CHECK(backwards != plain);
}

TEST_CASE("A stack of layers may be unrolled") {
  using layers = ts::nn::bound<ts::nn::stack<4, layer>, pair_mesh>;
  using x = array<ts::shape<2, 4>>;
  const std::vector<bytes> inputs{numbers(4 * 16, 5), numbers(8, 1)};
  CHECK(run<stack_step<ts::unroll<2>>, layers, x>(inputs) == run<stack_step<>, layers, x>(inputs));
}
