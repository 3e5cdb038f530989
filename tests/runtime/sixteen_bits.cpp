// SPDX-License-Identifier: Apache-2.0
// Programs on 16-bit numbers: elementwise results are rounded one by one, products and sums once.
#include "runtime/support.hpp"

#include <tessera/ops.hpp>
#include <tessera/optim/clipping.hpp>
#include <tessera/optim/losses.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <catch2/catch.hpp>

#include <tuple>

using namespace runtime_test;
namespace ts = tessera;
using numbers = std::vector<double>;

namespace {

using cluster = mesh<axis<"data", 2>, axis<"model", 2>>;

template <dtype D, class Shape, class Spec = P<>, class Mesh = cluster>
using array = expr<tensor<D, Shape, Spec, Mesh>::type, Mesh>;

/// What f gives for arrays of these types with these elements: its results, one after another.
template <class... Arrays, class F>
std::vector<numbers> run(F f, const std::vector<numbers>& elements) {
  graph::graph g;
  g.mesh = std::tuple_element_t<0, std::tuple<Arrays...>>::mesh_type::value;
  std::vector<bytes> inputs;
  const auto parameter = [&]<class A>(std::type_identity<A>) {
    inputs.push_back(to_bytes(elements[inputs.size()], A::type.type));
    return A{{&g, g.add_parameter(A::type)}};
  };
  const std::tuple<Arrays...> arguments{parameter(std::type_identity<Arrays>{})...};
  const auto result = std::apply(f, arguments);
  std::vector<dtype> types;
  const auto give = [&]<class R>(const R& r) {
    g.outputs.push_back({r.handle.id, -1});
    types.push_back(R::type.type);
  };
  if constexpr (ts::ops::is_tuple<std::remove_const_t<decltype(result)>>)
    std::apply([&](const auto&... r) { (give(r), ...); }, result);
  else give(result);
  REQUIRE(g.fault.what == message::none);
  std::vector<numbers> found;
  for (const bytes& raw : runtime::evaluate(g, inputs)) found.push_back(to_numbers(raw, types[found.size()]));
  return found;
}

numbers drawn(std::size_t n, unsigned seed, dtype type) {
  std::mt19937 bits(seed);
  numbers x(n);
  for (double& value : x) value = kernels::naive::as_element(std::uniform_real_distribution<double>(-2, 2)(bits), type);
  return x;
}

double kept(double x, dtype type) { return kernels::naive::as_element(x, type); }

/// f on elements of type D is f on the same elements in float32, rounded.
template <dtype D, class Shape, class F>
void check_rounded_once(F f, double slack = 0) {
  const numbers x = drawn(static_cast<std::size_t>(Shape::size), 7, D);
  const numbers found = run<array<D, Shape>>(f, {x})[0];
  const numbers wide = run<array<dtype::f32, Shape>>(f, {x})[0];
  REQUIRE(found.size() == wide.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("element " << i);
    CHECK(std::abs(found[i] - kept(wide[i], D)) <= slack * std::abs(wide[i]));
  }
}

template <dtype D>
void check_all_rounded_once() {
  check_rounded_once<D, shape<6, 10>>([](auto x) { return ts::softmax(x); });
  check_rounded_once<D, shape<6, 10>>([](auto x) { return ts::softmax<0>(x); });
  check_rounded_once<D, shape<6, 10>>([](auto x) { return ts::log_softmax(x); });
  check_rounded_once<D, shape<40, 10>>([](auto x) { return ts::sum<0>(x); });
  check_rounded_once<D, shape<40, 10>>([](auto x) { return ts::mean<1>(x); });
  check_rounded_once<D, shape<40, 10>>([](auto x) { return ts::var<0>(x); });
  check_rounded_once<D, shape<40, 10>>([](auto x) { return ts::norm(x); });
  check_rounded_once<D, shape<40, 10>>([](auto x) { return ts::logsumexp<1>(x); });
  check_rounded_once<D, shape<40, 10>>([](auto x) { return ts::max<1>(x); });
  check_rounded_once<D, shape<40, 10>>([](auto x) { return ts::cumsum<0>(x); });
  check_rounded_once<D, shape<40, 10>>([](auto x) { return ts::sort<0>(x); });
  check_rounded_once<D, shape<12, 12>>([](auto x) { return ts::matmul(x, ts::transpose(x)); });
  check_rounded_once<D, shape<12, 12>>([](auto x) { return ts::exp(ts::transpose(x)); });
}

}  // namespace

TEST_CASE("what is summed or taken along an axis is rounded once") {
  check_all_rounded_once<dtype::bf16>();
  check_all_rounded_once<dtype::f16>();
}

TEST_CASE("a chain of elementwise steps is rounded after each of them") {
  const numbers x = drawn(50, 1, dtype::bf16);
  const numbers y = drawn(50, 2, dtype::bf16);
  using row = array<dtype::bf16, shape<50>>;
  const numbers found = run<row, row>([](auto a, auto b) { return (a * b + a) / b - a; }, {x, y})[0];
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto rounded = [](double v) { return kept(v, dtype::bf16); };
    const double product = rounded(x[i] * y[i]);
    const double sum = rounded(product + x[i]);
    CHECK(found[i] == rounded(rounded(sum / y[i]) - x[i]));
  }
}

TEST_CASE("sums and means of many ones lose nothing but the last rounding") {
  const auto both = [](auto x) { return std::tuple{ts::sum(x), ts::mean(x)}; };
  const std::vector<numbers> brain = run<array<dtype::bf16, shape<70000>>>(both, {numbers(70000, 1.0)});
  CHECK(brain[0][0] == 70144);
  CHECK(brain[1][0] == 1);
  const std::vector<numbers> half = run<array<dtype::f16, shape<20000>>>(both, {numbers(20000, 1.0)});
  CHECK(half[0][0] == 20000);
  CHECK(half[1][0] == 1);
}

TEST_CASE("gradients of float32 parameters are float32 and went through the 16-bit type") {
  using weight = array<dtype::f32, shape<8, 4>>;
  using input = array<dtype::bf16, shape<6, 8>>;
  const numbers w = drawn(32, 3, dtype::f32);
  const numbers x = drawn(48, 4, dtype::bf16);
  const auto loss = [](auto p, auto a) {
    return ts::mean(ts::square(ts::astype<dtype::f32>(ts::matmul(a, ts::astype<dtype::bf16>(p)))));
  };
  const numbers found = run<weight, input>([&](auto p, auto a) { return ts::grad(loss)(p, a); }, {w, x})[0];
  const auto element = [](double v) { return kept(v, dtype::bf16); };
  for (std::size_t k = 0; k < 8; ++k)
    for (std::size_t j = 0; j < 4; ++j) {
      double sum = 0;
      double magnitude = 0;
      for (std::size_t i = 0; i < 6; ++i) {
        double y = 0;
        for (std::size_t q = 0; q < 8; ++q) y += x[8 * i + q] * element(w[4 * q + j]);
        const double term = x[8 * i + k] * element(element(y) * 2 / 24);
        sum += term;
        magnitude += std::abs(term);
      }
      CHECK(found[4 * k + j] == element(found[4 * k + j]));
      CHECK(std::abs(found[4 * k + j] - sum) <= 0.01 * magnitude);
    }
}

TEST_CASE("cut arrays of 16-bit numbers give the answer of one device, products being added up in float32") {
  const numbers x = drawn(64, 5, dtype::bf16);
  const numbers w = drawn(64, 6, dtype::bf16);
  const auto cut = [](auto a, auto b) { return ts::matmul(a, b, ts::out_sharding<P<"data">>); };
  const auto whole = [](auto a, auto b) { return ts::matmul(a, b); };
  using left = array<dtype::bf16, shape<8, 8>, P<"data", "model">>;
  using right = array<dtype::bf16, shape<8, 8>, P<"model", none>>;
  using uncut_square = array<dtype::bf16, shape<8, 8>>;
  const numbers found = run<left, right>(cut, {x, w})[0];
  const numbers expected = run<uncut_square, uncut_square>(whole, {x, w})[0];
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(std::abs(found[i] - expected[i]) <= 0x1p-7 * std::abs(expected[i]));
}

TEST_CASE("rows of 16-bit numbers are gathered as they are, and added up without loss") {
  using table = array<dtype::bf16, shape<4, 3>>;
  const numbers rows = drawn(12, 8, dtype::bf16);
  const auto looked_up = [](auto t, auto index) {
    const auto loss = [](auto a, auto at) { return ts::sum(ts::take<0>(a, at)); };
    return std::tuple{ts::take<0>(t, index), ts::grad(loss)(t, index)};
  };
  using places = array<dtype::i32, shape<600>>;
  const std::vector<numbers> found = run<table, places>(looked_up, {rows, numbers(600, 2.0)});
  for (std::size_t j = 0; j < 3; ++j) {
    CHECK(found[0][j] == rows[6 + j]);
    CHECK(found[1][6 + j] == 600);
    CHECK(found[1][j] == 0);
  }
}

TEST_CASE("einsum of 16-bit numbers with float32 sums is that of the converted numbers") {
  using left = array<dtype::bf16, shape<4, 3, 5>>;
  using right = array<dtype::bf16, shape<5, 4>>;
  const auto both = [](auto a, auto b) {
    const auto wide = ts::einsum<"abc,cd->bda">(a, b, ts::preferred_element_type<dtype::f32>);
    const auto converted = ts::einsum<"abc,cd->bda">(ts::astype<dtype::f32>(a), ts::astype<dtype::f32>(b));
    return std::tuple{wide, converted, ts::einsum<"abc,cd->bda">(a, b)};
  };
  const auto found = run<left, right>(both, {drawn(60, 9, dtype::bf16), drawn(20, 10, dtype::bf16)});
  CHECK(found[0] == found[1]);
  for (std::size_t i = 0; i < found[0].size(); ++i) CHECK(found[2][i] == kept(found[0][i], dtype::bf16));
}

namespace {

template <dtype D>
void check_losses() {
  using rows = array<D, shape<6, 5>>;
  using targets = array<dtype::i32, shape<6>>;
  const numbers x = drawn(30, 11, D), y = drawn(30, 12, D);
  numbers shares(30), labels(6);
  for (std::size_t i = 0; i < 30; ++i) shares[i] = kept(std::abs(y[i]) / 4, D);
  for (std::size_t i = 0; i < 6; ++i) labels[i] = static_cast<double>(i % 5);
  const auto check = [](auto loss, const numbers& a, const numbers& b) {
    const auto in_both = [&](auto p, auto t) {
      static_assert(decltype(loss(p, t))::type.type == dtype::f32);
      return std::tuple{loss(p, t), loss(ts::astype<dtype::f32>(p), ts::astype<dtype::f32>(t))};
    };
    const auto found = run<rows, rows>(in_both, {a, b});
    CHECK(found[0] == found[1]);
  };
  namespace optim = ts::optim;
  check([](auto p, auto t) { return optim::squared_error(p, t); }, x, y);
  check([](auto p, auto t) { return optim::l2_loss(p, t); }, x, y);
  check([](auto p, auto t) { return optim::huber_loss(p, t, 0.5); }, x, y);
  check([](auto p, auto t) { return optim::log_cosh(p, t); }, x, y);
  check([](auto p, auto t) { return optim::hinge_loss(p, t); }, x, y);
  check([](auto p, auto t) { return optim::kl_divergence(p, t); }, x, shares);
  check([](auto p, auto t) { return optim::kl_divergence_with_log_targets(p, t); }, x, y);
  check([](auto p, auto t) { return optim::cosine_distance(p, t); }, x, y);
  check([](auto p, auto t) { return optim::softmax_cross_entropy(p, t); }, x, shares);
  check([](auto p, auto t) { return optim::sigmoid_binary_cross_entropy(p, t); }, x, shares);
  const auto numbered = [](auto logits, auto at) {
    const auto loss = optim::softmax_cross_entropy_with_integer_labels(logits, at);
    return std::tuple{loss, optim::softmax_cross_entropy_with_integer_labels(ts::astype<dtype::f32>(logits), at)};
  };
  const auto found = run<rows, targets>(numbered, {x, labels});
  CHECK(found[0] == found[1]);
}

}  // namespace

TEST_CASE("losses of 16-bit arrays are computed in float32 and stay there") {
  check_losses<dtype::bf16>();
  check_losses<dtype::f16>();
}

TEST_CASE("the global norm of float16 arrays is float32: squares neither overflow nor vanish") {
  const auto norm = [](auto a, auto b) {
    ts::optim::values list;
    list.push_back({a.handle.owner, a.handle.id}), list.push_back({b.handle.owner, b.handle.id});
    const ts::graph::value n = ts::optim::global_norm(list);
    return ts::expr<ts::scalar_aval(dtype::f32), cluster>{{n.owner, n.id}};
  };
  using row = array<dtype::f16, shape<4>>;
  CHECK(run<row, row>(norm, {{30000, 0, 0, 0}, {0, 40000, 0, 0}})[0][0] == 50000);
  CHECK(run<row, row>(norm, {{0x1p-20, 0, 0, 0}, {0, 0, 0, 0}})[0][0] == 0x1p-20);
}

TEST_CASE("gelu of large float16 numbers is the identity or zero, and so is its gradient") {
  using row = array<dtype::f16, shape<4>>;
  const auto both = [](auto f) {
    return [f](auto x) {
      const auto total = [f](auto v) { return ts::sum(ts::astype<dtype::f32>(f(v))); };
      return std::tuple{f(x), ts::grad(total)(x)};
    };
  };
  const auto check = [](const std::vector<numbers>& found) {
    CHECK(found[0] == numbers{256, 0, 60000, 0});
    CHECK(found[1] == numbers{1, 0, 1, 0});
  };
  check(run<row>(both(ts::gelu), {{256, -256, 60000, -60000}}));
  check(run<row>(both(ts::gelu_exact), {{256, -256, 60000, -60000}}));
}

TEST_CASE(
    "products that are rounded as they are made have the bits of float32 ones rounded, in any shards and groups") {
  const auto check = [](const std::vector<numbers>& found, const std::vector<numbers>& wide) {
    REQUIRE(found[0].size() == wide[0].size());
    for (std::size_t i = 0; i < wide[0].size(); ++i) CHECK(found[0][i] == kept(wide[0][i], dtype::f16));
  };
  const auto product = [](auto a, auto b) { return ts::matmul(a, b); };
  const auto kept_wide = [](auto a, auto b) { return ts::matmul(a, b, ts::preferred_element_type<dtype::f32>); };
  const numbers x = drawn(80, 13, dtype::f16), w = drawn(56, 14, dtype::f16);
  using rows = array<dtype::f16, shape<10, 8>, P<"data">>;
  using columns = array<dtype::f16, shape<8, 7>>;
  check(run<rows, columns>(product, {x, w}), run<rows, columns>(kept_wide, {x, w}));
  const numbers many = drawn(std::size_t{3} * 300 * 20, 15, dtype::f16),
                each = drawn(std::size_t{3} * 20 * 270, 16, dtype::f16);
  using batch = array<dtype::f16, shape<3, 300, 20>>;
  using other = array<dtype::f16, shape<3, 20, 270>>;
  check(run<batch, other>(product, {many, each}), run<batch, other>(kept_wide, {many, each}));
}
