// SPDX-License-Identifier: Apache-2.0
// Where the masks of dropout are made: in the kernels that use them.
#include <tessera/tessera.hpp>

#include <catch2/catch.hpp>

namespace {

namespace ts = tessera;

template <std::int64_t... Extents>
using array = ts::tensor<ts::f32, ts::shape<Extents...>, ts::P<>, ts::mesh<>>;

struct network {
  ts::nn::linear<256, 512> up;
  ts::nn::dropout<0.1> drop;
  ts::nn::linear<512, 64> down;
  TESSERA_MODULE(network, up, drop, down)

  constexpr auto operator()(auto x) { return down(drop(ts::gelu(up(x)))); }
};
inline constexpr auto loss = [](auto& model, auto x, auto y) { return ts::mean(ts::square(model(x) - y)); };
inline constexpr auto gradients = [](auto& model, auto x, auto y) {
  const auto grads = ts::grad(loss)(model, x, y);
  return std::tuple(ts::reshard<ts::P<>>(grads.up.kernel), ts::reshard<ts::P<>>(grads.down.kernel));
};

/// How often an operation occurs in the instructions of a step.
int occurrences(const ts::graph::program& p, const ts::graph::step& s, ts::graph::op code) {
  if (s.code < 0) return 0;
  const auto first = static_cast<std::size_t>(p.codes[static_cast<std::size_t>(s.code)].first);
  const int sources = p.words[first + 1].value, count = p.words[first + 2].value;
  int found = 0;
  for (int k = 0; k < count; ++k)
    found += p.words[first + static_cast<std::size_t>(4 + 2 * sources + 6 * k)].value == static_cast<int>(code);
  return found;
}

}  // namespace

TEST_CASE("A mask of dropout is made where it is used, forward and backward, and never lies in memory") {
  const auto p = ts::transform::lower(
      ts::transform::traced<gradients, ts::nn::bound<network, ts::mesh<>>, array<256, 256>, array<256, 64>>::run());
  const auto type_of = [&](int access) {
    return p.buffers[static_cast<std::size_t>(p.accesses[static_cast<std::size_t>(access)].buffer)].type;
  };
  int drawing = 0;
  for (const ts::graph::step& s : p.steps) {
    if (occurrences(p, s, ts::graph::op::threefry_bits) == 0) continue;
    ++drawing;
    CHECK(occurrences(p, s, ts::graph::op::select) > 0);
    for (int r = s.first + s.sources; r < s.first + s.sources + s.results; ++r) CHECK(type_of(r) == ts::f32);
  }
  CHECK(drawing == 2);
  for (const ts::graph::buffer& b : p.buffers)
    if (b.type == ts::bool_ || b.type == ts::u32) CHECK(b.bytes < 256 * 512);
}
