// SPDX-License-Identifier: Apache-2.0
// An operation of one's own: a moving average along the last dimension, with its rule, its kernel and its gradient.
#include <tessera/tessera.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace ts = tessera;
using ts::P, ts::none;

/// y[..., i] = (x[..., i - 1] + x[..., i] + x[..., i + 1]) / 3, with zeros beyond the ends.
struct moving_average {
  static constexpr auto name = ts::text("moving_average");

  /// float32 or float64 -> the same type. A device needs whole rows, so the last dimension must be uncut.
  static constexpr ts::ruling rule(std::span<const ts::aval> x, const ts::mesh_value&) {
    if (x[0].rank == 0 || !ts::is_floating(x[0].type)) return ts::refuse(ts::message::custom_op_refused);
    const int last = x[0].rank - 1;
    if (x[0].dims[last].axes != 0) return ts::refuse(ts::message::custom_op_refused, last);
    return {x[0]};
  }

  /// One device's rows.
  static void run(const ts::custom_call& call) {
    if (call.output.type == ts::f32) average<float>(call);
    else average<double>(call);
  }

  /// The matrix of the operation is symmetric, so it is its own transpose.
  static constexpr auto gradient = [](auto, auto, auto ct) { return std::tuple(ts::custom_op<moving_average>(ct)); };

 private:
  template <class T>
  static void average(const ts::custom_call& call) {
    const auto x = call.input<T>(0);
    const auto y = call.result<T>();
    const auto columns = static_cast<std::size_t>(call.output.extent(-1));
    for (std::size_t i = 0; i < y.size(); ++i) {
      const T before = i % columns == 0 ? T{0} : x[i - 1];
      const T after = i % columns == columns - 1 ? T{0} : x[i + 1];
      y[i] = (before + x[i] + after) / 3;
    }
  }
};

using cluster = ts::mesh<ts::axis<"data", 2>>;

/// The loss sum(y^2), y the average of x twice over; its gradient; the gradient of the gradient's sum.
inline constexpr auto smooth = [](auto x) {
  const auto loss = [](auto in) {
    return ts::sum(ts::square(ts::custom_op<moving_average>(ts::custom_op<moving_average>(in))));
  };
  const auto slope = [loss](auto in) { return ts::sum(ts::grad(loss)(in)); };
  return std::tuple(loss(x), ts::grad(loss)(x), ts::grad(slope)(x));
};

/// The same in plain loops.
std::vector<double> average(const std::vector<double>& x, std::size_t columns) {
  std::vector<double> y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] = ((i % columns == 0 ? 0 : x[i - 1]) + x[i] + (i % columns == columns - 1 ? 0 : x[i + 1])) / 3;
  return y;
}

/// Ends the program unless the numbers agree.
void expect(const char* what, double found, double wanted) {
  if (std::abs(found - wanted) <= 1e-12 * std::max(1.0, std::abs(wanted))) return;
  std::printf("%s is %.17g, not %.17g\n", what, found, wanted);
  std::exit(1);
}

int main() {
  constexpr std::size_t columns = 5;
  const std::vector<double> host{1, 2, 3, 4, 5, -1, 0, 7, 2, 2, 0, 0, 1, 0, 0, 3, 1, 4, 1, 5};
  const auto x = ts::device_put<ts::shape<4, 5>, P<"data">, cluster>(host);

  using step = ts::lowered<smooth, decltype(x)>;
  static_assert(step::collectives().all_reduce == 1);  // of the loss; averages move nothing

  const auto [loss, slope, curve] = ts::jit<smooth>(x);
  const auto twice = [&](const std::vector<double>& v) { return average(average(v, columns), columns); };
  const std::vector<double> y = twice(host);
  double sum = 0;
  for (double element : y) sum += element * element;
  std::vector<double> gradient = twice(y);
  const std::vector<double> curvature = twice(twice(std::vector<double>(host.size(), 2)));

  expect("loss", loss.item(), sum);
  const auto found = slope.to_vector();
  const auto bent = curve.to_vector();
  for (std::size_t i = 0; i < host.size(); ++i) {
    expect("gradient", found[i], 2 * gradient[i]);
    expect("second derivative", bent[i], curvature[i]);
  }
  std::printf("loss %.6f, as plain loops have it; so are %zu gradients and second derivatives\n", sum, host.size());
}
