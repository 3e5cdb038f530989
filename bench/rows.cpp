// SPDX-License-Identifier: Apache-2.0
// Norms and losses as a step runs them, over blocks of rows: `rows.<what>=time ms copy=how many times that of a copy of
// the bytes that must move ratio=how often faster than the same steps one after another over whole arrays`, in one run.
#include <tessera/kernels/parallel.hpp>
#include <tessera/kernels/reduce.hpp>
#include <tessera/kernels/softmax.hpp>
#include <tessera/tessera.hpp>

#include "support.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

namespace ts = tessera;
namespace kernels = ts::kernels;

constexpr std::int64_t rows = 16384, columns = 768, size = rows * columns;
using matrix = ts::tensor<ts::f32, ts::shape<rows, columns>, ts::P<>, ts::mesh<>>;
using vector = ts::tensor<ts::f32, ts::shape<columns>, ts::P<>, ts::mesh<>>;

constexpr auto layer_norm(auto x, auto gain) {
  const auto centred = x - ts::mean<-1>(x, ts::keepdims);
  return centred * ts::rsqrt(ts::mean<-1>(ts::square(centred), ts::keepdims) + 1e-5) * gain;
}
inline constexpr auto norm_step = [](auto x, auto gain) { return layer_norm(x, gain); };
inline constexpr auto norm_gradient = [](auto x, auto gain, auto u) {
  return ts::grad([&](auto both) {
    const auto& [a, b] = both;
    return ts::sum(layer_norm(a, b) * u);
  })(std::tuple(x, gain));
};
inline constexpr auto softmax_step = [](auto x) { return ts::softmax(x * 0.125); };
inline constexpr auto loss_gradient = [](auto logits, auto labels) {
  return ts::grad([&](auto z) { return ts::mean(ts::optim::softmax_cross_entropy(z, labels)); })(logits);
};
inline constexpr auto squared_norm = [](auto x) { return ts::sum(ts::square(x)); };

/// Memory of whole arrays, and passes over them.
struct written_out {
  std::vector<float> x = numbers(1), u = numbers(2), a = numbers(0), b = numbers(0), c = numbers(0), d = numbers(0);
  std::vector<float> of_row = std::vector<float>(rows), of_column = std::vector<float>(columns, 1.0F);

  static std::vector<float> numbers(std::size_t seed) {
    std::vector<float> made(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<float>((i + seed) % 1013) * 0.001F;
    return made;
  }

  template <class F>
  static void each(F f) {
    kernels::parallel_for(rows, true, [&](std::int64_t row) {
      for (std::int64_t j = 0; j < columns; ++j)
        f(static_cast<std::size_t>(row), static_cast<std::size_t>(row * columns + j), static_cast<std::size_t>(j));
    });
  }
  void mean_of(const std::vector<float>& from) {
    kernels::reduce(kernels::reduce_kind::sum, from.data(), of_row.data(), rows, columns, 1, true);
    for (float& each : of_row) each *= 1.0F / columns;
  }

  void norm() {
    mean_of(x);
    each([&](std::size_t r, std::size_t i, std::size_t) { a[i] = x[i] - of_row[r], b[i] = a[i] * a[i]; });
    mean_of(b);
    for (float& each : of_row) each = 1 / std::sqrt(each + 1e-5F);
    each([&](std::size_t r, std::size_t i, std::size_t j) { c[i] = a[i] * of_row[r] * of_column[j]; });
  }

  void gradient_of_norm() {
    norm();
    std::vector<float> scale = of_row;
    each([&](std::size_t r, std::size_t i, std::size_t j) {
      b[i] = a[i] * scale[r] * u[i], d[i] = u[i] * of_column[j];
      c[i] = d[i] * a[i];
    });
    kernels::reduce(kernels::reduce_kind::sum, b.data(), of_column.data(), 1, rows, columns, true);
    mean_of(c);
    each([&](std::size_t r, std::size_t i, std::size_t) {
      b[i] = d[i] * scale[r] - a[i] * of_row[r] * scale[r] * scale[r] * scale[r];
    });
    mean_of(b);
    each([&](std::size_t r, std::size_t i, std::size_t) { b[i] -= of_row[r]; });
    std::fill(of_column.begin(), of_column.end(), 1.0F);
  }

  void softmax() {
    each([&](std::size_t, std::size_t i, std::size_t) { a[i] = x[i] * 0.125F; });
    kernels::softmax(a.data(), b.data(), rows, columns, true);
  }

  void gradient_of_loss() {
    kernels::log_softmax(x.data(), a.data(), rows, columns, true);
    each([&](std::size_t, std::size_t i, std::size_t) { b[i] = u[i] * (-1.0F / rows); });
    kernels::log_softmax_backward(a.data(), b.data(), c.data(), rows, columns, true);
  }

  void square_sum() {
    each([&](std::size_t, std::size_t i, std::size_t) { a[i] = x[i] * x[i]; });
    kernels::reduce(kernels::reduce_kind::sum, a.data(), of_row.data(), 1, size, 1, true);
  }

  /// Copies the bytes of `arrays` arrays, half of which are read and half written.
  void copy(std::int64_t arrays) {
    const std::int64_t bytes = arrays * size * 2, whole = size * 4;
    for (std::int64_t done = 0; done < bytes; done += whole) {
      const std::int64_t now = std::min(whole, bytes - done);
      kernels::parallel_for(64, true, [&](std::int64_t i) {
        const auto first = static_cast<std::size_t>(now / 64 * i);
        std::memcpy(reinterpret_cast<char*>(d.data()) + first, reinterpret_cast<const char*>(x.data()) + first,
                    static_cast<std::size_t>(now / 64));
      });
    }
  }
};

template <class Ours, class Peer>
void report(const char* what, written_out& peer, std::int64_t arrays, Ours ours, Peer alone) {
  const bench::turns turns({{"ours", ours}, {"alone", alone}, {"copy", [&] { peer.copy(arrays); }}}, 9, 1);
  std::printf("rows.%s=%.3f ms copy=%.2f ratio=%.2f peer=written_out\n", what, 1e3 * turns.seconds(0),
              turns.ratio(0, 2), turns.ratio(1, 0));
}

}  // namespace

int main() {
  written_out peer;
  const auto x = ts::device_put<ts::shape<rows, columns>, ts::P<>, ts::mesh<>>(peer.x);
  const auto u = ts::device_put<ts::shape<rows, columns>, ts::P<>, ts::mesh<>>(peer.u);
  const auto gain = ts::device_put<ts::shape<columns>, ts::P<>, ts::mesh<>>(peer.of_column);
  report(
      "layer_norm", peer, 2, [&] { ts::jit<norm_step>(x, gain); }, [&] { peer.norm(); });
  report(
      "layer_norm_gradient", peer, 3, [&] { ts::jit<norm_gradient>(x, gain, u); }, [&] { peer.gradient_of_norm(); });
  report(
      "softmax", peer, 2, [&] { ts::jit<softmax_step>(x); }, [&] { peer.softmax(); });
  report(
      "cross_entropy_gradient", peer, 3, [&] { ts::jit<loss_gradient>(x, u); }, [&] { peer.gradient_of_loss(); });
  report(
      "squared_norm", peer, 1, [&] { ts::jit<squared_norm>(x); }, [&] { peer.square_sum(); });
}
