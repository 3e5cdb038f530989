// SPDX-License-Identifier: Apache-2.0
// Attention as a step runs it, over blocks of rows, beside the same kernels with scores and weights in memory:
// `attention.<part>.T<length>=time ms ratio=how often faster products=<share of the other's time that the two products
// of a forward pass take alone>`, in one run.
#include <tessera/kernels/gemm.hpp>
#include <tessera/kernels/parallel.hpp>
#include <tessera/kernels/softmax.hpp>
#include <tessera/tessera.hpp>

#include "support.hpp"

#include <cstdio>
#include <limits>

namespace {

namespace ts = tessera;
namespace kernels = ts::kernels;

constexpr std::int64_t heads = 8, head_dim = 64;

template <std::int64_t T>
using tokens = ts::tensor<ts::f32, ts::shape<1, T, heads, head_dim>, ts::P<>, ts::mesh<>>;

inline constexpr auto forward = [](auto q, auto k, auto v) { return ts::nn::dot_product_attention(q, k, v); };
inline constexpr auto causal = [](auto q, auto k, auto v) {
  return ts::nn::dot_product_attention(q, k, v, ts::nn::causal);
};
inline constexpr auto causal_gradient = [](auto q, auto k, auto v, auto u) {
  const auto [value, gradients] = ts::value_and_grad([&](auto qkv) {
    const auto& [a, b, c] = qkv;
    return ts::sum(ts::nn::dot_product_attention(a, b, c, ts::nn::causal) * u);
  })(std::tuple(q, k, v));
  return std::pair(value, gradients);
};

/// Arrays [heads][T][head_dim] and [heads][T][T], and one step after the other over all of them.
struct written_out {
  std::int64_t T;
  std::vector<float> q, k, v, u, scores, weights, mixed, dq, dk, dv, d_weights;
  std::vector<char> visible;

  explicit written_out(std::int64_t length) : T(length) {
    const auto narrow = static_cast<std::size_t>(heads * T * head_dim), wide = static_cast<std::size_t>(heads * T * T);
    for (auto* each : {&q, &k, &v, &u, &mixed, &dq, &dk, &dv}) each->resize(narrow, 0.01F);
    for (auto* each : {&scores, &weights, &d_weights}) each->resize(wide);
    for (std::size_t i = 0; i < narrow; ++i) {
      q[i] = 0.01F * static_cast<float>(i % 97), k[i] = 0.01F * static_cast<float>(i % 89);
      v[i] = 0.01F * static_cast<float>(i % 83), u[i] = 0.01F * static_cast<float>(i % 79);
    }
    for (std::int64_t i = 0; i < T; ++i)
      for (std::int64_t j = 0; j < T; ++j) visible.push_back(j <= i ? 1 : 0);
  }

  void multiply(std::int64_t m, std::int64_t n, std::int64_t depth, const std::vector<float>& a, bool a_turned,
                const std::vector<float>& b, bool b_turned, std::vector<float>& c) const {
    kernels::gemm_problem<float> p;
    p.m = m, p.n = n, p.k = depth;
    p.a = a.data(), p.b = b.data(), p.c = c.data();
    p.a_transposed = a_turned, p.b_transposed = b_turned;
    p.lda = a_turned ? m : depth, p.ldb = b_turned ? depth : n, p.ldc = n;
    p.groups = heads, p.a_stride = m * depth, p.b_stride = depth * n, p.c_stride = m * n;
    kernels::gemm(p, true);
  }

  void mask(std::vector<float>& array, float hidden, float scale) const {
    kernels::parallel_for(heads * T, true, [&](std::int64_t row) {
      float* const at = array.data() + row * T;
      const char* const see = visible.data() + row % T * T;
      for (std::int64_t j = 0; j < T; ++j) at[j] = see[j] != 0 ? at[j] * scale : hidden;
    });
  }

  /// What no way of computing attention without a mask saves.
  void products_alone() {
    multiply(T, T, head_dim, q, false, k, true, scores);
    multiply(T, head_dim, T, weights, false, v, false, mixed);
  }

  void forward(bool masked) {
    multiply(T, T, head_dim, q, false, k, true, scores);
    if (masked) mask(scores, -std::numeric_limits<float>::infinity(), 1);
    kernels::softmax(scores.data(), weights.data(), heads * T, T, true);
    multiply(T, head_dim, T, weights, false, v, false, mixed);
  }

  void backward() {
    multiply(T, head_dim, T, weights, true, u, false, dv);
    multiply(T, T, head_dim, u, false, v, true, d_weights);
    kernels::softmax_backward(weights.data(), d_weights.data(), scores.data(), heads * T, T, true);
    mask(scores, 0, 0.125F);
    multiply(T, head_dim, T, scores, false, k, false, dq);
    multiply(T, head_dim, T, scores, true, q, false, dk);
  }
};

template <std::int64_t T>
tokens<T> random_tokens(std::uint64_t seed) {
  std::vector<float> host(static_cast<std::size_t>(T * heads * head_dim));
  ts::random::fill_normal(std::span(host), ts::random::make_key(seed), 0);
  return ts::device_put<ts::shape<1, T, heads, head_dim>, ts::P<>, ts::mesh<>>(host);
}

void report(const char* part, std::int64_t length, const std::vector<bench::contender>& contenders) {
  const bench::turns turns(contenders, 9, 2);
  std::printf("attention.%s.T%d=%.3f ms ratio=%.2f peer=written_out", part, static_cast<int>(length),
              1e3 * turns.seconds(0), turns.ratio(1, 0));
  if (turns.size() > 2) std::printf(" products=%.2f", turns.ratio(2, 1));
  std::printf("\n");
}

template <std::int64_t T>
void compare() {
  const auto q = random_tokens<T>(1), k = random_tokens<T>(2), v = random_tokens<T>(3), u = random_tokens<T>(4);
  written_out peer(T);
  report("forward", T,
         {{"ours", [&] { ts::jit<forward>(q, k, v); }},
          {"peer", [&] { peer.forward(false); }},
          {"products", [&] { peer.products_alone(); }}});
  report("causal", T, {{"ours", [&] { ts::jit<causal>(q, k, v); }}, {"peer", [&] { peer.forward(true); }}});
  report("causal_gradient", T, {{"ours", [&] { ts::jit<causal_gradient>(q, k, v, u); }}, {"peer", [&] {
                                                                                            peer.forward(true);
                                                                                            peer.backward();
                                                                                          }}});
}

}  // namespace

int main() {
  compare<256>();
  compare<1024>();
}
