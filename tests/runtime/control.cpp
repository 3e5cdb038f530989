// SPDX-License-Identifier: Apache-2.0
// Loops and branches run as the loops they are, on any mesh, and so do their gradients.
#include <tessera/tessera.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <vector>

namespace ts = tessera;
using ts::none;
using ts::P;

namespace {

using pair_mesh = ts::mesh<ts::axis<"data", 2>>;
using quad_mesh = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 2>>;
using numbers = std::vector<double>;

numbers some_numbers(std::size_t count, double scale, unsigned step = 5) {
  numbers made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = scale * (static_cast<double>((i * step + 3) % 11) / 5.0 - 1.0);
  return made;
}

template <class Shape, class Spec, class Mesh>
auto put(const numbers& host) {
  return ts::device_put<Shape, Spec, Mesh>(host);
}

/// Central differences of f at x.
numbers differences(const std::function<double(const numbers&)>& f, numbers x) {
  numbers slopes;
  for (double& entry : x) {
    const double kept = entry;
    entry = kept + 1e-5;
    const double up = f(x);
    entry = kept - 1e-5;
    slopes.push_back((up - f(x)) / 2e-5);
    entry = kept;
  }
  return slopes;
}

void check_close(const numbers& found, const numbers& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(tolerance));
}

// A stack of layers h <- tanh(h w) + h b, with outputs sum(h).
inline constexpr auto layers = [](const auto& x, const auto& ws, const auto& b) {
  return ts::scan(
      [&](auto h, auto w) {
        auto next = ts::tanh(ts::matmul(h, w)) + h * b;
        return std::pair(next, ts::sum(next));
      },
      x, ws);
};
inline constexpr auto layers_loss = [](const auto& x, const auto& ws, const auto& b) {
  auto [h, sums] = layers(x, ws, b);
  return ts::sum(ts::square(h)) + ts::sum(sums * sums);
};
inline constexpr auto layers_value = [](auto x, auto ws, auto b) { return layers_loss(x, ws, b); };
inline constexpr auto layers_gradients = [](auto x, auto ws, auto b) {
  auto to_x = ts::grad([&](const auto& v) { return layers_loss(v, ws, b); })(x);
  auto to_ws = ts::grad([&](const auto& v) { return layers_loss(x, v, b); })(ws);
  auto to_b = ts::grad([&](const auto& v) { return layers_loss(x, ws, v); })(b);
  return std::tuple(to_x, to_ws, to_b);
};

struct layer_inputs {
  numbers x = some_numbers(4 * 6, 0.7);
  numbers ws = some_numbers(3 * 6 * 6, 0.4, 7);
  numbers b = some_numbers(6, 0.5, 3);
};

numbers naive_layers(const layer_inputs& in, numbers& sums) {
  numbers h = in.x;
  for (std::size_t t = 0; t < 3; ++t) {
    numbers next(h.size());
    double sum = 0;
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 6; ++j) {
        double product = 0;
        for (std::size_t k = 0; k < 6; ++k) product += h[i * 6 + k] * in.ws[t * 36 + k * 6 + j];
        sum += next[i * 6 + j] = std::tanh(product) + h[i * 6 + j] * in.b[j];
      }
    sums.push_back(sum);
    h = next;
  }
  return h;
}

template <class Mesh, class Spec>
double layers_at(const layer_inputs& in) {
  return ts::jit<layers_value>(put<ts::shape<4, 6>, Spec, Mesh>(in.x), put<ts::shape<3, 6, 6>, P<>, Mesh>(in.ws),
                               put<ts::shape<6>, P<>, Mesh>(in.b))
      .item();
}

template <class Mesh, class Spec>
void check_layers() {
  const layer_inputs in;
  numbers sums;
  const numbers h = naive_layers(in, sums);
  double expected = 0;
  for (double v : h) expected += v * v;
  for (double v : sums) expected += v * v;
  CHECK(layers_at<Mesh, Spec>(in) == Approx(expected).epsilon(1e-12));

  const auto [to_x, to_ws, to_b] =
      ts::jit<layers_gradients>(put<ts::shape<4, 6>, Spec, Mesh>(in.x), put<ts::shape<3, 6, 6>, P<>, Mesh>(in.ws),
                                put<ts::shape<6>, P<>, Mesh>(in.b));
  const auto at = [&](numbers layer_inputs::*which) {
    return [&in, which](const numbers& v) {
      layer_inputs changed = in;
      changed.*which = v;
      return layers_at<Mesh, Spec>(changed);
    };
  };
  check_close(to_x.to_vector(), differences(at(&layer_inputs::x), in.x), 1e-7);
  check_close(to_ws.to_vector(), differences(at(&layer_inputs::ws), in.ws), 1e-7);
  check_close(to_b.to_vector(), differences(at(&layer_inputs::b), in.b), 1e-7);
}

}  // namespace

TEST_CASE("A scan computes what its loop computes, and so does its gradient, on any mesh") {
  check_layers<ts::mesh<>, P<>>();
  check_layers<pair_mesh, P<"data">>();
}

// Nested, in the other direction, with a captured array and the number of the trip.
inline constexpr auto nested = [](auto x, auto ws) {
  auto [total, all] = ts::scan(
      [&](auto carry, auto w) {
        auto inner =
            ts::fori_loop<1, 3>([&](auto i, auto v) { return ts::sin(v * w) + x * ts::astype<ts::f64>(i); }, carry);
        return std::pair(inner, inner * w);
      },
      x, ws, ts::reverse);
  return ts::sum(ts::square(total)) + ts::sum(all);
};
inline constexpr auto nested_gradient = [](auto x, auto ws) {
  return ts::grad([&](auto v) { return nested(v, ws); })(x);
};
inline constexpr auto nested_curvature = [](auto x, auto ws) {
  return ts::grad([&](auto v) { return ts::sum(ts::square(nested_gradient(v, ws))); })(x);
};

TEST_CASE("Loops within loops have gradients, and those have gradients") {
  const numbers x = some_numbers(4, 0.8);
  const numbers ws = some_numbers(12, 0.9, 7);
  const auto weights = put<ts::shape<3, 4>, P<>, pair_mesh>(ws);
  const auto at = [&](const numbers& v) { return put<ts::shape<4>, P<"data">, pair_mesh>(v); };

  numbers naive = x;
  double extra = 0;
  for (std::size_t t = 3; t-- > 0;)
    for (std::size_t k = 0; k < 4; ++k) {
      for (int i = 1; i < 3; ++i) naive[k] = std::sin(naive[k] * ws[t * 4 + k]) + x[k] * i;
      extra += naive[k] * ws[t * 4 + k];
    }
  for (double v : naive) extra += v * v;
  CHECK(ts::jit<nested>(at(x), weights).item() == Approx(extra).epsilon(1e-12));
  check_close(ts::jit<nested_gradient>(at(x), weights).to_vector(),
              differences([&](const numbers& v) { return ts::jit<nested>(at(v), weights).item(); }, x), 1e-7);
  check_close(ts::jit<nested_curvature>(at(x), weights).to_vector(),
              differences(
                  [&](const numbers& v) {
                    double sum = 0;
                    for (double d : ts::jit<nested_gradient>(at(v), weights).to_vector()) sum += d * d;
                    return sum;
                  },
                  x),
              1e-6);
}

inline constexpr auto no_trips = [](auto x) {
  return ts::scan([](auto c, auto s) { return std::pair(c + s, c); }, ts::sum(x), x);
};

TEST_CASE("A scan over nothing returns its carry") {
  const auto [carry, stack] = ts::jit<no_trips>(put<ts::shape<0>, P<>, ts::mesh<>>({}));
  CHECK(carry.item() == 0);
  CHECK(stack.to_vector().empty());
}

// Newton's iteration for a square root, and a branch between two functions.
inline constexpr auto root = [](auto x) {
  auto found =
      ts::while_loop([&](auto y) { return ts::abs(y * y - x) > 1e-12; }, [&](auto y) { return 0.5 * (y + x / y); }, x);
  return found;
};
inline constexpr auto either = [](auto x, auto choice) {
  return ts::sum(ts::cond(
      choice > 0.0, [&](auto v) { return ts::exp(v) * x; }, [](auto v) { return ts::sin(v); }, x));
};
inline constexpr auto either_gradient = [](auto x, auto choice) {
  return ts::grad([&](auto v) { return either(v, choice); })(x);
};

TEST_CASE("A while loop runs until its condition is false, a branch takes one of its functions") {
  CHECK(ts::jit<root>(put<ts::shape<>, P<>, pair_mesh>({2.0})).item() == Approx(std::sqrt(2.0)).epsilon(1e-12));
  CHECK(ts::jit<root>(put<ts::shape<>, P<>, pair_mesh>({0.0})).item() == 0);
  const numbers x = some_numbers(4, 0.6);
  const auto at = [&](const numbers& v) { return put<ts::shape<4>, P<"data">, pair_mesh>(v); };
  for (const double choice : {1.0, -1.0}) {
    double expected = 0;
    for (double v : x) expected += choice > 0 ? std::exp(v) * v : std::sin(v);
    CHECK(ts::jit<either>(at(x), choice).item() == Approx(expected).epsilon(1e-12));
    check_close(ts::jit<either_gradient>(at(x), choice).to_vector(),
                differences([&](const numbers& v) { return ts::jit<either>(at(v), choice).item(); }, x), 1e-7);
  }
}

struct linear_model {
  ts::nn::linear<4, 2, ts::kernel<P<none, "model">>> out;
  TESSERA_MODULE(linear_model, out)
  constexpr auto operator()(auto x) { return out(x); }
};
inline constexpr auto model_loss = [](auto& model, auto x, auto y) { return ts::mean(ts::square(model(x) - y)); };
inline constexpr auto one_step = [](auto& model, auto& optimizer, auto x, auto y) {
  auto [loss, gradients] = ts::value_and_grad(model_loss)(model, x, y);
  optimizer.update(model, gradients);
  return loss;
};
inline constexpr auto many_steps = [](auto& model, auto& optimizer, auto xs, auto ys) {
  auto [state, losses] = ts::scan(
      [](auto carried, auto batch) {
        auto loss = one_step(carried.first, carried.second, batch.first, batch.second);
        return std::pair(carried, loss);
      },
      std::pair(model, optimizer), std::pair(xs, ys));
  model = state.first;
  optimizer = state.second;
  return losses;
};

TEST_CASE("A scan that carries a model and its optimizer trains as single steps do, bit for bit") {
  std::vector<float> xs(5 * 8 * 4);
  std::vector<float> ys(5 * 8 * 2);
  for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = static_cast<float>(i % 13) / 6 - 1;
  for (std::size_t i = 0; i < ys.size(); ++i) ys[i] = static_cast<float>(i % 7) / 3 - 1;
  auto model = ts::init<linear_model, quad_mesh>(ts::nn::rngs{.params = 0});
  auto optimizer = ts::nn::optimizer<ts::nn::param>(model, ts::optim::adam(1e-1));
  auto other_model = model;
  auto other_optimizer = optimizer;
  const auto losses =
      ts::jit<many_steps>(model, optimizer, ts::device_put<ts::shape<5, 8, 4>, P<none, "data">, quad_mesh>(xs),
                          ts::device_put<ts::shape<5, 8, 2>, P<none, "data">, quad_mesh>(ys))
          .to_vector();
  for (std::size_t t = 0; t < 5; ++t) {
    const std::vector<float> x(xs.begin() + static_cast<std::ptrdiff_t>(t * 32),
                               xs.begin() + static_cast<std::ptrdiff_t>(t * 32 + 32));
    const std::vector<float> y(ys.begin() + static_cast<std::ptrdiff_t>(t * 16),
                               ys.begin() + static_cast<std::ptrdiff_t>(t * 16 + 16));
    const auto loss =
        ts::jit<one_step>(other_model, other_optimizer, ts::device_put<ts::shape<8, 4>, P<"data">, quad_mesh>(x),
                          ts::device_put<ts::shape<8, 2>, P<"data">, quad_mesh>(y));
    CHECK(loss.item() == losses[t]);
  }
  CHECK(ts::nn::to_vector(model.out.kernel) == ts::nn::to_vector(other_model.out.kernel));
  CHECK(ts::nn::to_vector(model.out.bias) == ts::nn::to_vector(other_model.out.bias));
}

inline constexpr auto label_loss = [](auto logits, auto labels) {
  return ts::scan(
             [](auto total, auto batch) {
               auto losses = ts::optim::softmax_cross_entropy_with_integer_labels(batch.first, batch.second);
               return std::pair(total + ts::sum(losses), none);
             },
             0.0, std::pair(logits, labels))
      .first;
};

TEST_CASE("A label out of range within a loop is an error") {
  const auto logits = ts::device_put<ts::shape<2, 4, 3>, P<>, ts::mesh<>>(std::vector<float>(24, 0.5F));
  const auto labels = [](std::int32_t last) {
    return ts::device_put<ts::shape<2, 4>, P<>, ts::mesh<>>(std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 0, last});
  };
  CHECK(ts::jit<label_loss>(logits, labels(2)).item() == Approx(8 * std::log(3.0)));
  CHECK_THROWS_AS(ts::jit<label_loss>(logits, labels(3)), ts::index_error);
}
