// SPDX-License-Identifier: Apache-2.0
// Transformations around others, for some variables, and with state of their own beginnings.
#include "support.hpp"

#include <tessera/optim/adaptive.hpp>
#include <tessera/optim/contrib.hpp>
#include <tessera/optim/scaling.hpp>
#include <tessera/optim/wrappers.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace optim_test;

namespace {

struct layer {
  nn::variable<nn::param, f32, shape<2, 2>> kernel;
  nn::variable<nn::param, f32, shape<2>> bias;
  TESSERA_MODULE(layer, kernel, bias)
};

const std::vector<numbers> at_first{{1, -2, 0.5f, 3}, {0.1f, -0.3f}};
const std::vector<numbers> gradient{{0.5f, -1, 2, 0.25f}, {1, -1}};

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

std::vector<numbers> scaled(std::vector<numbers> x, float factor) {
  for (numbers& part : x)
    for (float& element : part) element *= factor;
  return x;
}

/// The updates of one step.
template <class Transformation>
std::vector<numbers> updates(Transformation t, const std::vector<numbers>& g = gradient) {
  std::vector<numbers> params = at_first;
  return start<layer>(std::move(t)).step(params, g);
}

void check_close(const std::vector<numbers>& got, const std::vector<numbers>& wanted, double epsilon = 1e-6) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    for (std::size_t j = 0; j < wanted[i].size(); ++j) {
      INFO("array " << i << ", element " << j);
      CHECK(got[i][j] == Approx(wanted[i][j]).epsilon(epsilon).margin(1e-7));
    }
}

}  // namespace

TEST_CASE("a step that is not finite changes neither parameters nor state nor step counts") {
  for (const float bad : {infinity, -infinity, not_a_number}) {
    auto optimiser = start<layer>(optim::skip_not_finite(optim::adamw(1e-2)));
    std::vector<numbers> params = at_first;
    params[1][0] = -0.0f;
    optimiser.step(params, gradient);
    const auto before = params;
    const auto state = optimiser.state();
    std::vector<numbers> broken = gradient;
    broken[1][1] = bad;
    for (int i = 1; i <= 3; ++i) {
      optimiser.step(params, broken);
      CHECK(params == before);
      for (std::size_t k = 2; k < state.size(); ++k) CHECK(optimiser.state()[k] == state[k]);
      std::int32_t counted;
      std::memcpy(&counted, optimiser.state()[1].data(), sizeof counted);
      CHECK(counted == i);
    }
    auto twin = start<layer>(optim::adamw(1e-2));
    std::vector<numbers> plain = at_first;
    plain[1][0] = -0.0f;
    for (int i = 0; i < 2; ++i) twin.step(plain, gradient);
    optimiser.step(params, gradient);
    CHECK(params == plain);
  }
}

TEST_CASE("apply_if_finite lets errors through after so many in a row") {
  auto optimiser = start<layer>(optim::apply_if_finite(optim::sgd(1.0), 2));
  std::vector<numbers> params = at_first;
  std::vector<numbers> broken = gradient;
  broken[0][0] = not_a_number;
  for (int i = 0; i < 2; ++i) optimiser.step(params, broken);
  CHECK(params == at_first);
  optimiser.step(params, broken);
  CHECK(std::isnan(params[0][0]));
  CHECK(params[1][0] == Approx(-0.9f));
}

TEST_CASE("clipping an infinite norm within skip_not_finite skips the step") {
  std::vector<numbers> params = at_first;
  auto optimiser = start<layer>(optim::skip_not_finite(optim::chain(optim::clip_by_global_norm(1), optim::sgd(1.0))));
  optimiser.step(params, {{infinity, 1, 0, 0}, {0, 0}});
  CHECK(params == at_first);
}

TEST_CASE("multi_steps updates with the mean, or the sum, of a window, and with a part of one that is cut short") {
  auto gathered = start<layer>(optim::multi_steps(optim::adam(1e-2), 3));
  auto summed = start<layer>(optim::multi_steps<optim::multi_steps_form{.use_grad_mean = false}>(optim::sgd(1.0), 3));
  constexpr optim::multi_steps_form wide{.typed = true, .accumulator_dtype = dtype::f64};
  auto precise = start<layer>(optim::multi_steps<wide>(optim::adam(1e-2), 3));
  std::vector<numbers> by_mean = at_first, by_sum = at_first, by_wide = at_first, at_once = at_first;
  for (int window = 0; window < 2; ++window)
    for (const float factor : {1.0f, 2.0f, 6.0f}) {
      const auto before = by_mean;
      gathered.step(by_mean, scaled(gradient, factor));
      summed.step(by_sum, scaled(gradient, factor));
      precise.step(by_wide, scaled(gradient, factor));
      CHECK((by_mean == before) == (factor < 6));
    }
  auto twin = start<layer>(optim::adam(1e-2));
  for (int i = 0; i < 2; ++i) twin.step(at_once, scaled(gradient, 3));
  check_close(by_mean, at_once);
  check_close(by_wide, at_once);
  check_close(by_sum, {{1 - 9, -2 + 18, 0.5f - 36, 3 - 4.5f}, {0.1f - 18, -0.3f + 18}});

  auto scheduled = start<layer>(optim::multi_steps(optim::sgd(1.0), optim::linear_schedule(3, 1, 1)));
  std::vector<numbers> params = at_first;
  for (int i = 0; i < 3; ++i) scheduled.step(params, gradient);
  check_close(params, {{0.5f, -1, -1.5f, 2.75f}, {-0.9f, 0.7f}});
  scheduled.step(params, gradient);
  check_close(params, {{0, 0, -3.5f, 2.5f}, {-1.9f, 1.7f}});
  CHECK_THROWS_AS(optim::multi_steps(optim::sgd(1.0), 0), value_error);
}

TEST_CASE("lookahead goes back a share of the way every few steps") {
  auto optimiser = start<layer>(optim::lookahead(optim::sgd(0.1), 2, 0.25));
  std::vector<numbers> params = at_first;
  double slow = 1, fast = 1;
  for (int step = 1; step <= 5; ++step) {
    optimiser.step(params, gradient);
    fast -= 0.1 * 0.5;
    if (step % 2 == 0) slow += 0.25 * (fast - slow), fast = slow;
    CHECK(params[0][0] == Approx(fast).epsilon(1e-6));
  }
}

TEST_CASE("apply_every gives sums") {
  auto optimiser = start<layer>(optim::apply_every(2));
  std::vector<numbers> params = at_first;
  CHECK(optimiser.step(params, gradient) == std::vector<numbers>{{0, 0, 0, 0}, {0, 0}});
  CHECK(optimiser.step(params, scaled(gradient, 2)) == scaled(gradient, 3));
  CHECK(optimiser.step(params, gradient) == std::vector<numbers>{{0, 0, 0, 0}, {0, 0}});
}

TEST_CASE("transformations without state") {
  CHECK(updates(optim::scale(-2)) == scaled(gradient, -2));
  CHECK(updates(optim::scale_by_sign()) == std::vector<numbers>{{1, -1, 1, 1}, {1, -1}});
  CHECK(updates(optim::zero_nans(), {{not_a_number, 1, -infinity, 0}, {not_a_number, 2}}) ==
        std::vector<numbers>{{0, 1, -infinity, 0}, {0, 2}});
  CHECK(updates(optim::centralize()) == std::vector<numbers>{{0.75f, -0.75f, 0.875f, -0.875f}, {1, -1}});
  CHECK(updates(optim::keep_params_nonnegative(), {{-3, 1, -0.25f, 1}, {-1, 1}}) ==
        std::vector<numbers>{{-1, 2, -0.25f, 1}, {-0.1f, 1}});
  const float norm = std::sqrt(1 + 4 + 0.25f + 9), rms = norm / 2;
  check_close({updates(optim::scale_by_param_block_norm())[0]}, {scaled(gradient, norm)[0]});
  check_close({updates(optim::scale_by_param_block_rms())[0]}, {scaled(gradient, rms)[0]});
  CHECK(updates(optim::set_to_zero()) == scaled(gradient, 0));
  CHECK(updates(optim::identity()) == gradient);
}

TEST_CASE("a trust ratio of zeros is 1") {
  std::vector<numbers> params{{0, 0, 0, 0}, {3, 4}};
  const auto u = start<layer>(optim::scale_by_trust_ratio()).step(params, {{1, 2, 3, 4}, {0, 2}});
  CHECK(u[0] == numbers{1, 2, 3, 4});
  check_close({u[1]}, {{0, 5}});
}

TEST_CASE("a mask chooses updates, and state is kept for what it chooses alone") {
  const auto some = [](auto mask) { return optim::masked(optim::sgd(1.0, 0.5), mask); };
  CHECK(updates(some(optim::named<"kernel">))[0] == scaled(gradient, -1)[0]);
  CHECK(updates(some(optim::named<"kernel">))[1] == gradient[1]);
  CHECK(updates(some(optim::others(optim::matrices)))[0] == gradient[0]);
  CHECK(updates(some([](const optim::leaf& l) { return l.path == "bias"; }))[1] == scaled(gradient, -1)[1]);
  CHECK(start<layer>(some(optim::named<"kernel">)).state_bytes() == 16);
  CHECK(start<layer>(some(optim::within<"bias">)).state_bytes() == 8);
}

TEST_CASE("groups of variables have optimisers of their own") {
  const auto groups = optim::multi_transform(optim::group(optim::named<"bias">, optim::sgd(0.5, 0.9)),
                                             optim::group(optim::everything_else, optim::adam(1e-2)));
  auto optimiser = start<layer>(groups);
  CHECK(optimiser.state_bytes() == 8 + 4 + 2 * 16);
  auto by_adam = start<layer>(optim::adam(1e-2));
  auto by_sgd = start<layer>(optim::sgd(0.5, 0.9));
  std::vector<numbers> params = at_first, adam = at_first, sgd = at_first;
  for (int i = 0; i < 3; ++i)
    optimiser.step(params, gradient), by_adam.step(adam, gradient), by_sgd.step(sgd, gradient);
  CHECK(params[0] == adam[0]);
  CHECK(params[1] == sgd[1]);
}

namespace {

/// Five steps of the polynomial 3.4445 x - 4.775 x^3 + 2.0315 x^5 on the singular values of a 2 x 2 matrix.
std::vector<double> orthogonal(std::vector<double> x) {
  double norm = 0;
  for (const double v : x) norm += v * v;
  for (double& v : x) v /= std::sqrt(norm) + 1e-8;
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::vector<double>{a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                               a[2] * b[1] + a[3] * b[3]};
  };
  for (int step = 0; step < 5; ++step) {
    const auto a = product(x, {x[0], x[2], x[1], x[3]});
    const auto squared = product(a, a);
    std::vector<double> b(4);
    for (std::size_t i = 0; i < 4; ++i) b[i] = -4.775 * a[i] + 2.0315 * squared[i];
    const auto moved = product(b, x);
    for (std::size_t i = 0; i < 4; ++i) x[i] = 3.4445 * x[i] + moved[i];
  }
  return x;
}

}  // namespace

TEST_CASE("Muon makes the momentum of a matrix orthogonal, and is Adam that looks ahead for the rest") {
  auto muon = start<layer>(optim::contrib::muon(0.1));
  auto nadam = start<layer>(optim::nadam(0.1));
  std::vector<numbers> params = at_first, others = at_first;
  std::vector<double> w(at_first[0].begin(), at_first[0].end()), m(4);
  for (int t = 1; t <= 3; ++t) {
    const auto g = scaled(gradient, t == 2 ? -0.5f : 1);
    muon.step(params, g), nadam.step(others, g);
    std::vector<double> mean(4);
    for (std::size_t i = 0; i < 4; ++i) {
      m[i] = 0.95 * m[i] + 0.05 * static_cast<double>(g[0][i]);
      mean[i] =
          0.95 * m[i] / (1 - std::pow(0.95, t + 1)) + 0.05 * static_cast<double>(g[0][i]) / (1 - std::pow(0.95, t));
    }
    const auto u = orthogonal(mean);
    for (std::size_t i = 0; i < 4; ++i) {
      w[i] -= 0.1 * u[i];
      CHECK(params[0][i] == Approx(w[i]).epsilon(1e-4).margin(1e-5));
    }
    CHECK(params[1] == others[1]);
  }
}

TEST_CASE("schedule-free training steps from an average that it keeps") {
  auto optimiser = start<layer>(optim::contrib::schedule_free_sgd(optim::linear_schedule(0, 0.2, 4)));
  std::vector<numbers> params = at_first;
  double z = 1, y = 1, sum = 0, most = 0;
  for (int t = 0; t < 6; ++t) {
    optimiser.step(params, scaled(gradient, 1.0f + static_cast<float>(t)));
    // The inner optimiser counts from 0, the weight from 1.
    const double rate = 0.2 * std::min(t / 4.0, 1.0);
    most = std::max(most, 0.2 * std::min((t + 1) / 4.0, 1.0));
    sum += most * most;
    const double c = most * most / sum;
    double x = (y - 0.1 * z) / 0.9;
    z -= rate * 0.5 * (1 + t);
    x = (1 - c) * x + c * z;
    y = 0.9 * x + 0.1 * z;
    CHECK(params[0][0] == Approx(y).epsilon(1e-5));
  }
}

TEST_CASE("schedule-free AdamW has no first moment") {
  CHECK(start<layer>(optim::contrib::schedule_free_adamw(1e-2)).state_bytes() == 3 * 4 + 24 + 4 + 24);
}

TEST_CASE("Prodigy finds its rate from how far parameters have gone") {
  auto optimiser = start<layer>(optim::contrib::prodigy(1.0, {.estim_lr0 = 1e-2, .weight_decay = 0.1}));
  std::vector<numbers> params = at_first;
  std::vector<double> p, p0, m(6), v(6), s(6);
  for (const numbers& part : at_first) p.insert(p.end(), part.begin(), part.end());
  p0 = p;
  double d = 1e-2, numerator = 0;
  const double b3 = std::sqrt(0.999);
  for (int t = 1; t <= 6; ++t) {
    const float factor = 1.0f / static_cast<float>(t);
    optimiser.step(params, scaled(gradient, factor));
    std::vector<double> g;
    for (const numbers& part : scaled(gradient, factor)) g.insert(g.end(), part.begin(), part.end());
    const double step = d * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    double gone = 0, size = 0;
    for (std::size_t i = 0; i < 6; ++i) {
      gone += g[i] * (p0[i] - p[i]);
      m[i] = 0.9 * m[i] + 0.1 * d * g[i];
      v[i] = 0.999 * v[i] + 0.001 * d * g[i] * d * g[i];
      s[i] = b3 * s[i] + step * d * g[i] / 1e-2;
      size += std::abs(s[i]);
    }
    numerator = b3 * numerator + d / 1e-2 * step * gone;
    d = std::max(d, numerator / size);
    for (std::size_t i = 0; i < 6; ++i) {
      p[i] -= step * (m[i] / (std::sqrt(v[i]) + d * 1e-8) + 0.1 * p[i]);
      CHECK(params[i / 4][i % 4] == Approx(p[i]).epsilon(1e-4).margin(1e-5));
    }
  }
  CHECK(d > 1e-2);
}
