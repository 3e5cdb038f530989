// SPDX-License-Identifier: Apache-2.0
// Functions whose gradient the user writes: alone, in loops, with trees of arguments, differentiated twice, on a mesh.
#include "runtime/support.hpp"

#include <tessera/tessera.hpp>

#include <catch2/catch.hpp>

using namespace runtime_test;
namespace ts = tessera;
using ts::none, ts::P;

namespace {

using cluster = ts::mesh<ts::axis<"data", 2>>;
using row = ts::expr<ts::tensor<ts::f64, ts::shape<4>, P<"data">, cluster>::type, cluster>;
using numbers = std::vector<double>;

/// The value of a scalar function of a traced row, its gradient, and the gradient of the gradient's sum.
template <class F>
std::vector<numbers> differentiate(F f, const numbers& x) {
  graph::graph g;
  g.mesh = cluster::value;
  const row handle{{&g, g.add_parameter(row::type)}};
  const int loss = f(handle).handle.id;
  const int wrt[] = {handle.handle.id};
  const int first = transform::gradients(g, loss, wrt)[0];
  const int second = transform::gradients(g, graph::sum(value{&g, first}).id, wrt)[0];
  g.outputs = {{loss, -1}, {first, -1}, {second, -1}};
  const std::vector<bytes> inputs{to_bytes(x, dtype::f64)};
  std::vector<numbers> answers;
  for (const bytes& out : runtime::evaluate(g, inputs)) answers.push_back(to_numbers(out, dtype::f64));
  return answers;
}

/// x^2 whose gradient is said to be 10 x, and whose second derivative is therefore 10.
inline constexpr auto odd_square =
    ts::custom_vjp([](auto x) { return ts::square(x); }, [](auto x) { return std::pair(ts::square(x), x); },
                   [](auto x, auto ct) { return std::tuple(ct * (10.0 * x)); });

/// log(1 + exp(x)) with the gradient that does not overflow.
inline constexpr auto log1pexp = ts::custom_vjp([](auto x) { return ts::log(1.0 + ts::exp(x)); },
                                                [](auto x) { return std::pair(ts::log(1.0 + ts::exp(x)), x); },
                                                [](auto x, auto ct) { return std::tuple(ct * ts::sigmoid(x)); });

}  // namespace

TEST_CASE("the gradient is the one that was written, and the value is the function's") {
  const auto answers = differentiate([](auto x) { return ts::sum(odd_square(x)); }, {1, 2, 3, 4});
  CHECK(answers[0] == numbers{30});
  CHECK(answers[1] == numbers{10, 20, 30, 40});
  CHECK(answers[2] == numbers{10, 10, 10, 10});
  const auto stable = differentiate([](auto x) { return ts::sum(log1pexp(x)); }, {0, 1000, -1000, 0});
  CHECK(stable[1] == numbers{0.5, 1, 0, 0.5});
}

TEST_CASE("a function of several arguments gives a tuple; none stops a gradient; what bwd captures comes along") {
  const auto f = [](auto x) {
    const auto scale = 3.0 * ts::stop_gradient(x);
    const auto g =
        ts::custom_vjp([](auto a, auto b, auto) { return std::tuple(a * b, a + b); },
                       [](auto a, auto b, auto n) { return std::pair(std::tuple(a * b, a + b), std::pair(a, n)); },
                       [scale](auto kept, auto ct) {
                         const auto [product, sum] = ct;
                         return std::tuple(product * scale, sum + kept.first, none);
                       });
    const auto [product, sum] = g(x, ts::square(x), ts::astype<ts::i32>(x));
    return ts::sum(product) + 2.0 * ts::sum(sum);
  };
  // to a: 1 scale = 3 x; to b = x^2: (2 + x) 2 x
  const auto answers = differentiate(f, {1, 2, 3, 4});
  CHECK(answers[0] == numbers{100 + 2 * 40});
  CHECK(answers[1] == numbers{3 + 6, 6 + 16, 9 + 30, 12 + 48});
}

TEST_CASE("a result that nobody differentiates has cotangent zero") {
  const auto f = [](auto x) {
    const auto g = ts::custom_vjp([](auto a) { return std::tuple(a, ts::square(a)); },
                                  [](auto a) { return std::pair(std::tuple(a, ts::square(a)), none); },
                                  [](auto, auto ct) { return std::tuple(std::get<0>(ct) * 5.0 + std::get<1>(ct)); });
    return ts::sum(std::get<0>(g(x)));
  };
  CHECK(differentiate(f, {1, 2, 3, 4})[1] == numbers{5, 5, 5, 5});
}

TEST_CASE("the body of a loop may have a gradient of its own") {
  const auto f = [](auto x) {
    return ts::sum(ts::fori_loop<0, 3>([](auto, auto carry) { return 0.5 * odd_square(carry); }, x));
  };
  // Each trip: c -> c^2 / 2, with the gradient 5 c.
  const auto answers = differentiate(f, {1, 2, 0, 2});
  CHECK(answers[0] == numbers{0.0078125 + 2 + 0 + 2});
  CHECK(answers[1] == numbers{125 * 1 * 0.5 * 0.125, 125 * 8, 0, 125 * 8});
}

TEST_CASE("residuals of a function that is not differentiated are not computed") {
  graph::graph g;
  g.mesh = cluster::value;
  const row x{{&g, g.add_parameter(row::type)}};
  const auto f = ts::custom_vjp([](auto a) { return ts::square(a); },
                                [](auto a) { return std::pair(ts::square(a), ts::exp(ts::sin(a))); },
                                [](auto kept, auto ct) { return std::tuple(ct * kept); });
  g.outputs = {{f(x).handle.id, -1}};
  const graph::graph small = transform::simplify(g);
  CHECK(small.size() == 2);
  CHECK(small.bodies.empty());
}

namespace {

struct layer {
  ts::nn::linear<4, 4> inner;
  TESSERA_MODULE(layer, inner)
  constexpr auto operator()(auto x) { return inner(x); }
};

/// A module as an argument: its gradient is doubled.
inline constexpr auto doubled_step = [](auto& model, auto x) {
  return ts::grad([](auto& m, auto in) {
           const auto f = ts::custom_vjp([](auto self, auto v) { return self(v); },
                                         [](auto self, auto v) { return std::pair(self(v), std::pair(self, v)); },
                                         [](auto kept, auto ct) {
                                           auto gradients = ts::grad([ct](auto& self, auto v) {
                                             return ts::sum(self(v) * ct);
                                           })(kept.first, kept.second);
                                           gradients.inner.kernel = 2.0 * gradients.inner.kernel;
                                           return std::tuple(gradients, none);
                                         });
           return ts::sum(f(m, in));
         })(model, x)
             .inner.kernel *
         1.0;
};

}  // namespace

TEST_CASE("a module may be an argument; its cotangent is a module") {
  auto model = ts::init<layer, cluster>(ts::nn::rngs{0});
  const auto x = ts::device_put<ts::shape<2, 4>, P<"data">, cluster>(std::vector<float>{1, 2, 3, 4, 10, 20, 30, 40});
  const std::vector<float> kernel = ts::jit<doubled_step>(model, x).to_vector();
  for (std::size_t i = 0; i < 16; ++i) CHECK(kernel[i] == 22 * static_cast<float>(i / 4 + 1));
}
