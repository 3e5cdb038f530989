// SPDX-License-Identifier: Apache-2.0
// Initialisers: the first value of each element of a parameter, by the element's row-major index in the whole array, so
// that each shard of any mesh can fill itself.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include <tessera/core/compiled.hpp>
#include <tessera/core/shape.hpp>
#include <tessera/core/error.hpp>
#include <tessera/core/number_text.hpp>
#include <tessera/nn/orthogonal.hpp>
#include <tessera/random/distributions.hpp>
#include <tessera/random/threefry.hpp>

namespace tessera::nn {

/// For initialisers of one's own: `at` gives the value of element i, `fill` those of the elements from i on.
template <class I, class T = float>
concept Initializer = requires(const I& init, random::key k, std::span<const std::int64_t> shape, std::uint64_t i,
                               std::span<T> out) {
  { init.template at<T>(k, shape, i) } -> std::same_as<T>;
  init.template fill<T>(out, k, shape, i);
};

/// Dimensions of a kernel, negative ones counted from the end: `-2`, `dimensions{0, 1}`.
struct dimensions {
  int at[max_rank]{};
  int count = 0;

  constexpr dimensions(std::same_as<int> auto... each) : at{each...}, count(sizeof...(each)) {}
};

/// Which dimensions of a kernel are summed over, which number its outputs, and which number kernels side by side; the
/// others are a receptive field. As in_axis, out_axis and batch_axis of `jax.nn.initializers`.
struct fan_axes {
  dimensions in = -2;
  dimensions out = -1;
  dimensions batch{};
};

/// Elements that a kernel sums over for one output, and outputs that one input reaches: (fan_in, fan_out). A rank below
/// 2, or a dimension that is not there, raises shape_error.
struct fans {
  double in, out;

  constexpr explicit fans(std::span<const std::int64_t> shape, const fan_axes& axes = {})
      : in(product(shape, axes.in)), out(product(shape, axes.out)) {
    if (shape.size() < 2)
      throw shape_error("nn::fans: a kernel needs rank 2 or more, this shape has rank " + number_text(shape.size()));
    double size = 1;
    for (const std::int64_t extent : shape) size *= static_cast<double>(extent);
    const double receptive_field = size / in / out / product(shape, axes.batch);
    in *= receptive_field;
    out *= receptive_field;
  }

 private:
  static constexpr double product(std::span<const std::int64_t> shape, const dimensions& named) {
    const int rank = static_cast<int>(shape.size());
    double extents = 1;
    for (int i = 0; i < named.count && rank > 1; ++i) {
      const int d = named.at[i] < 0 ? named.at[i] + rank : named.at[i];
      if (d < 0 || d >= rank)
        throw shape_error("nn::fans: dimension " + number_text(named.at[i]) + " is outside [" + number_text(-rank) +
                          ", " + number_text(rank) + ")");
      extents *= static_cast<double>(shape[static_cast<std::size_t>(d)]);
    }
    return extents;
  }
};

/// A distribution times a factor that may depend on the shape; made by the functions of `initializers`.
/// A constant that can be a template argument. Source of all of them: `jax.nn.initializers`.
struct initializer {
  enum class draw { constant, uniform, normal, truncated_normal, orthogonal };
  enum class factor { plain, fan_in, fan_avg };

  draw drawn = draw::constant;
  factor scaled_by = factor::plain;
  double gain = 0;  // the factor itself, or the variance times the fan
  double lo = 0;    // bounds of a uniform or truncated normal draw
  double hi = 0;
  fan_axes axes{};
  int column_axis = -1;  // of an orthogonal draw

  /// Whether an element depends on all others, so that an array is best filled at once.
  constexpr bool fills_at_once() const { return drawn == draw::orthogonal; }

  /// The value of the element with row-major index i of an array of this shape. An index outside raises index_error, a
  /// shape without fans where they are needed shape_error.
  template <random::RandomReal T>
  T at(random::key k, std::span<const std::int64_t> shape, std::uint64_t i) const {
    T value{};
    fill(std::span(&value, 1), k, shape, i);
    return value;
  }

  /// out[j] = at(k, shape, first_index + j).
  template <random::RandomReal T>
  void fill(std::span<T> out, random::key k, std::span<const std::int64_t> shape, std::uint64_t first_index = 0) const {
    check_range(shape, first_index, out.size());
    if (out.empty()) return;
    const T scale = scale_of<T>(shape);
    switch (drawn) {
      case draw::constant: return fill_constant(out, scale);
      case draw::uniform: random::fill_uniform(out, k, first_index, static_cast<T>(lo), static_cast<T>(hi)); break;
      case draw::normal: random::fill_normal(out, k, first_index); break;
      case draw::truncated_normal:
        random::fill_truncated_normal(out, k, first_index, static_cast<T>(lo), static_cast<T>(hi));
        break;
      case draw::orthogonal: fill_orthogonal(out, k, shape, first_index, column_axis);
    }
    for (T& element : out) element *= scale;
  }

 private:
  template <class T>
  static void fill_constant(std::span<T> out, T value) {
    for (T& element : out) element = value;
  }

  // In T throughout, like the draws it multiplies.
  template <class T>
  T scale_of(std::span<const std::int64_t> shape) const {
    if (scaled_by == factor::plain) return static_cast<T>(gain);
    const fans fan(shape, axes);
    const auto variance = static_cast<T>(gain / (scaled_by == factor::fan_in ? fan.in : (fan.in + fan.out) / 2));
    if (drawn == draw::uniform) return std::sqrt(3 * variance);
    // The standard deviation that truncation at two leaves, so that the variance comes out as asked.
    if (drawn == draw::truncated_normal) return std::sqrt(variance) / static_cast<T>(0.87962566103423978);
    return std::sqrt(variance);
  }

  static void check_range(std::span<const std::int64_t> shape, std::uint64_t first_index, std::size_t count);
};

#if defined(TESSERA_COMPILED)

TESSERA_COMPILED void initializer::check_range(std::span<const std::int64_t> shape, std::uint64_t first_index,
                                               std::size_t count) {
  std::uint64_t size = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) throw shape_error("nn::initializer: extent " + number_text(extent) + " is negative");
    size *= static_cast<std::uint64_t>(extent);
  }
  if (first_index > size || count > size - first_index)
    throw index_error("nn::initializer: elements [" + number_text(first_index) + ", " +
                      number_text(first_index + count) + ") are outside [0, " + number_text(size) + ")");
}

#endif

/// The standard initialisers, by the names of `jax.nn.initializers`. `stddev` and `scale` multiply the draw as it is;
/// of kernels that are not (..., in, out) the fans are told: `lecun_normal({.in = 0, .out = {1, 2}})`.
namespace initializers {

constexpr initializer constant(double value) { return {.gain = value}; }
constexpr initializer zeros() { return constant(0); }
constexpr initializer ones() { return constant(1); }

/// Uniform on [0, scale).
constexpr initializer uniform(double scale = 1e-2) { return {initializer::draw::uniform, {}, scale, 0, 1}; }
constexpr initializer normal(double stddev = 1e-2) { return {initializer::draw::normal, {}, stddev}; }
/// A standard normal conditioned on (lo, hi), times stddev: its own deviation is smaller than stddev.
constexpr initializer truncated_normal(double stddev = 1e-2, double lo = -2, double hi = 2) {
  return {initializer::draw::truncated_normal, {}, stddev, lo, hi};
}

/// Variance gain / fan, drawn from a normal truncated at two deviations, or from a uniform range about 0.
constexpr initializer variance_scaling(double gain, initializer::factor fan, initializer::draw drawn,
                                       const fan_axes& axes = {}) {
  const double bound = drawn == initializer::draw::truncated_normal ? 2 : 1;
  return {drawn, fan, gain, -bound, bound, axes};
}
constexpr initializer lecun_normal(const fan_axes& axes = {}) {
  return variance_scaling(1, initializer::factor::fan_in, initializer::draw::truncated_normal, axes);
}
constexpr initializer lecun_uniform(const fan_axes& axes = {}) {
  return variance_scaling(1, initializer::factor::fan_in, initializer::draw::uniform, axes);
}
constexpr initializer he_normal(const fan_axes& axes = {}) {
  return variance_scaling(2, initializer::factor::fan_in, initializer::draw::truncated_normal, axes);
}
constexpr initializer he_uniform(const fan_axes& axes = {}) {
  return variance_scaling(2, initializer::factor::fan_in, initializer::draw::uniform, axes);
}
constexpr initializer xavier_normal(const fan_axes& axes = {}) {
  return variance_scaling(1, initializer::factor::fan_avg, initializer::draw::truncated_normal, axes);
}
constexpr initializer xavier_uniform(const fan_axes& axes = {}) {
  return variance_scaling(1, initializer::factor::fan_avg, initializer::draw::uniform, axes);
}
/// JAX's other names of the last two.
constexpr initializer glorot_normal(const fan_axes& axes = {}) { return xavier_normal(axes); }
constexpr initializer glorot_uniform(const fan_axes& axes = {}) { return xavier_uniform(axes); }

/// Columns (along `column_axis`) at right angles and `scale` long, rows where those are fewer; uniform among all such
/// matrices. The factor Q of a matrix of normal numbers, which are JAX's bit for bit, with a positive diagonal of R.
/// Householder's method in double precision: equal to JAX up to the rounding there. Source: `jax.nn.initializers`.
constexpr initializer orthogonal(double scale = 1, int column_axis = -1) {
  initializer made{.drawn = initializer::draw::orthogonal, .gain = scale};
  made.column_axis = column_axis;
  return made;
}

}  // namespace initializers

}  // namespace tessera::nn
