// SPDX-License-Identifier: Apache-2.0
// Parameter keys named by path, as functional-style modules draw them: adding a layer moves no other layer's keys.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include <tessera/random/threefry.hpp>

namespace tessera::nn {

namespace detail {

constexpr std::uint32_t sha1_word(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

constexpr void sha1_block(std::array<std::uint32_t, 5>& h, const std::uint8_t* block) {
  std::array<std::uint32_t, 80> w{};
  for (std::size_t t = 0; t < 16; ++t) w[t] = sha1_word(block + 4 * t);
  for (std::size_t t = 16; t < 80; ++t) w[t] = std::rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
  auto [a, b, c, d, e] = h;
  for (std::size_t t = 0; t < 80; ++t) {
    const std::uint32_t f = t < 20   ? ((b & c) | (~b & d)) + 0x5A827999U
                            : t < 40 ? (b ^ c ^ d) + 0x6ED9EBA1U
                            : t < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDCU
                                     : (b ^ c ^ d) + 0xCA62C1D6U;
    const std::uint32_t next = std::rotl(a, 5) + f + e + w[t];
    e = d, d = c, c = std::rotl(b, 30), b = a, a = next;
  }
  h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

}  // namespace detail

/// The SHA-1 digest of bytes as five words. It names keys here and secures nothing. Source: FIPS 180-4.
constexpr std::array<std::uint32_t, 5> sha1(std::vector<std::uint8_t> bytes) {
  const std::uint64_t bit_length = std::uint64_t{bytes.size()} * 8;
  bytes.push_back(0x80);
  while (bytes.size() % 64 != 56) bytes.push_back(0);
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(bit_length >> shift));
  std::array<std::uint32_t, 5> h{0x67452301U, 0xEFCDAB89U, 0x98BADCFEU, 0x10325476U, 0xC3D2E1F0U};
  for (std::size_t start = 0; start < bytes.size(); start += 64) detail::sha1_block(h, bytes.data() + start);
  return h;
}

/// The key of the j-th parameter (j = 1, 2, ...) made in the layer at `path`: fold_in(root, w), w the first word of the
/// SHA-1 of the path's names, as UTF-8 without separators, and of j as the fewest big-endian bytes that hold it.
/// `path_key(root, {"Dense_0"}, 1)` is the kernel's key of that layer. Source: Flax Linen's scopes.
constexpr random::key path_key(random::key root, std::span<const std::string_view> path, std::uint32_t j) {
  std::vector<std::uint8_t> bytes;
  for (const std::string_view name : path)
    for (const char c : name) bytes.push_back(static_cast<std::uint8_t>(c));
  for (int shift = 24; shift >= 0; shift -= 8)
    if (j >> shift != 0) bytes.push_back(static_cast<std::uint8_t>(j >> shift));
  return random::fold_in(root, sha1(bytes)[0]);
}

constexpr random::key path_key(random::key root, std::initializer_list<std::string_view> path, std::uint32_t j) {
  return path_key(root, std::span<const std::string_view>(path.begin(), path.size()), j);
}

}  // namespace tessera::nn
