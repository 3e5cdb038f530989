// SPDX-License-Identifier: Apache-2.0
// Optimisers against plain loops in float64, over several steps.
#include "support.hpp"

#include <tessera/optim/adaptive.hpp>
#include <tessera/optim/gradient_scaling.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

using namespace optim_test;

namespace {

struct layer {
  nn::variable<nn::param, f32, shape<2, 3>> w;
  nn::variable<nn::param, f32, shape<2>> b;
  TESSERA_MODULE(layer, w, b)
};

/// What a loop remembers of one element; `t` counts from 1.
struct element {
  double m = 0, v = 0, n = 0, before = 0;
};

/// The step of one element: its parameter, gradient, memory, and the count of steps.
using plain_step = std::function<double(double, double, element&, int)>;

constexpr int steps = 9;
constexpr double rate = 0.05;

/// Gradients of every size and sign, some 0, other ones each step.
std::vector<numbers> gradients(int t) {
  std::vector<numbers> g{numbers(6), numbers(2)};
  int i = 0;
  for (numbers& part : g)
    for (float& x : part) {
      ++i;
      x = static_cast<float>(std::sin(1.7 * i + 0.9 * t) * std::pow(10.0, i % 3 - 1));
    }
  g[0][4] = 0;
  return g;
}

template <class Transformation>
void check(Transformation t, const plain_step& plain, element initial = {}, double epsilon = 2e-5) {
  auto optimiser = start<layer>(std::move(t));
  std::vector<numbers> params{{1, -2, 0.5f, 3, -1, 0.25f}, {0.1f, -0.3f}};
  std::vector<std::vector<double>> wanted(2);
  std::vector<std::vector<element>> memory(2);
  for (std::size_t i = 0; i < 2; ++i) {
    wanted[i].assign(params[i].begin(), params[i].end());
    memory[i].assign(params[i].size(), initial);
  }
  for (int step = 1; step <= steps; ++step) {
    const std::vector<numbers> g = gradients(step);
    optimiser.step(params, g);
    for (std::size_t i = 0; i < 2; ++i)
      for (std::size_t j = 0; j < params[i].size(); ++j) {
        wanted[i][j] += plain(wanted[i][j], static_cast<double>(g[i][j]), memory[i][j], step);
        INFO("step " << step << ", array " << i << ", element " << j);
        CHECK(params[i][j] == Approx(wanted[i][j]).epsilon(epsilon).margin(epsilon / 10));
      }
  }
}

double power(double b, int t) { return std::pow(b, t); }

/// m and v of Adam, with bias correction.
struct moments {
  double m, v;
};
moments adam_moments(double g, element& e, int t, double b1 = 0.9, double b2 = 0.999) {
  e.m = b1 * e.m + (1 - b1) * g;
  e.v = b2 * e.v + (1 - b2) * g * g;
  return {e.m / (1 - power(b1, t)), e.v / (1 - power(b2, t))};
}

}  // namespace

TEST_CASE("momentum looks ahead with nesterov") {
  check(optim::sgd(rate, 0.9, optim::nesterov), [](double, double g, element& e, int) {
    e.m = g + 0.9 * e.m;
    return -rate * (g + 0.9 * e.m);
  });
}

TEST_CASE("nadam, nadamw, amsgrad and Adam with a number within the root") {
  const auto ahead = [](double g, element& e, int t) {
    const moments now = adam_moments(g, e, t);
    const double mean = 0.9 * e.m / (1 - power(0.9, t + 1)) + 0.1 * g / (1 - power(0.9, t));
    return mean / (std::sqrt(now.v) + 1e-8);
  };
  check(optim::nadam(rate), [&](double, double g, element& e, int t) { return -rate * ahead(g, e, t); });
  check(optim::nadamw(rate, {.weight_decay = 0.1}),
        [&](double p, double g, element& e, int t) { return -rate * (ahead(g, e, t) + 0.1 * p); });
  check(optim::amsgrad(rate, {.b2 = 0.5}), [](double, double g, element& e, int t) {
    const moments now = adam_moments(g, e, t, 0.9, 0.5);
    e.n = std::max(e.n, now.v);
    return -rate * now.m / (std::sqrt(e.n) + 1e-8);
  });
  check(optim::adam<optim::adam_form{.eps_root = true}>(rate, {.eps_root = 1e-4}),
        [](double, double g, element& e, int t) {
          const moments now = adam_moments(g, e, t);
          return -rate * now.m / (std::sqrt(now.v + 1e-4) + 1e-8);
        });
}

TEST_CASE("a first moment of another element type is kept in it") {
  constexpr optim::adam_form wide{.typed_mu = true, .mu_dtype = dtype::f64};
  check(optim::adam<wide>(rate, {}), [](double, double g, element& e, int t) {
    const moments now = adam_moments(g, e, t);
    return -rate * now.m / (std::sqrt(now.v) + 1e-8);
  });
  CHECK(start<layer>(optim::scale_by_adam<wide>({})).state_bytes() == 4 + 8 * 8 + 8 * 4);
}

TEST_CASE("adamax, adabelief, yogi, radam and adan") {
  check(optim::adamax(rate), [](double, double g, element& e, int t) {
    e.m = 0.9 * e.m + 0.1 * g;
    e.v = std::max(std::abs(g) + 1e-8, 0.999 * e.v);
    return -rate * e.m / (1 - power(0.9, t)) / e.v;
  });
  check(optim::adabelief(rate), [](double, double g, element& e, int t) {
    e.m = 0.9 * e.m + 0.1 * g;
    e.v = 0.999 * e.v + 0.001 * (g - e.m) * (g - e.m) + 1e-16;
    return -rate * e.m / (1 - power(0.9, t)) / (std::sqrt(e.v / (1 - power(0.999, t))) + 1e-16);
  });
  check(optim::yogi(rate),
        [](double, double g, element& e, int t) {
          e.m = 0.9 * e.m + 0.1 * g;
          const double difference = e.v - g * g;
          e.v -= 0.001 * ((difference > 0) - (difference < 0)) * g * g;
          return -rate * e.m / (1 - power(0.9, t)) / (std::sqrt(e.v / (1 - power(0.999, t))) + 1e-3);
        },
        {.v = 1e-6});
  // rho is the difference of two numbers near 2000, which float32 keeps to the second decimal.
  check(
      optim::radam(rate),
      [](double, double g, element& e, int t) {
        const moments now = adam_moments(g, e, t);
        const double limit = 2 / (1 - 0.999) - 1;
        const double rho = limit - 2 * t * power(0.999, t) / (1 - power(0.999, t));
        if (rho < 5) return -rate * now.m;
        const double r = std::sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho));
        return -rate * r * now.m / (std::sqrt(now.v) + 1e-8);
      },
      {}, 2e-4);
  check(optim::adan(rate, {.weight_decay = 0.1}), [](double p, double g, element& e, int t) {
    static_assert(steps > 2);
    const double difference = t == 1 ? 0 : g - e.before;
    e.before = g;
    e.m = 0.98 * e.m + 0.02 * g;
    e.v = 0.92 * e.v + 0.08 * difference;
    const double where = g + 0.08 * difference;
    e.n = 0.99 * e.n + 0.01 * where * where;
    const double up = e.m / (1 - power(0.98, t)) + 0.08 * e.v / (1 - power(0.92, t));
    return -rate * (up / (std::sqrt(e.n / (1 - power(0.99, t))) + 1e-8) + 0.1 * p);
  });
}

TEST_CASE("novograd measures each array's gradient as a whole") {
  check(optim::novograd(rate, {.weight_decay = 0.1}), [](double p, double g, element& e, int t) {
    const std::vector<numbers> all = gradients(t);
    const bool in_second = std::find(all[1].begin(), all[1].end(), static_cast<float>(g)) != all[1].end();
    double squares = 0;
    for (const float x : all[in_second ? 1 : 0]) squares += static_cast<double>(x) * static_cast<double>(x);
    e.v = t == 1 ? squares : 0.25 * e.v + 0.75 * squares;
    e.m = 0.9 * e.m + g / (std::sqrt(e.v) + 1e-6) + 0.1 * p;
    return -rate * e.m;
  });
}

TEST_CASE("rmsprop: plain, centred, with eps outside the root, with momentum") {
  const auto second = [](double g, element& e) { return e.v = 0.9 * e.v + 0.1 * g * g; };
  check(optim::rmsprop(rate, {.eps = 1e-4}),
        [&](double, double g, element& e, int) { return -rate * g / std::sqrt(second(g, e) + 1e-4); });
  check(optim::rmsprop<optim::rms_form{.centered = true}>(rate, {.eps = 1e-2}), [&](double, double g, element& e, int) {
    e.m = 0.9 * e.m + 0.1 * g;
    return -rate * g / std::sqrt(second(g, e) - e.m * e.m + 1e-2);
  });
  check(optim::rmsprop<optim::rms_form{.eps_in_sqrt = false, .bias_correction = true}>(rate, {.eps = 1e-4}),
        [&](double, double g, element& e, int t) {
          return -rate * g / (std::sqrt(second(g, e) / (1 - power(0.9, t))) + 1e-4);
        });
  check(optim::rmsprop(rate, {.eps = 1e-4, .initial_scale = 0.5}, 0.8, optim::nesterov),
        [&](double, double g, element& e, int) {
          const double u = -rate * g / std::sqrt(second(g, e) + 1e-4);
          e.m = u + 0.8 * e.m;
          return u + 0.8 * e.m;
        },
        {.v = 0.5});
}

TEST_CASE("adagrad and lion") {
  check(optim::adagrad(rate),
        [](double, double g, element& e, int) {
          e.v += g * g;
          return -rate * g / std::sqrt(e.v + 1e-7);
        },
        {.v = 0.1});
  check(optim::lion(rate, {.weight_decay = 0.1}), [](double p, double g, element& e, int) {
    const double x = 0.9 * e.m + 0.1 * g;
    e.m = 0.99 * e.m + 0.01 * g;
    return -rate * (((x > 0) - (x < 0)) + 0.1 * p);
  });
}

TEST_CASE("ema gives averages, with and without debias") {
  check(optim::ema(0.9), [](double, double g, element& e, int t) {
    e.m = 0.9 * e.m + 0.1 * g;
    return e.m / (1 - power(0.9, t));
  });
  check(optim::ema<false>(0.9), [](double, double g, element& e, int) { return e.m = 0.9 * e.m + 0.1 * g; });
}

TEST_CASE("zero gradients move nothing, whatever the moments") {
  const auto still = [](auto t) {
    auto optimiser = start<layer>(std::move(t));
    const std::vector<numbers> before{{1, -2, 0.5f, 3, -1, 0.25f}, {0.1f, -0.3f}};
    std::vector<numbers> params = before;
    for (int i = 0; i < 2; ++i) optimiser.step(params, {numbers(6, 0), numbers(2, 0)});
    CHECK(params == before);
  };
  still(optim::adam(1e-3));
  still(optim::amsgrad(1e-3));
  still(optim::adabelief(1e-3));
  still(optim::radam(1e-3));
  still(optim::yogi(1e-3));
  still(optim::adamax(1e-3));
  still(optim::adan(1e-3));
  still(optim::novograd(1e-3));
  still(optim::adagrad(1e-3));
}
