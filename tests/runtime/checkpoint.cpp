// SPDX-License-Identifier: Apache-2.0
// Checkpointed regions: the same bits, another plan.
#include <tessera/tessera.hpp>

#include <catch2/catch.hpp>

#include <string_view>
#include <tuple>
#include <vector>

namespace ts = tessera;
using ts::none;
using ts::P;

namespace {

using pair_mesh = ts::mesh<ts::axis<"data", 2>>;
using x_type = ts::tensor<ts::f32, ts::shape<8, 16>, P<"data">, pair_mesh>;
using w_type = ts::tensor<ts::f32, ts::shape<16, 16>, P<>, pair_mesh>;
using ws_type = ts::tensor<ts::f32, ts::shape<4, 16, 16>, P<>, pair_mesh>;

inline constexpr auto block = [](auto x, auto w) {
  auto h = ts::checkpoint_name<"hidden">(ts::matmul(x, w));
  auto a = ts::checkpoint_name<"activated">(ts::tanh(h));
  return x + ts::matmul(ts::softmax(a), w);
};
inline constexpr auto plain = [](auto x, auto w) { return block(x, w); };
template <auto Policy>
inline constexpr auto kept = [](auto x, auto w) { return ts::checkpoint<Policy>(block)(x, w); };

/// Two layers that share a weight; value and gradient.
template <auto Block>
inline constexpr auto layers = [](auto x, auto w) { return ts::mean(ts::square(Block(Block(x, w), w))); };
template <auto Block>
inline constexpr auto gradient = [](auto x, auto w) {
  auto [value, slope] = ts::value_and_grad([&](auto v) { return layers<Block>(x, v); })(w);
  return std::tuple(value, slope);
};

template <auto Block>
using program = ts::lowered<gradient<Block>, x_type, w_type>;

struct figures {
  std::int64_t flops = 0;
  int dots = 0;
  int tanhs = 0;
};
template <auto Block>
constexpr figures figures_of() {
  const std::string_view text = program<Block>::text();
  figures found{program<Block>::cost_analysis().flops};
  for (std::size_t i = 0; i < text.size(); ++i) {
    found.dots += text.substr(i).starts_with(" = dot ") ? 1 : 0;
    found.tanhs += text.substr(i).starts_with("tanh") ? 1 : 0;
  }
  return found;
}

constexpr figures none_kept = figures_of<kept<ts::nothing_saveable>>();
constexpr figures dots_kept = figures_of<kept<ts::dots_saveable>>();
constexpr figures all_kept = figures_of<kept<ts::everything_saveable>>();
constexpr figures unwrapped = figures_of<plain>();

}  // namespace

TEST_CASE("A checkpointed plan holds the repeated work, and only that which its policy does not let be kept") {
  STATIC_REQUIRE(unwrapped.dots == 4 + 7);
  STATIC_REQUIRE(all_kept.dots == unwrapped.dots && dots_kept.dots == unwrapped.dots);
  STATIC_REQUIRE(none_kept.dots == unwrapped.dots + 2);  // the first product of each layer; the second is not needed
  STATIC_REQUIRE(none_kept.tanhs == 4);
  STATIC_REQUIRE(none_kept.flops > dots_kept.flops);
}

TEST_CASE("Names choose what is kept") {
  constexpr figures hidden = figures_of<kept<ts::save_only_these_names<"hidden">>>();
  constexpr figures activated = figures_of<kept<ts::save_only_these_names<"activated">>>();
  constexpr figures others = figures_of<kept<ts::save_any_names_but_these<"hidden">>>();
  constexpr figures unknown = figures_of<kept<ts::optional_names<ts::save_only_these_names<"nobody">>>>();
  constexpr figures both = figures_of<
      kept<ts::save_from_both_policies<ts::optional_names<ts::save_only_these_names<"nobody">>, ts::dots_saveable>>>();
  STATIC_REQUIRE(hidden.dots == unwrapped.dots && hidden.tanhs == 4);
  STATIC_REQUIRE(activated.dots == unwrapped.dots && activated.tanhs == 2);
  STATIC_REQUIRE(others.tanhs == activated.tanhs && others.dots == activated.dots);
  STATIC_REQUIRE(unknown.dots == none_kept.dots && both.dots == dots_kept.dots);
}

namespace {

const std::vector<float>& numbers(std::size_t count) {
  static std::vector<float> made;
  made.resize(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = static_cast<float>((i * 7 + 3) % 23) / 23.0F - 0.5F;
  return made;
}

template <const auto& F, class W>
auto run(const W& w) {
  const auto [value, slope] = ts::jit<F>(ts::device_put<ts::shape<8, 16>, P<"data">, pair_mesh>(numbers(128)), w);
  return std::pair(value.item(), slope.to_vector());
}

// A scan over layers, and one over groups of layers, each group checkpointed and each layer in it.
template <auto Block>
inline constexpr auto scanned = [](auto x, auto ws) {
  auto [value, slope] = ts::value_and_grad([&](auto v) {
    return ts::sum(ts::scan([](auto h, auto w) { return std::pair(Block(h, w), none); }, x, v).first);
  })(ws);
  return std::tuple(value, slope);
};
template <auto Outer, auto Inner>
inline constexpr auto grouped = [](auto x, auto ws) {
  auto [value, slope] = ts::value_and_grad([&](auto v) {
    const auto group = [](auto h, auto pair) {
      return ts::scan([](auto c, auto w) { return std::pair(kept<Inner>(c, w), none); }, h, pair).first;
    };
    auto out = ts::scan([&](auto h, auto pair) { return std::pair(ts::checkpoint<Outer>(group)(h, pair), none); }, x,
                        ts::reshape<2, 2, 16, 16>(v));
    return ts::sum(out.first);
  })(ws);
  return std::tuple(value, slope);
};

}  // namespace

TEST_CASE("Values and gradients have the same bits with and without checkpoints") {
  const auto w = ts::device_put<ts::shape<16, 16>, P<>, pair_mesh>(numbers(256));
  const auto expected = run<gradient<plain>>(w);
  CHECK(run<gradient<kept<ts::nothing_saveable>>>(w) == expected);
  CHECK(run<gradient<kept<ts::save_only_these_names<"activated">>>>(w) == expected);
  CHECK(run<gradient<kept<ts::offload_dot_with_no_batch_dims>>>(w) == expected);

  const auto ws = ts::device_put<ts::shape<4, 16, 16>, P<>, pair_mesh>(numbers(1024));
  const auto in_scan = run<scanned<plain>>(ws);
  CHECK(run<grouped<ts::nothing_saveable, ts::everything_saveable>>(ws) == in_scan);
  CHECK(run<grouped<ts::dots_saveable, ts::nothing_saveable>>(ws) == in_scan);
}
