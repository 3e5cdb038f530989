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
#include <tessera/core/error.hpp>
#include <tessera/core/number_text.hpp>
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

/// Elements that a kernel sums over for one output, and outputs that one input reaches: (fan_in, fan_out) of a kernel
/// whose last two dimensions are (in, out) and whose others are a receptive field. A rank below 2 raises shape_error.
struct fans {
  double in, out;

  constexpr explicit fans(std::span<const std::int64_t> shape) : in(1), out(1) {
    if (shape.size() < 2)
      throw shape_error("nn::fans: a kernel needs rank 2 or more, this shape has rank " + number_text(shape.size()));
    double receptive_field = 1;
    for (const std::int64_t extent : shape.first(shape.size() - 2)) receptive_field *= static_cast<double>(extent);
    in = receptive_field * static_cast<double>(shape[shape.size() - 2]);
    out = receptive_field * static_cast<double>(shape.back());
  }
};

/// A distribution times a factor that may depend on the shape; made by the functions of `initializers`.
/// A constant that can be a template argument. Source of all of them: `jax.nn.initializers`.
struct initializer {
  enum class draw { constant, uniform, normal, truncated_normal };
  enum class factor { plain, fan_in, fan_avg };

  draw drawn = draw::constant;
  factor scaled_by = factor::plain;
  double gain = 0;  // the factor itself, or the variance times the fan
  double lo = 0;    // bounds of a uniform or truncated normal draw
  double hi = 0;

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
    const fans fan(shape);
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

/// The standard initialisers, by the names of `jax.nn.initializers`. `stddev` and `scale` multiply the draw as it is.
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
constexpr initializer variance_scaling(double gain, initializer::factor fan, initializer::draw drawn) {
  const double bound = drawn == initializer::draw::truncated_normal ? 2 : 1;
  return {drawn, fan, gain, -bound, bound};
}
constexpr initializer lecun_normal() {
  return variance_scaling(1, initializer::factor::fan_in, initializer::draw::truncated_normal);
}
constexpr initializer lecun_uniform() {
  return variance_scaling(1, initializer::factor::fan_in, initializer::draw::uniform);
}
constexpr initializer he_normal() {
  return variance_scaling(2, initializer::factor::fan_in, initializer::draw::truncated_normal);
}
constexpr initializer he_uniform() {
  return variance_scaling(2, initializer::factor::fan_in, initializer::draw::uniform);
}
constexpr initializer xavier_normal() {
  return variance_scaling(1, initializer::factor::fan_avg, initializer::draw::truncated_normal);
}
constexpr initializer xavier_uniform() {
  return variance_scaling(1, initializer::factor::fan_avg, initializer::draw::uniform);
}

}  // namespace initializers

}  // namespace tessera::nn
