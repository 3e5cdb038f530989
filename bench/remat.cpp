// SPDX-License-Identifier: Apache-2.0
// Time of a gradient under each checkpoint policy, beside no checkpoint in the same run:
// `remat.<program>.<policy>=ratio` and `remat.<program>.none_ms`. The same kernels, from one stack of layers.
#include "remat/rows.hpp"
#include "support.hpp"

#include <cstdio>

namespace {

namespace ts = tessera;

template <auto Call>
inline constexpr auto mlp_gradient = remat::gradient<remat::stack_loss<Call>>;
template <auto Call>
inline constexpr auto transformer_gradient = remat::gradient<remat::transformer_loss<Call>>;

/// Prints the ratio of each contender to the first.
void compare(const char* program, const std::vector<bench::contender>& contenders) {
  const bench::turns turns(contenders, 9, 1);
  std::printf("remat.%s.none_ms=%.2f\n", program, 1e3 * turns.seconds(0));
  for (std::size_t i = 1; i < contenders.size(); ++i)
    std::printf("remat.%s.%s=%.3f\n", program, contenders[i].name.c_str(), turns.ratio(i, 0));
}

template <class Shape>
auto normal(std::uint64_t seed) {
  std::vector<float> host(static_cast<std::size_t>(Shape::size));
  ts::random::fill_normal(std::span(host), ts::random::make_key(seed), 0);
  return ts::device_put<Shape, ts::P<>, remat::one_device>(host);
}

}  // namespace

int main() {
  using remat::call_checkpointed, remat::call_layer;
  auto mlp = ts::init<ts::nn::stack<16, remat::mlp_layer<256, 1024>>>(ts::nn::rngs{0});
  const auto x = normal<ts::shape<256, 256>>(1);
  compare("mlp", {{"none", [&] { ts::jit<mlp_gradient<call_layer>>(mlp, x); }},
                  {"dots", [&] { ts::jit<mlp_gradient<call_checkpointed<ts::dots_saveable>>>(mlp, x); }},
                  {"nothing", [&] { ts::jit<mlp_gradient<call_checkpointed<ts::nothing_saveable>>>(mlp, x); }}});

  auto blocks = ts::init<remat::transformer<8, 256, 4, 1024>>(ts::nn::rngs{0});
  const auto tokens = normal<ts::shape<8, 128, 256>>(2);
  const auto targets = normal<ts::shape<8, 128, 256>>(3);
  compare(
      "transformer",
      {{"none", [&] { ts::jit<transformer_gradient<call_layer>>(blocks, tokens, targets); }},
       {"dots", [&] { ts::jit<transformer_gradient<call_checkpointed<ts::dots_saveable>>>(blocks, tokens, targets); }},
       {"nothing",
        [&] { ts::jit<transformer_gradient<call_checkpointed<ts::nothing_saveable>>>(blocks, tokens, targets); }}});
}
