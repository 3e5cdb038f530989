// SPDX-License-Identifier: Apache-2.0
// Gradients through the sums of a shard_map, in numbers: none is scaled by the number of devices, wherever it is taken.
#include "runtime/support.hpp"

#include <tessera/ops.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <catch2/catch.hpp>

#include <tuple>

using namespace runtime_test;
namespace ts = tessera;
using numbers = std::vector<double>;

namespace {

template <std::int64_t N>
using line = mesh<axis<"x", N>>;

/// What `f(w, data)` gives on N devices for w = 1 and data that is 0 on all devices but the last one, where it is 1.
template <std::int64_t N, class F>
std::vector<numbers> run(F f) {
  using weight = expr<tensor<dtype::f64, shape<>, P<>, line<N>>::type, line<N>>;
  using data = expr<tensor<dtype::f64, shape<N>, P<"x">, line<N>>::type, line<N>>;
  graph::graph g;
  g.mesh = line<N>::value;
  const weight w{{&g, g.add_parameter(weight::type)}};
  const data d{{&g, g.add_parameter(data::type)}};
  const auto results = f(w, d);
  std::apply([&](const auto&... each) { (g.outputs.push_back({each.handle.id, -1}), ...); }, results);
  REQUIRE(g.fault.what == message::none);
  numbers elements(N, 0.0);
  elements.back() = 1;
  const std::vector<bytes> inputs{to_bytes(numbers{1}, dtype::f64), to_bytes(elements, dtype::f64)};
  std::vector<numbers> out;
  for (const bytes& raw : runtime::evaluate(g, inputs)) out.push_back(to_numbers(raw, dtype::f64));
  return out;
}

template <class F>
void check_on_all_meshes(F check) {
  check(std::integral_constant<std::int64_t, 1>{});
  check(std::integral_constant<std::int64_t, 2>{});
  check(std::integral_constant<std::int64_t, 4>{});
}

/// (w^2 + 1) d, summed over the devices: 2, whose derivative by w is 2 d = 2.
inline constexpr auto loss = [](auto w, auto d) { return ts::psum<"x">(ts::sum((ts::square(w) + 1) * d)); };
/// The same with a weight that is cast on the way: the transposes of the casts add up what devices have.
inline constexpr auto cast_loss = [](auto w, auto d) {
  return ts::psum<"x">(ts::sum((ts::square(ts::pcast<"x">(w, ts::to_varying)) + 1) * d));
};
inline constexpr auto reduced_loss = [](auto w, auto d) {
  const auto kept = ts::pcast<"x">(w, ts::to_reduced);
  return ts::psum<"x">(ts::sum((ts::square(kept) + 1) * d));
};
inline constexpr auto unreduced_loss = [](auto w, auto d) {
  return ts::psum<"x">(ts::pcast<"x">(ts::sum((ts::square(w) + 1) * d), ts::to_unreduced));
};

template <class Loss>
constexpr auto outside(Loss of) {
  return [=](auto w, auto d) {
    const auto mapped = ts::shard_map<ts::out_specs<P<>>>(of);
    auto [l, g] = ts::value_and_grad([&](auto v) { return mapped(v, d); })(w);
    return std::tuple{l, g};
  };
}
/// Each device says what it has, so that each is seen.
template <class Loss>
constexpr auto inside(Loss of) {
  return [=](auto w, auto d) {
    return ts::shard_map<ts::out_specs<P<>, P<"x">, P<"x">>>([=](auto v, auto block) {
      auto [l, g] = ts::value_and_grad([&](auto at) { return of(at, block); })(v);
      return std::tuple{l, ts::reshape<1>(g), ts::reshape<1>(l)};
    })(w, d);
  };
}

}  // namespace

TEST_CASE("A gradient through psum is that of one device, taken outside or inside of shard_map") {
  check_on_all_meshes([](auto n) {
    INFO(n << " devices");
    const numbers everywhere(static_cast<std::size_t>(n), 2.0);
    const auto check = [&](auto of) {
      const auto around = run<n>(outside(of));
      CHECK(around[0] == numbers{2});
      CHECK(around[1] == numbers{2});
      const auto within = run<n>(inside(of));
      CHECK(within[0] == numbers{2});
      CHECK(within[1] == everywhere);
      CHECK(within[2] == everywhere);
    };
    check(loss);
    check(cast_loss);
    check(reduced_loss);
    check(unreduced_loss);
  });
}

TEST_CASE("A gradient through pmean is that of the mean") {
  check_on_all_meshes([](auto n) {
    const auto of = [](auto w, auto d) { return ts::pmean<"x">(ts::sum((ts::square(w) + 1) * d)); };
    const auto around = run<n>(outside(of));
    CHECK(around[0] == numbers{2.0 / static_cast<double>(n)});
    CHECK(around[1] == numbers{2.0 / static_cast<double>(n)});
  });
}

TEST_CASE("The sum of a value that is the same on all devices is as many times it, and so is its gradient") {
  check_on_all_meshes([](auto n) {
    const auto of = [](auto w, auto) { return ts::psum<"x">(ts::square(w)); };
    const auto around = run<n>(outside(of));
    CHECK(around[0] == numbers{static_cast<double>(n)});
    CHECK(around[1] == numbers{2.0 * static_cast<double>(n)});
  });
}

TEST_CASE("Second derivatives through psum are those of one device") {
  check_on_all_meshes([](auto n) {
    const auto twice = [](auto w, auto d) {
      const auto mapped = ts::shard_map<ts::out_specs<P<>>>(
          [](auto v, auto block) { return ts::psum<"x">(ts::sum(ts::square(ts::square(v)) * block)); });
      const auto first = ts::grad([&](auto v) { return mapped(v, d); });
      return std::tuple{first(w), ts::grad(first)(w)};
    };
    const auto answer = run<n>(twice);
    CHECK(answer[0] == numbers{4});
    CHECK(answer[1] == numbers{12});
  });
}
