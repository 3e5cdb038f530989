// SPDX-License-Identifier: Apache-2.0
#include <tessera/nn/initializers.hpp>
#include <tessera/nn/path_key.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "reference/reference.hpp"

namespace nn = tessera::nn;
namespace rnd = tessera::random;

namespace {

constexpr std::vector<std::uint8_t> bytes(std::string_view text) { return {text.begin(), text.end()}; }

using digest = std::array<std::uint32_t, 5>;

}  // namespace

// The examples of FIPS 180, and the empty message.
static_assert(nn::sha1(bytes("abc")) == digest{0xa9993e36, 0x4706816a, 0xba3e2571, 0x7850c26c, 0x9cd0d89d});
static_assert(nn::sha1(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
              digest{0x84983e44, 0x1c3bd26e, 0xbaae4aa1, 0xf95129e5, 0xe54670f1});
static_assert(nn::sha1({}) == digest{0xda39a3ee, 0x5e6b4b0d, 0x3255bfef, 0x95601890, 0xafd80709});

TEST_CASE("sha1 pads messages of every length right about the block border") {
  CHECK(nn::sha1(std::vector<std::uint8_t>(1'000'000, 'a')) ==
        digest{0x34aa973c, 0xd4c4daa4, 0xf61eeb2b, 0xdbad2731, 0x6534016f});
  CHECK(nn::sha1(std::vector<std::uint8_t>(55, 'a'))[0] == 0xc1c8bbdc);
  CHECK(nn::sha1(std::vector<std::uint8_t>(64, 'a'))[0] == 0x0098ba82);
}

TEST_CASE("a path key depends on the names in order and on the parameter's number") {
  constexpr rnd::key root = rnd::make_key(0);
  constexpr rnd::key kernel = nn::path_key(root, {"block", "Dense_0"}, 1);
  CHECK(kernel == nn::path_key(root, {"blockDense_0"}, 1));
  CHECK(kernel != nn::path_key(root, {"Dense_0", "block"}, 1));
  CHECK(kernel != nn::path_key(root, {"block", "Dense_0"}, 2));
  CHECK(kernel != nn::path_key(rnd::make_key(1), {"block", "Dense_0"}, 1));
  CHECK(nn::path_key(root, {"a"}, 257) == rnd::fold_in(root, nn::sha1({'a', 1, 1})[0]));
}

TEST_CASE("an MLP whose parameters are keyed by path starts with the reference logits") {
  const rnd::key root = rnd::make_key(0);
  const auto layer = [root](std::string_view name, const std::vector<double>& x, std::int64_t outputs) {
    const auto inputs = static_cast<std::int64_t>(x.size());
    const std::array<std::int64_t, 2> shape{inputs, outputs};
    std::vector<float> kernel(x.size() * static_cast<std::size_t>(outputs));
    nn::initializers::lecun_normal().fill(std::span(kernel), nn::path_key(root, {name}, 1), shape);
    std::vector<double> y(static_cast<std::size_t>(outputs));
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < y.size(); ++j) y[j] += x[i] * double{kernel[i * y.size() + j]};
    return y;
  };
  auto hidden = layer("dense_0", std::vector<double>(784, 1.0), 128);
  for (double& h : hidden) h = std::max(h, 0.0);
  CHECK(reference::check("mlp_784_128_10_functional_init_logits", layer("dense_1", hidden, 10)));
}
