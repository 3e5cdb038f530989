// SPDX-License-Identifier: Apache-2.0
// What operations that take parts of arrays and put arrays together compute, element by element.
#include "runtime/support.hpp"

#include <tessera/ops/create.hpp>
#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/join.hpp>
#include <tessera/ops/slice.hpp>

#include <catch2/catch.hpp>

#include <numeric>

using namespace runtime_test;

namespace {

using one = mesh<>;
using numbers = std::vector<double>;

template <class Shape, dtype D = dtype::f32>
using traced = expr<plain_aval<D, Shape>(), one>;

/// 0, 1, 2, ...
numbers counted(std::int64_t n, double first = 0) {
  numbers result(static_cast<std::size_t>(n));
  std::iota(result.begin(), result.end(), first);
  return result;
}

/// f of parameters of these shapes with elements 0, 1, ... (of the next one 100, 101, ...): extents and elements.
template <class... Arrays, class F>
numbers computed(F f) {
  graph::graph g;
  std::vector<bytes> inputs;
  const auto parameter = [&]<class Array>(std::type_identity<Array>) {
    const double first = 100 * static_cast<double>(inputs.size());
    inputs.push_back(to_bytes(counted(Array::type.size(), first), Array::type.type));
    return Array{{&g, g.add_parameter(Array::type)}};
  };
  std::tuple<Arrays...> arrays{parameter(std::type_identity<Arrays>{})...};
  const auto result = std::apply(f, arrays);
  g.outputs.push_back({result.handle.id, -1});
  return to_numbers(runtime::evaluate(g, inputs)[0], decltype(result)::type.type);
}

/// The element of a row-major array at a position.
double at(const numbers& x, const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& i) {
  std::int64_t place = 0;
  for (std::size_t d = 0; d < extents.size(); ++d) place = place * extents[d] + i[d];
  return x[static_cast<std::size_t>(place)];
}

}  // namespace

TEST_CASE("a slice is what NumPy takes") {
  const auto of = [](auto f) { return computed<traced<shape<3, 4>>>(f); };
  CHECK(of([](auto x) { return slice<1>(x); }) == numbers{4, 5, 6, 7});
  CHECK(of([](auto x) { return slice<none, -1>(x); }) == numbers{3, 7, 11});
  CHECK(of([](auto x) { return slice<-1, 0>(x); }) == numbers{8});
  CHECK(of([](auto x) { return slice<range{0, 2}, range{1, -1}>(x); }) == numbers{1, 2, 5, 6});
  CHECK(of([](auto x) {
          return slice<range{none, none, -1}, range{none, none, -2}>(x);
        }) == numbers{11, 9, 7, 5, 3, 1});
  CHECK(of([](auto x) { return slice<range{none, none, 2}, range{3, 0, -2}>(x); }) == numbers{3, 1, 11, 9});
  CHECK(of([](auto x) { return slice<range{2, 1}>(x); }).empty());
  CHECK(of([](auto x) { return slice<range{}>(x); }) == counted(12));
  CHECK(of([](auto x) { return slice<1>(slice<none, range{1, 3}>(x) + 0.5); }) == numbers{5.5, 6.5});
}

TEST_CASE("flip turns dimensions round and split cuts them up") {
  const auto of = [](auto f) { return computed<traced<shape<2, 4>, dtype::i32>>(f); };
  CHECK(of([](auto x) { return flip<0>(x); }) == numbers{4, 5, 6, 7, 0, 1, 2, 3});
  CHECK(of([](auto x) { return flip<-1>(x); }) == numbers{3, 2, 1, 0, 7, 6, 5, 4});
  CHECK(of([](auto x) { return flip(x); }) == numbers{7, 6, 5, 4, 3, 2, 1, 0});
  CHECK(of([](auto x) { return std::get<1>(split<-1, 2>(x)); }) == numbers{2, 3, 6, 7});
  CHECK(of([](auto x) { return std::get<1>(split<1, 1, 2, 1>(x)); }) == numbers{1, 2, 5, 6});
  CHECK(of([](auto x) {
          const auto [a, b] = split<0, 2>(x);
          return a * 10 + b;
        }) == numbers{4, 15, 26, 37});
}

namespace {

/// What jax.lax.pad says of every padding with entries in [-2, 2] and gaps up to 2, of a row of three.
template <std::int64_t Low, std::int64_t High, std::int64_t Interior>
void check_padding() {
  std::vector<double> wide;
  for (std::int64_t i = 0; i < 3; ++i) {
    wide.push_back(static_cast<double>(i));
    if (i < 2) wide.insert(wide.end(), Interior, -1);
  }
  wide.insert(wide.begin(), Low > 0 ? Low : 0, -1);
  wide.insert(wide.end(), High > 0 ? High : 0, -1);
  if (Low < 0) wide.erase(wide.begin(), wide.begin() - Low);
  if (High < 0) wide.erase(wide.end() + High, wide.end());
  INFO(Low << ", " << High << ", " << Interior);
  CHECK(computed<traced<shape<3>>>([](auto x) { return pad<padding{Low, High, Interior}>(x, -1); }) == wide);
}

}  // namespace

TEST_CASE("pad puts elements around and between, and crops, as jax.lax.pad does") {
  [&]<std::int64_t... I>(std::integer_sequence<std::int64_t, I...>) {
    const auto check = [&]<std::int64_t N>(std::integral_constant<std::int64_t, N>) {
      constexpr std::int64_t low = N % 5 - 2, high = N / 5 % 5 - 2, interior = N / 25;
      if constexpr (low + high + 3 + 2 * interior >= 0) check_padding<low, high, interior>();
    };
    (check(std::integral_constant<std::int64_t, I>{}), ...);
  }
  (std::make_integer_sequence<std::int64_t, 75>{});
  CHECK(computed<traced<shape<2, 2>>, traced<shape<>>>([](auto x, auto fill) {
          return pad<padding{0, 1}, padding{1, 0}>(x, fill + 7);
        }) == numbers{107, 0, 1, 107, 2, 3, 107, 107, 107});
  CHECK(computed<traced<shape<0>, dtype::bool_>>([](auto x) { return pad<padding{1, 1}>(x, true); }) == numbers{1, 1});
}

TEST_CASE("concatenate and stack put arrays one after another") {
  using a = traced<shape<2, 2>>;
  using b = traced<shape<2, 3>>;
  CHECK(computed<a, b>([](auto x, auto y) { return concatenate<1>(x, y); }) ==
        numbers{0, 1, 100, 101, 102, 2, 3, 103, 104, 105});
  CHECK(computed<a, a>([](auto x, auto y) { return concatenate(y, x, x); }) ==
        numbers{100, 101, 102, 103, 0, 1, 2, 3, 0, 1, 2, 3});
  CHECK(computed<a, a>([](auto x, auto y) { return stack(x, y); }) == numbers{0, 1, 2, 3, 100, 101, 102, 103});
  CHECK(computed<a, a>([](auto x, auto y) { return stack<1>(x, y); }) == numbers{0, 1, 100, 101, 2, 3, 102, 103});
  CHECK(computed<a, a>([](auto x, auto y) { return stack<-1>(x, y); }) == numbers{0, 100, 1, 101, 2, 102, 3, 103});
  CHECK(computed<a>([](auto x) { return concatenate<0>(x); }) == counted(4));
  CHECK(computed<a, traced<shape<2, 0>>>([](auto x, auto y) { return concatenate<1>(y, x, y); }) == counted(4));
  using big = traced<shape<40, 50, 60>>;
  const numbers both = computed<big, big>([](auto x, auto y) {
    return concatenate<1>(flip<2>(x), slice<none, range{10, 20}>(y));
  });
  for (std::int64_t i : {0, 17, 39})
    for (std::int64_t j : {0, 49, 50, 59})
      for (std::int64_t k : {0, 31, 59})
        CHECK(at(both, {40, 60, 60}, {i, j, k}) ==
              static_cast<double>(j < 50 ? (i * 50 + j) * 60 + 59 - k : 100 + (i * 50 + j - 40) * 60 + k));
}

TEST_CASE("dimensions of extent 1 come and go, dimensions change places") {
  using cube = traced<shape<2, 1, 3>>;
  CHECK(computed<cube>([](auto x) { return squeeze(expand_dims<0, -1>(x)); }) == counted(6));
  CHECK(computed<cube>([](auto x) { return moveaxis<0, -1>(x); }) == numbers{0, 3, 1, 4, 2, 5});
  CHECK(computed<cube>([](auto x) { return swapaxes<0, 2>(x); }) == numbers{0, 3, 1, 4, 2, 5});
  using box = traced<shape<2, 3, 4>>;
  const numbers turned = computed<box>([](auto x) { return moveaxis<2, 0>(x); });
  for (std::int64_t i = 0; i < 24; ++i)
    CHECK(at(turned, {4, 2, 3}, {i % 4, i / 12, i / 4 % 3}) == static_cast<double>(i));
}

TEST_CASE("arrays are made of nothing") {
  const auto made = [](auto f) { return computed<traced<shape<3, 3>>>(f); };
  CHECK(made([](auto x) { return zeros<shape<2, 2>>(x); }) == numbers{0, 0, 0, 0});
  CHECK(made([](auto x) { return ones<shape<2>, dtype::i32>(x); }) == numbers{1, 1});
  CHECK(made([](auto x) { return full<shape<>, dtype::f64>(x, 0.1); }) == numbers{0.1});
  CHECK(made([](auto x) { return full_like(x, 4); }) == numbers(9, 4.0));
  CHECK(made([](auto x) { return x + ones_like(x) * 2 + zeros_like(x); }) == counted(9, 2));
  CHECK(made([](auto x) { return iota<shape<2, 3>, 1>(x); }) == numbers{0, 1, 2, 0, 1, 2});
  CHECK(made([](auto x) { return iota<shape<2, 3>, 0, dtype::f32>(x); }) == numbers{0, 0, 0, 1, 1, 1});
  CHECK(made([](auto x) { return arange<4>(x); }) == numbers{0, 1, 2, 3});
  CHECK(made([](auto x) { return arange<2, 9, 3>(x); }) == numbers{2, 5, 8});
  CHECK(made([](auto x) { return arange<3, -4, -3>(x); }) == numbers{3, 0, -3});
  CHECK(made([](auto x) { return arange<3, 1>(x); }).empty());
  CHECK(made([](auto x) { return eye<2, 3, 1>(x); }) == numbers{0, 1, 0, 0, 0, 1});
  CHECK(made([](auto x) { return tril(x); }) == numbers{0, 0, 0, 3, 4, 0, 6, 7, 8});
  CHECK(made([](auto x) { return triu<1>(x); }) == numbers{0, 1, 2, 0, 0, 5, 0, 0, 0});
  CHECK(made([](auto x) {
          return slice<none, range{none, none, 2}>(iota<shape<2, 5>, 1>(x));
        }) == numbers{0, 2, 4, 0, 2, 4});
}

TEST_CASE(
    "a base that nobody reads any more is updated in place; slices that elementwise operations read are not copied") {
  graph::graph g;
  const traced<shape<64, 8>> x{{&g, g.add_parameter(traced<shape<64, 8>>::type)}};
  const auto y = concatenate<0>(x * 2, slice<range{0, 32}>(x) + slice<range{none, 31, -1}>(x));
  g.outputs.push_back({y.handle.id, -1});
  const graph::program p = transform::lower(g);
  int updates = 0;
  for (const graph::step& s : p.steps) updates += s.kind == graph::step_kind::update_slice;
  CHECK(updates == 2);
  CHECK(p.steps.size() == 4);
  std::int64_t moved = 0;
  for (const graph::step& s : p.steps) moved += s.bytes;
  const std::int64_t row = 8 * 4;
  // x read and doubled (and the 2), its halves read and added, both results copied to their place in the final array.
  CHECK(moved == row * (64 + 64 + 32 + 32 + 32 + 2 * 64 + 2 * 32) + 4);
  CHECK(p.temporary_bytes == row * (64 + 32));
}
