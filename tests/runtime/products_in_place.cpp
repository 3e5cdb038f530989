// SPDX-License-Identifier: Apache-2.0
// Products that read and write matrices where others need them have the bits of products beside copies.
#include <tessera/runtime/evaluate.hpp>
#include <tessera/tessera.hpp>

#include "kernels/support.hpp"
#include "random_inputs.hpp"

#include <catch2/catch.hpp>

namespace {

using kernel_test::on_threads;
namespace ts = tessera;
using ts::none, ts::P;
using ts::transform::grouping;

template <class Shape, ts::dtype D = ts::f32, class Spec = P<>, class Mesh = ts::mesh<>>
using array = ts::tensor<D, Shape, Spec, Mesh>;

/// Self-attention of H heads over tokens, with one product for queries, keys and values; gradients.
template <std::int64_t H>
inline constexpr auto attention_step = [](auto x, auto w, auto out, auto u) {
  return ts::grad([&](auto all) {
    const auto& [in, kernel, last] = all;
    constexpr auto& dims = decltype(x)::type.dims;
    constexpr std::int64_t B = dims[0].extent, T = dims[1].extent, D = dims[2].extent;
    const auto heads = [](auto each) { return ts::reshape<B, T, H, D / H>(each); };
    const auto [q, k, v] = ts::split<-1, 3>(ts::matmul(in, kernel));
    const auto scores = ts::einsum<"bthd,bshd->bhts">(heads(q), heads(k));
    const auto mixed = ts::einsum<"bhts,bshd->bthd">(ts::softmax(scores), heads(v));
    return ts::sum(ts::matmul(ts::reshape<B, T, D>(mixed), last) * u);
  })(std::tuple(x, w, out));
};

/// Products whose results are turned, and whose operands are parts of larger arrays.
inline constexpr auto turned_step = [](auto x, auto y) {
  const auto turned = ts::transpose<0, 2, 1>(ts::einsum<"gij,gjk->gik">(x, y));
  const auto part = ts::slice<ts::range{0, 3}, ts::range{2, 7}, ts::range{1, 9}>(y);
  return std::tuple(turned, ts::einsum<"gij,gkj->gik">(ts::transpose<0, 2, 1>(x), ts::transpose<0, 2, 1>(y)),
                    ts::einsum<"gjk,gjl->gkl">(part, part));
};

/// Heads that are too large to be read scattered.
inline constexpr auto large_heads_step = [](auto q, auto k, auto v, auto u) {
  return ts::grad([&](auto qkv) {
    const auto& [a, b, c] = qkv;
    return ts::sum(ts::nn::dot_product_attention(a, b, c, ts::nn::causal) * u);
  })(std::tuple(q, k, v));
};

int copies(const ts::graph::program& p) {
  int n = 0;
  for (const ts::graph::step& s : p.steps) {
    if (s.kind == ts::graph::step_kind::update_slice) ++n;
    if (s.kind != ts::graph::step_kind::fused) continue;
    const auto first = static_cast<std::size_t>(p.codes[static_cast<std::size_t>(s.code)].first);
    const int sources = p.words[first + 1].value, count = p.words[first + 2].value;
    bool all = true;
    for (int i = 0; i < count; ++i)
      all &= p.words[first + static_cast<std::size_t>(ts::graph::instruction_word(sources, i))].value ==
             static_cast<int>(ts::graph::op::copy);
    n += all;
  }
  return n;
}

/// Runs a step with products in place and without, grouped and alone, on one thread and on four: one set of bits.
/// Returns the copies that are left.
int check_same_bits(const ts::graph::graph& g) {
  const auto inputs = runtime_test::random_inputs(g, 11, 1);
  const auto expected = ts::runtime::evaluate(g, inputs, grouping::none, {.in_place = false});
  CHECK((ts::runtime::evaluate(g, inputs, grouping::none) == expected));
  CHECK((ts::runtime::evaluate(g, inputs, grouping::by_rows, {.in_place = false}) == expected));
  for (const int threads : {1, 4}) on_threads(threads, [&] { CHECK((ts::runtime::evaluate(g, inputs) == expected)); });
  const ts::graph::program in_place = ts::transform::lower(g);
  const ts::graph::program beside = ts::transform::lower(g, grouping::by_rows, {.in_place = false});
  CHECK(copies(in_place) < copies(beside));
  CHECK(in_place.temporary_bytes <= beside.temporary_bytes);
  return copies(in_place);
}

}  // namespace

TEST_CASE("Heads of attention are read where they lie in the product of all, and their gradients written there") {
  using tokens = array<ts::shape<2, 96, 48>>;
  using doubles = array<ts::shape<3, 40, 12>, ts::f64>;
  const int left = check_same_bits(ts::transform::traced<attention_step<4>, tokens, array<ts::shape<48, 144>>,
                                                         array<ts::shape<48, 48>>, tokens>::run());
  CHECK(left <= 2);  // what goes into the last product is put together once forward and once backward
  check_same_bits(ts::transform::traced<attention_step<3>, doubles, array<ts::shape<12, 36>, ts::f64>,
                                        array<ts::shape<12, 12>, ts::f64>, doubles>::run());
}

TEST_CASE("Queries and keys that are copied for a product are not copied again for their gradients") {
  using heads = array<ts::shape<1, 528, 4, 64>>;
  const int left = check_same_bits(ts::transform::traced<large_heads_step, heads, heads, heads, heads>::run());
  CHECK(left == 3);  // queries with keys, values, and what comes from behind
}

TEST_CASE("Heads on a mesh's devices are read where they lie") {
  using mesh = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 2>>;
  using tokens = array<ts::shape<4, 64, 32>, ts::f32, P<"data">, mesh>;
  check_same_bits(ts::transform::traced<attention_step<4>, tokens, array<ts::shape<32, 96>, ts::f32, P<>, mesh>,
                                        array<ts::shape<32, 32>, ts::f32, P<>, mesh>, tokens>::run());
}

TEST_CASE("Products write transposed results by changing sides, and read parts of arrays") {
  const auto g = ts::transform::traced<turned_step, array<ts::shape<3, 9, 9>>, array<ts::shape<3, 9, 11>>>::run();
  check_same_bits(g);
}
