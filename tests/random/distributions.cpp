// SPDX-License-Identifier: Apache-2.0
#include <tessera/random/distributions.hpp>
#include <tessera/random/erf_inv.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "reference/reference.hpp"

namespace rnd = tessera::random;

constexpr rnd::key k42 = rnd::make_key(42);

// Uniform numbers, coin flips and integers are constants where their key is.
static_assert(rnd::uniform_at<float>(k42, 0) == 0.48870956897735596F);
static_assert(rnd::bernoulli_at(k42, 0) && !rnd::bernoulli_at(k42, 0, 0.0) && rnd::bernoulli_at(k42, 0, 1.0));
static_assert(rnd::randint_at<std::int32_t>(k42, 3, 0, 10) == 9);

namespace {

template <class T>
struct moments {
  double mean = 0, variance = 0;
  T smallest = std::numeric_limits<T>::max(), largest = std::numeric_limits<T>::lowest();

  explicit moments(const std::vector<T>& values) {
    const auto n = static_cast<double>(values.size());
    for (const T x : values) mean += double{x} / n, smallest = std::min(smallest, x), largest = std::max(largest, x);
    for (const T x : values) variance += (double{x} - mean) * (double{x} - mean) / n;
  }
};

/// A fill from index 17 on holds the elements 17, 18, ... that the element function gives, bit for bit.
template <class T, class Distribution>
void check_fill_agrees(const Distribution& distribution) {
  std::vector<T> part(333);
  rnd::fill(std::span(part), k42, distribution, 17);
  for (std::size_t i = 0; i < part.size(); ++i) REQUIRE(part[i] == distribution(k42, 17 + i));
}

}  // namespace

TEST_CASE("filling a part gives the elements of the whole, bit for bit, for every distribution") {
  check_fill_agrees<float>(rnd::uniform_distribution<float>(-2, 3));
  check_fill_agrees<double>(rnd::uniform_distribution<double>(-2, 3));
  check_fill_agrees<float>(rnd::normal_distribution<float>());
  check_fill_agrees<double>(rnd::normal_distribution<double>());
  check_fill_agrees<float>(rnd::truncated_normal_distribution<float>(-1, 3));
  check_fill_agrees<double>(rnd::truncated_normal_distribution<double>(-1, 3));
  check_fill_agrees<std::uint8_t>(rnd::bernoulli_distribution(0.3));
  check_fill_agrees<std::int32_t>(rnd::integers<std::int32_t>(-5, 6));
}

TEST_CASE("the named fills start at the index they are given") {
  std::vector<float> out(5);
  rnd::fill_uniform(std::span(out), k42, 3, -1.0F, 1.0F);
  CHECK(out[4] == rnd::uniform_at<float>(k42, 7, -1, 1));
  rnd::fill_normal(std::span(out), k42, 3);
  CHECK(out[4] == rnd::normal_at<float>(k42, 7));
  rnd::fill_truncated_normal(std::span(out), k42, 3, -1.0F, 1.0F);
  CHECK(out[4] == rnd::truncated_normal_at<float>(k42, 7, -1, 1));
  std::vector<std::uint8_t> flips(5);
  rnd::fill_bernoulli(std::span(flips), k42, 3, 0.25);
  CHECK(flips[4] == rnd::bernoulli_at(k42, 7, 0.25));
  std::vector<std::int64_t> whole(5);
  rnd::fill_randint<std::int64_t>(whole, k42, 3, -9, 9);
  CHECK(whole[4] == rnd::randint_at<std::int64_t>(k42, 7, -9, 9));
  rnd::fill_normal(std::span<float>(), k42);
}

TEMPLATE_TEST_CASE("moments and bounds are those of the distribution", "", float, double) {
  constexpr std::size_t n = 200'000;
  std::vector<TestType> out(n);

  rnd::fill_uniform(std::span(out), k42, 0, TestType{-1}, TestType{3});
  moments m(out);
  CHECK(m.mean == Approx(1).margin(0.02));
  CHECK(m.variance == Approx(16.0 / 12).epsilon(0.02));
  CHECK((m.smallest >= -1 && m.largest < 3));

  rnd::fill_normal(std::span(out), k42);
  m = moments(out);
  CHECK(m.mean == Approx(0).margin(0.01));
  CHECK(m.variance == Approx(1).epsilon(0.02));
  CHECK((m.largest > 4 && m.largest < 6));
  CHECK((m.smallest > -6 && -m.smallest > 4));

  rnd::fill_truncated_normal(std::span(out), k42);
  m = moments(out);
  CHECK(m.mean == Approx(0).margin(0.01));
  CHECK(std::sqrt(m.variance) == Approx(0.87962566103423978).epsilon(0.01));
  CHECK((m.smallest > -2 && m.largest < 2));
}

TEST_CASE("integers fill their range and reach its ends, at every width") {
  const rnd::integers<std::int32_t> all(std::numeric_limits<std::int32_t>::min(),
                                        std::numeric_limits<std::int32_t>::max());
  const rnd::integers<std::uint64_t> wide(7, std::numeric_limits<std::uint64_t>::max());
  std::vector<int> seen(6);
  bool negative = false, positive = false, beyond_32_bits = false;
  for (std::uint64_t i = 0; i < 600; ++i) {
    const std::int64_t die = rnd::randint_at<std::int64_t>(k42, i, -2, 4);
    REQUIRE((die >= -2 && die < 4));
    ++seen[static_cast<std::size_t>(die + 2)];
    (all(k42, i) < 0 ? negative : positive) = true;
    beyond_32_bits |= wide(k42, i) >> 32 != 0;
    CHECK(rnd::randint_at<std::uint32_t>(k42, i, 5, 6) == 5);
  }
  for (const int count : seen) CHECK((count > 60 && count < 140));
  CHECK((negative && positive && beyond_32_bits));
}

TEST_CASE("a uniform range of width zero gives its bound") { CHECK(rnd::uniform_at<float>(k42, 9, 2, 2) == 2); }

TEST_CASE("bad arguments are refused with the value and the range") {
  using tessera::value_error;
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float largest = std::numeric_limits<float>::max();
  CHECK_THROWS_WITH(rnd::bernoulli_distribution(1.5), "random::bernoulli: p = 1.5 is outside [0, 1]");
  CHECK_THROWS_AS(rnd::bernoulli_distribution(-0.1), value_error);
  CHECK_THROWS_AS(rnd::bernoulli_distribution(nan), value_error);
  CHECK_THROWS_WITH((rnd::integers<std::int32_t>(4, 4)),
                    "random::integers: range [4, 4) must be ascending and not empty");
  CHECK_THROWS_AS((rnd::integers<std::uint64_t>(4, 3)), value_error);
  CHECK_THROWS_WITH(rnd::uniform_distribution<float>(2, 1),
                    "random::uniform: range [2, 1) must be finite, ascending and of finite width");
  CHECK_THROWS_AS(rnd::uniform_distribution<float>(0, inf), value_error);
  CHECK_THROWS_AS(rnd::uniform_distribution<float>(nan, 1), value_error);
  CHECK_THROWS_AS(rnd::uniform_distribution<float>(-largest, largest), value_error);
  CHECK_THROWS_AS(rnd::truncated_normal_distribution<float>(1, 1), value_error);
  CHECK_THROWS_AS(rnd::truncated_normal_distribution<float>(-inf, 1), value_error);
  CHECK_THROWS_AS(rnd::truncated_normal_distribution<double>(0, nan), value_error);
  CHECK_THROWS_AS(rnd::truncated_normal_distribution<float>(30, 31), value_error);
}

TEST_CASE("erf_inv inverts erf over its whole domain") {
  for (double y = -5.5; y <= 5.5; y += 0.01) {
    const double x = std::erf(y);
    // One unit in the last place of x moves y by that over erf'(y).
    const double unit = 1.2e-16 * std::sqrt(std::acos(-1.0)) / 2 * std::exp(y * y);
    CHECK(std::abs(rnd::erf_inv(x) - y) <= 2e-15 * (1 + std::abs(y)) + unit);
  }
  for (const float x : {-0.999F, -0.5F, -1e-20F, 0.0F, 1e-3F, 0.3F, 0.99F, 0.9999F, 0.99999994F}) {
    const double y = rnd::erf_inv(double{x}), rest = 1 - double{x} * double{x};
    // Rounding x^2 to float moves w = -log(1 - x^2) by half a unit over 1 - x^2, and y by half as much relative to w.
    const double rounding = 0.5 * 6e-8 / rest / std::max(1.0, -std::log(rest));
    CHECK(std::abs(double{rnd::erf_inv(x)} - y) <= (1e-6 + rounding) * std::abs(y));
  }
}

TEST_CASE("erf_inv is infinite at the ends and refuses what lies outside") {
  CHECK(rnd::erf_inv(1.0F) == std::numeric_limits<float>::infinity());
  CHECK(rnd::erf_inv(-1.0) == -std::numeric_limits<double>::infinity());
  CHECK_THROWS_WITH(rnd::erf_inv(1.5), "random::erf_inv: 1.5 is outside [-1, 1]");
  CHECK_THROWS_AS(rnd::erf_inv(std::numeric_limits<float>::quiet_NaN()), tessera::value_error);
}

TEST_CASE("the extreme uniform words give finite normal numbers") {
  using normal = rnd::normal_distribution<float>;
  CHECK(normal::from_unit(normal::lowest) == Approx(-5.419983).epsilon(1e-6));
  CHECK(normal::lowest == std::nextafter(-1.0F, 0.0F));
  CHECK(rnd::normal_distribution<double>::lowest == std::nextafter(-1.0, 0.0));
  CHECK(std::isfinite(rnd::normal_distribution<double>::from_unit(rnd::normal_distribution<double>::lowest)));
}

TEST_CASE("one key and one global mask, whatever the devices; a key per device gives other masks") {
  std::string rows;
  int kept = 0;
  for (std::uint64_t row = 0; row < 32; ++row) {
    unsigned byte = 0;
    for (std::uint64_t column = 0; column < 8; ++column)
      byte = byte << 1 | rnd::bernoulli_at(k42, row * 8 + column, 0.5);
    kept += std::popcount(byte);
    rows += "0123456789abcdef"[byte >> 4];
    rows += "0123456789abcdef"[byte & 15];
  }
  CHECK(reference::check("global_dropout_mask_key42", reference::json{{"kept", kept}, {"rows_hex", rows}}));

  std::vector<int> kept_by_device;
  for (const rnd::key device_key : rnd::split<8>(k42)) {
    const rnd::key dropout_key = rnd::split(device_key)[0];
    int count = 0;
    for (std::uint64_t i = 0; i < 32; ++i) count += rnd::bernoulli_at(dropout_key, i, 0.5);
    kept_by_device.push_back(count);
  }
  CHECK(reference::check("per_device_masks_kept", kept_by_device));
}

TEST_CASE("arrays of different shape and equal size drawn from one key are one sequence") {
  const rnd::key k0 = rnd::make_key(0);
  std::vector<float> wide(128 * 512), tall(512 * 128);
  for (std::uint64_t row = 0; row < 128; ++row)
    rnd::fill_normal(std::span(wide).subspan(row * 512, 512), k0, row * 512);
  for (std::uint64_t row = 0; row < 512; ++row)
    rnd::fill_normal(std::span(tall).subspan(row * 128, 128), k0, row * 128);
  CHECK(reference::check("same_key_same_stream", wide == tall));
}
