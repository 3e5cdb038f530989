// SPDX-License-Identifier: Apache-2.0
// Compiled steps read slices, flips, strides and positions as the interpreter does, on one device and on a mesh.
#include "runtime/support.hpp"

#include <tessera/tessera.hpp>

#include <catch2/catch.hpp>

namespace ts = tessera;
using ts::none, ts::P, ts::padding, ts::range, ts::shape;

namespace {

using one = ts::mesh<>;
using cluster = ts::mesh<ts::axis<"data", 4>>;

}  // namespace

/// Each result reads its operand in another way inside one fused kernel, or moves it.
inline constexpr auto layout_step = [](auto x, auto i) {
  const auto flipped = ts::flip<1>(x) * 2.0F + x;
  const auto strided = ts::slice<none, range{1, none, 2}>(x) - ts::slice<none, range{none, 0, -2}>(x);
  const auto numbered = x + ts::astype<ts::f32>(ts::slice<none, range{3, 40}>(ts::iota<shape<8, 41>, 1>(x)));
  const auto rows = ts::astype<ts::f32>(ts::iota<shape<8, 37>>(x)) * x;
  const auto triangle = ts::tril<-1>(x) + ts::triu<30>(x);
  const auto joined = ts::concatenate<1>(ts::roll<5, 1>(x), ts::exp(ts::slice<none, range{0, 3}>(x)));
  const auto padded = ts::pad<padding{}, padding{2, 1, 1}>(x, -1);
  const auto chosen = ts::take<1>(x, i) + ts::dynamic_slice_in_dim<5, 1>(x, ts::slice<2>(i));
  const auto changed = ts::at<1>(x, i).add(ts::take<1>(x, i));
  return std::tuple(flipped, strided, numbered, rows, triangle, joined, padded, chosen, changed, ts::tile<1, 2>(x));
};

namespace {

template <class Spec, class Mesh>
void compare() {
  std::vector<float> elements(8 * 37);
  for (std::size_t k = 0; k < elements.size(); ++k) elements[k] = std::sin(static_cast<float>(k));
  const std::vector<std::int32_t> indices{3, -1, 33, 3, 0};
  auto x = ts::device_put<shape<8, 37>, Spec, Mesh>(elements);
  auto i = ts::device_put<shape<5>, P<>, Mesh>(indices);
  using step = ts::lowered<layout_step, decltype(x), decltype(i)>;
  const auto results = ts::jit<layout_step>(x, i);
  const std::vector<runtime_test::bytes> inputs{
      runtime_test::to_bytes(std::vector<double>(elements.begin(), elements.end()), ts::f32),
      runtime_test::to_bytes(std::vector<double>(indices.begin(), indices.end()), ts::i32)};
  const auto expected = ts::runtime::evaluate(step::trace(), inputs);
  std::size_t number = 0;
  std::apply(
      [&](const auto&... each) {
        const auto check = [&](const auto& result) {
          const std::vector<float> found = result.to_vector();
          const auto wanted = runtime_test::to_numbers(expected[number], ts::f32);
          INFO("result " << number++);
          REQUIRE(found.size() == wanted.size());
          for (std::size_t k = 0; k < found.size(); ++k)
            CHECK(static_cast<double>(found[k]) == Approx(wanted[k]).epsilon(1e-6));
        };
        (check(each), ...);
      },
      results);
}

}  // namespace

TEST_CASE("Compiled steps that move elements agree with interpreted ones") {
  compare<P<>, one>();
  compare<P<"data">, cluster>();
}
