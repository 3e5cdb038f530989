// SPDX-License-Identifier: Apache-2.0
#include "nn/layer_cases.hpp"

#include <complex>

using namespace layer_cases;

namespace {

using f64 = ts::param_dtype<ts::f64>;
constexpr std::size_t B = 2, T = 4, F = 8;
using tokens = array<ts::shape<B, T, F>>;
using mask_type = array<ts::shape<B, 1, T, T>, ts::bool_>;

template <std::int64_t KvHeads, class... Options>
using attention = ts::nn::multi_head_attention<4, F, ts::num_kv_heads<KvHeads>, f64, Options...>;

inline constexpr auto causally = [](auto& model, auto x, auto... rest) { return model(x, rest..., ts::nn::causal); };
inline constexpr auto& plain_step = weighted<call>;
inline constexpr auto& causal_step = weighted<causally>;

/// kernel^T x + bias for each token.
numbers project(const numbers& x, std::size_t in, const numbers& kernel, const numbers& bias) {
  const std::size_t out = bias.size();
  numbers y;
  for (std::size_t t = 0; t < x.size() / in; ++t)
    for (std::size_t o = 0; o < out; ++o) {
      y.push_back(bias[o]);
      for (std::size_t i = 0; i < in; ++i) y.back() += x[t * in + i] * kernel[i * out + o];
    }
  return y;
}

/// Heads of two features as complex numbers, turned by their position: the first pair turns at speed 1 whatever the
/// base.
numbers turned(numbers heads, std::size_t count) {
  for (std::size_t i = 0; i < heads.size(); i += 2) {
    const auto position = static_cast<double>(i / (2 * count) % T);
    const std::complex<double> z = std::complex<double>(heads[i], heads[i + 1]) * std::polar(1.0, position);
    heads[i] = z.real(), heads[i + 1] = z.imag();
  }
  return heads;
}

/// Four heads of two features, keys of `kv` heads. `sees(b, t, s)` says what a query may look at.
template <class Sees>
numbers naive(const std::vector<numbers>& arrays, const numbers& x, const numbers& source, std::size_t kv, bool rotate,
              Sees sees) {
  numbers q = project(x, F, arrays[0], arrays[1]), k = project(source, F, arrays[2], arrays[3]);
  const numbers v = project(source, F, arrays[4], arrays[5]);
  if (rotate) q = turned(q, 4), k = turned(k, kv);
  numbers mixed;
  for (std::size_t b = 0; b < B; ++b)
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t h = 0; h < 4; ++h) {
        const auto of = [&](const numbers& heads, std::size_t s, std::size_t d) {
          return heads[((b * T + s) * kv + h * kv / 4) * 2 + d];
        };
        double total = 0, sum[2] = {0, 0};
        for (std::size_t s = 0; s < T; ++s) {
          if (!sees(b, t, s)) continue;
          const std::size_t at = ((b * T + t) * 4 + h) * 2;
          const double weight = std::exp((q[at] * of(k, s, 0) + q[at + 1] * of(k, s, 1)) / std::sqrt(2.0));
          total += weight;
          for (std::size_t d = 0; d < 2; ++d) sum[d] += weight * of(v, s, d);
        }
        for (const double each : sum) mixed.push_back(total > 0 ? each / total : 0);
      }
  return project(mixed, 8, arrays[6], arrays[7]);
}

void check_equal(const numbers& found, const numbers& expected) { check_close({found}, {expected}, 1e-13); }

const auto everything = [](std::size_t, std::size_t, std::size_t) { return true; };
const auto before = [](std::size_t, std::size_t t, std::size_t s) { return s <= t; };

}  // namespace

TEST_CASE("attention is softmax(q k^T / sqrt(D)) v head by head") {
  const auto g = trace<plain_step, attention<4>, tokens, tokens>();
  const auto inputs = draw_inputs(g);
  check_equal(run(g, inputs).back(), naive(inputs, inputs[9], inputs[9], 4, false, everything));
  check_differences(g, inputs);
}

TEST_CASE("attention: a causal mask, keys of fewer heads and rotary positions") {
  const auto g = trace<causal_step, attention<2, ts::rotary<100.0>>, tokens, tokens>();
  const auto inputs = draw_inputs(g);
  check_equal(run(g, inputs).back(), naive(inputs, inputs[9], inputs[9], 2, true, before));
  check_differences(g, inputs);
}

TEST_CASE("attention over other tokens with a mask: a query that sees nothing gives the bias, and no NaN anywhere") {
  const auto g = trace<plain_step, attention<2>, tokens, tokens, tokens, mask_type>();
  auto inputs = draw_inputs(g);
  const std::size_t blind = 2;  // this query of the second row
  for (std::size_t s = 0; s < T; ++s) inputs[11][(T + blind) * T + s] = 0;
  const auto sees = [&](std::size_t b, std::size_t t, std::size_t s) { return inputs[11][(b * T + t) * T + s] != 0; };
  const auto found = run(g, inputs);
  check_equal(found.back(), naive(inputs, inputs[9], inputs[10], 2, false, sees));
  for (std::size_t f = 0; f < F; ++f) {
    CHECK(found.back()[(T + blind) * F + f] == inputs[7][f]);
    CHECK(found[9][(T + blind) * F + f] == 0);
  }
  check_differences(g, inputs);
}

TEST_CASE("rotary positions: what two turned vectors give depends on their distance alone") {
  static constexpr auto step = [](auto q, auto k) {
    return std::tuple(ts::einsum<"bthd,bshd->bhts">(ts::nn::rotary_embedding<>(q), ts::nn::rotary_embedding<>(k)));
  };
  using heads = array<ts::shape<1, 5, 1, 8>>;
  const auto g = ts::transform::traced<step, heads, heads>::run();
  numbers q, k;
  for (int t = 0; t < 5; ++t)
    for (int d = 0; d < 8; ++d) q.push_back(std::cos(d)), k.push_back(std::sin(3 * d + 1));
  const auto found = run(g, {q, k})[0];
  for (std::size_t t = 1; t < 5; ++t)
    for (std::size_t s = 1; s < 5; ++s) CHECK(found[t * 5 + s] == Approx(found[(t - 1) * 5 + s - 1]).epsilon(1e-12));
  CHECK(found[1] != Approx(found[0]));
}

TEST_CASE("attention and a transformer block with heads cut over a mesh give the one-device answer") {
  using cut_attention = attention<2, ts::kernel<P<none, "model">>, ts::out_kernel<P<"model">>, ts::rotary<100.0>>;
  using block = ts::nn::transformer_block<F, 4, 16, ts::num_kv_heads<2>, f64>;
  using cut_block = ts::nn::transformer_block<F, 4, 16, ts::num_kv_heads<2>, f64, ts::tensor_parallel<"model">>;
  using cut_tokens = array<ts::shape<B, T, F>, ts::f64, P<"data">, cluster>;
  const auto check = [](const ts::graph::graph& sharded, const ts::graph::graph& whole) {
    const auto inputs = draw_inputs(whole);
    check_close(run(sharded, inputs), run(whole, inputs), 1e-13);
  };
  check(trace<causal_step, cut_attention, cut_tokens, cut_tokens>(),
        trace<causal_step, attention<2, ts::rotary<100.0>>, tokens, tokens>());
  const auto whole = trace<plain_step, block, tokens, tokens>();
  check(trace<plain_step, cut_block, cut_tokens, cut_tokens>(), whole);
  check_differences(whole, draw_inputs(whole));
}

TEST_CASE("a block with heads and hidden features cut costs two all-reduces forward") {
  static constexpr auto forward = [](auto& model, auto x) { return model(x); };
  using block = ts::nn::transformer_block<F, 4, 16, ts::tensor_parallel<"model">>;
  using x = array<ts::shape<B, T, F>, ts::f32, P<"data">, cluster>;
  using program = ts::lowered<forward, ts::nn::bound<block, cluster>, x>;
  STATIC_REQUIRE(program::collectives().all_reduce == 2);
  STATIC_REQUIRE(program::collectives().all_gather == 0);
}
