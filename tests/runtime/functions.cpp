// SPDX-License-Identifier: Apache-2.0
// Functions of elements as users call them: values at reference points, gradients by differences and at corners.
#include "runtime/differences.hpp"

#include <tessera/tessera.hpp>

#include <array>

using namespace runtime_test;
namespace ts = tessera;

namespace {

const double infinity = std::numeric_limits<double>::infinity();
const double no_number = std::numeric_limits<double>::quiet_NaN();

template <dtype D, std::int64_t N>
using row = ts::expr<ts::tensor<D, ts::shape<N>, ts::P<>, ts::mesh<>>::type, ts::mesh<>>;

/// A result, and the gradients of its sum with respect to each operand if it is floating-point.
struct answer {
  std::vector<double> values{};
  std::vector<std::vector<double>> gradients{};
};

/// f of as many traced rows of N elements of type D as there are `rows`.
template <dtype D, std::size_t N, std::size_t... I, class F>
answer ask_rows(F f, const std::vector<std::vector<double>>& rows, std::index_sequence<I...>) {
  graph::graph g;
  const std::array<row<D, N>, sizeof...(I)> x{
      (static_cast<void>(I), row<D, N>{{&g, g.add_parameter(row<D, N>::type)}})...};
  const auto y = f(x[I]...);
  constexpr dtype result = decltype(y)::type.type;
  g.outputs = {{y.handle.id, -1}};
  const int wrt[] = {x[I].handle.id...};
  if constexpr (is_floating(result))
    for (int id : transform::gradients(g, graph::sum(value{&g, y.handle.id}).id, wrt)) g.outputs.push_back({id, -1});
  std::vector<bytes> inputs;
  for (const auto& numbers_of : rows) inputs.push_back(to_bytes(numbers_of, D));
  const std::vector<bytes> outputs = runtime::evaluate(g, inputs);
  answer found{to_numbers(outputs[0], result), {}};
  for (std::size_t i = 1; i < outputs.size(); ++i) found.gradients.push_back(to_numbers(outputs[i], D));
  return found;
}

template <class T, std::size_t N>
std::vector<double> list(const T (&x)[N]) {
  return std::vector<double>(x, x + N);
}
template <dtype D = dtype::f64, class F, std::size_t N>
answer ask(F f, const double (&x)[N]) {
  return ask_rows<D, N>(f, {list(x)}, std::make_index_sequence<1>{});
}
template <dtype D = dtype::f64, class F, std::size_t N>
answer ask(F f, const double (&x)[N], const double (&y)[N]) {
  return ask_rows<D, N>(f, {list(x), list(y)}, std::make_index_sequence<2>{});
}
template <dtype D = dtype::f64, class F, std::size_t N>
answer ask(F f, const double (&x)[N], const double (&y)[N], const double (&z)[N]) {
  return ask_rows<D, N>(f, {list(x), list(y), list(z)}, std::make_index_sequence<3>{});
}

template <class F>
op_case user_case(const std::string& name, F f, double low, double high) {
  return {name, {{{4}, low, high}}, [f](std::span<const value> x, const spec_value*) {
            return value{x[0].owner, f(row<dtype::f64, 4>{{x[0].owner, x[0].id}}).handle.id};
          }};
}

using numbers = std::vector<double>;

}  // namespace

TEST_CASE("gradients of activations and other functions agree with differences") {
  std::vector<op_case> cases;
  for (const auto& [low, high] : {std::pair{0.25, 2.0}, {-2.0, -0.25}}) {
    cases.push_back(user_case("silu", ts::silu, low, high));
    cases.push_back(user_case("gelu", ts::gelu, low, high));
    cases.push_back(user_case("gelu_exact", ts::gelu_exact, low, high));
    cases.push_back(user_case("softplus", ts::softplus, low, high));
    cases.push_back(user_case("log_sigmoid", ts::log_sigmoid, low, high));
    cases.push_back(user_case(
        "elu", [](auto x) { return ts::elu(x, 0.7); }, low, high));
    cases.push_back(user_case(
        "leaky_relu", [](auto x) { return ts::leaky_relu(x, 0.2); }, low, high));
    cases.push_back(user_case("relu6", ts::relu6, low, high));
    cases.push_back(user_case(
        "hard_tanh", [](auto x) { return ts::hard_tanh(0.4 * x); }, low, high));
    cases.push_back(user_case("reciprocal", ts::reciprocal, low, high));
    cases.push_back(user_case(
        "logaddexp", [](auto x) { return ts::logaddexp(x, ts::square(x)); }, low, high));
    cases.push_back(user_case(
        "clamp", [](auto x) { return ts::clamp(-0.5, x, ts::square(x)); }, low, high));
  }
  check_all(cases);
}

TEST_CASE("gelu-gradient-at-large-x: value and gradient are those of the identity or zero, never NaN") {
  const auto at = [](auto f) {
    const auto a = ask<dtype::f32>(f, {256, -256, 1e20, -1e20, infinity, -3e38});
    const double same[] = {256, 1e20, infinity};
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK(a.gradients[0][i] == (i % 2 == 0 ? 1 : 0));
      CHECK(a.values[i] == (i % 2 == 0 ? static_cast<double>(static_cast<float>(same[i / 2])) : 0));
    }
  };
  at(ts::gelu);
  at(ts::gelu_exact);
  const auto tanh_form = ask(ts::gelu, {1});
  CHECK(tanh_form.values[0] == Approx(0.841192).margin(1e-6));
  CHECK(tanh_form.gradients[0][0] == Approx(1.082964).margin(1e-6));
  const auto erf_form = ask(ts::gelu_exact, {1});
  CHECK(erf_form.values[0] == Approx(0.841345).margin(1e-6));
  CHECK(erf_form.gradients[0][0] == Approx(1.083315).margin(1e-6));
  CHECK(std::isnan(ask(ts::gelu, {no_number}).values[0]));
}

TEST_CASE("softplus and logaddexp do not overflow and know infinities") {
  CHECK(ask(ts::softplus, {1000, -1000, infinity, -infinity}).values == numbers{1000, 0, infinity, 0});
  const auto a = ask(ts::logaddexp, {0, infinity, -infinity, -infinity, infinity, 1000},
                     {0, infinity, -infinity, 3, -infinity, 1000});
  CHECK(a.values[0] == Approx(std::log(2.0)).epsilon(1e-15));
  CHECK(numbers(a.values.begin() + 1, a.values.end()) ==
        numbers{infinity, -infinity, 3, infinity, 1000 + std::log(2.0)});
  CHECK(a.gradients[0] == numbers{0.5, 0.5, 0.5, 0, 1, 0.5});
  CHECK(a.gradients[1] == numbers{0.5, 0.5, 0.5, 1, 0, 0.5});
  CHECK(std::isnan(ask(ts::logaddexp, {no_number}, {1.0}).values[0]));
}

TEST_CASE("clamp keeps NaN, gives hi where bounds cross, and passes the gradient at its ends") {
  const auto f = [](auto lo, auto x, auto hi) { return ts::clamp(lo, x, hi); };
  const auto a = ask(f, {0, 0, 0, 0, 2}, {-1, 0, 3, no_number, 0}, {2, 2, 2, 2, 1});
  CHECK(numbers(a.values.begin(), a.values.begin() + 3) == numbers{0, 0, 2});
  CHECK(std::isnan(a.values[3]));
  CHECK(a.values[4] == 1);
  CHECK(a.gradients[0] == numbers{1, 0, 0, 0, 0});
  CHECK(a.gradients[1] == numbers{0, 1, 0, 1, 0});
  CHECK(a.gradients[2] == numbers{0, 0, 1, 0, 1});
}

TEST_CASE("isnan, isinf and isfinite tell numbers apart") {
  const double x[] = {1, no_number, infinity, -infinity, 0};
  CHECK(ask(ts::isnan, x).values == numbers{0, 1, 0, 0, 0});
  CHECK(ask(ts::isinf, x).values == numbers{0, 0, 1, 1, 0});
  CHECK(ask(ts::isfinite, x).values == numbers{1, 0, 0, 0, 1});
}

TEST_CASE("the gradient of an angle at the origin is zero") {
  const auto a = ask(ts::atan2, {0, 1}, {0, 0});
  CHECK(a.gradients[0] == numbers{0, 0});
  CHECK(a.gradients[1] == numbers{0, -1});
}

TEST_CASE("operations on integers in a step: bits, shifts, remainders by zero") {
  const auto bits = [](auto x, auto y) { return ((x & y) | (x ^ y)) + (~x << 1) + (x >> 1); };
  CHECK(ask<dtype::i32>(bits, {12, -12, 7}, {10, 3, 0}).values == numbers{14 - 26 + 6, -9 + 22 - 6, 7 - 16 + 3});
  const auto rest = [](auto x, auto y) { return x % y; };
  CHECK(ask<dtype::i32>(rest, {7, -7, 5}, {-3, 3, 0}).values == numbers{-2, 2, 0});
  CHECK(ask<dtype::u32>(ts::floor_divide, {4000000000.0, 7}, {3, 0}).values == numbers{1333333333, 0});
  CHECK(ask<dtype::bool_>(ts::logical_xor, {1, 1, 0}, {1, 0, 0}).values == numbers{0, 1, 0});
}
