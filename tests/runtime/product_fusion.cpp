// SPDX-License-Identifier: Apache-2.0
// Products with parts give the bits of the same steps one after the other.
#include "runtime/random_program.hpp"

#include <tessera/tessera.hpp>

#include <limits>
#include <numeric>

using namespace runtime_test;

namespace {

constexpr transform::product_limits everything{.elements = 1, .row = 1, .depth = 1};
constexpr transform::product_limits nothing{.elements = std::numeric_limits<std::int64_t>::max()};

std::array<int, 4> parts_of(const graph::graph& trace) {
  std::array<int, 4> found{};
  for (const graph::step& s : transform::lower(trace, transform::grouping::by_rows, everything).steps)
    ++found[static_cast<std::size_t>(s.part)];
  return found;
}

/// Products of all forms, with operands that are made, and work on what they make.
inline constexpr auto step = [](auto x, auto w, auto b) {
  auto h = gelu(matmul(relu(x), w) + b);
  auto back = matmul(h - 0.5, transpose<1, 0>(w * 2.0));
  auto outer = matmul(transpose<1, 0>(x * 0.25), sign(h));
  auto grouped = einsum<"bij,bjk->bik">(reshape<2, 24, 96>(-x), reshape<2, 96, 40>(concatenate<0>(w, w) + 1.0));
  return std::tuple(tessera::tanh(back) + x, square(outer), tessera::exp(grouped * 0.01) + 1.0);
};

/// The rows of x are cut, so shards are groups of one product.
inline constexpr auto rows_step = [](auto x, auto w, auto b) { return gelu(matmul(relu(x), w) + b); };
using data4 = tessera::mesh<axis<"data", 4>>;

/// What interpreted steps make of arguments of these types, without parts of products.
template <const auto& Step, class... Args>
std::vector<bytes> one_after_the_other(const std::vector<bytes>& inputs) {
  return runtime::evaluate(transform::traced<Step, Args...>::run(), inputs, transform::grouping::none, nothing);
}

std::vector<float> numbers(std::int64_t n) {
  std::vector<float> made(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<float>(i * 37 % 101) / 64 - 0.75f;
  return made;
}

bytes bytes_of(const std::vector<float>& values) {
  bytes made(values.size() * sizeof(float));
  std::memcpy(made.data(), values.data(), made.size());
  return made;
}

}  // namespace

TEST_CASE("random programs with random shardings give the same bits with parts of products and without") {
  const std::vector<mesh_value> meshes{data_mesh(1), data_mesh(2), grid(2, 2), grid(2, 4), data_mesh(8)};
  std::array<int, 4> met{};
  for (unsigned seed = 0; seed < 240; ++seed) {
    const program p = program_writer(seed, meshes[seed % meshes.size()]).write();
    INFO("seed " << seed);
    CHECK(runtime::evaluate(p.g, p.inputs, transform::grouping::by_rows, everything) ==
          runtime::evaluate(p.g, p.inputs, transform::grouping::none, nothing));
    const auto here = parts_of(p.g);
    for (std::size_t i = 0; i < met.size(); ++i) met[i] += here[i];
  }
  for (int count : met) CHECK(count > 5);
}

TEST_CASE("compiled steps give the bits of interpreted ones without parts, for all forms of products") {
  const auto x = numbers(48 * 96), w = numbers(96 * 40), b = numbers(40);
  const std::vector inputs{bytes_of(x), bytes_of(w), bytes_of(b)};
  SECTION("on one device") {
    const auto tx = device_put<shape<48, 96>, P<>, tessera::mesh<>>(x);
    const auto tw = device_put<shape<96, 40>, P<>, tessera::mesh<>>(w);
    const auto tb = device_put<shape<40>, P<>, tessera::mesh<>>(b);
    const auto expected = one_after_the_other<step, decltype(tx), decltype(tw), decltype(tb)>(inputs);
    const auto [back, outer, grouped] = jit<step>(tx, tw, tb);
    CHECK(bytes_of(back.to_vector()) == expected[0]);
    CHECK(bytes_of(outer.to_vector()) == expected[1]);
    CHECK(bytes_of(grouped.to_vector()) == expected[2]);
  }
  SECTION("on four") {
    const auto tx = device_put<shape<48, 96>, P<"data">, data4>(x);
    const auto tw = device_put<shape<96, 40>, P<>, data4>(w);
    const auto tb = device_put<shape<40>, P<>, data4>(b);
    const auto expected = one_after_the_other<rows_step, decltype(tx), decltype(tw), decltype(tb)>(inputs);
    CHECK(bytes_of(jit<rows_step>(tx, tw, tb).to_vector()) == expected[0]);
  }
}
