// SPDX-License-Identifier: Apache-2.0
// Named streams of random keys that a model draws from: `rngs{0}`, `rngs{.params = 0, .dropout = 1}`.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/core/compiled.hpp>

#if defined(TESSERA_COMPILED)
#include <algorithm>
#endif

#include <tessera/core/error.hpp>
#include <tessera/random/threefry.hpp>

namespace tessera::nn {

/// A base key and a count of calls; call c returns fold_in(base, c). Made from a seed or a key, or absent.
/// Source: `flax.nnx.RngStream`.
class rng_stream {
 public:
  constexpr rng_stream() = default;
  template <random::Seed T>
  constexpr rng_stream(T seed) : rng_stream(random::make_key(seed)) {}
  constexpr rng_stream(random::key base) : base_(base), present_(true) {}

  constexpr bool present() const { return present_; }
  constexpr random::key base() const { return base_; }
  constexpr std::uint32_t count() const { return count_; }

  /// The next key. A stream without a seed, or one that has given 2^32 - 1 keys, raises value_error.
  constexpr random::key operator()() {
    if (!present_) throw value_error("nn::rng_stream: this stream has no seed");
    if (count_ == std::numeric_limits<std::uint32_t>::max())
      throw value_error("nn::rng_stream: all keys of this stream are used up");
    return random::fold_in(base_, count_++);
  }

  /// A new stream with its own count from 0; its base is this stream's next key.
  constexpr rng_stream fork() { return (*this)(); }

 private:
  random::key base_{};
  std::uint32_t count_ = 0;
  bool present_ = false;
};

/// A default stream, the usual named ones, and those a user names. A name without a stream of its own draws from the
/// default one and shares its count; without a default either, value_error names the stream and those present.
/// `rngs{0}` has the default stream alone, `rngs{.params = 0}` the one for parameters alone. Source: `flax.nnx.Rngs`.
struct rngs {
  rng_stream default_stream{};
  rng_stream params{};
  rng_stream dropout{};
  std::vector<std::pair<std::string, rng_stream>> others{};

  /// These streams and one more, `rngs{0}.with("noise", 3)`; a name that is there already gets the new stream.
  rngs with(std::string_view name, rng_stream stream) const;

  /// The stream that draws for `name`.
  rng_stream& operator[](std::string_view name);

  random::key operator()(std::string_view name);
  rng_stream fork(std::string_view name) { return (*this)[name].fork(); }

  /// Streams for n things side by side: every stream gives one key, whose n children are the bases of theirs. Source:
  /// `flax.nnx.split_rngs`.
  std::vector<rngs> split(std::size_t n);

 private:
  rng_stream* find(std::string_view name);
  std::string listed() const;
};

#if defined(TESSERA_COMPILED)

TESSERA_COMPILED rngs rngs::with(std::string_view name, rng_stream stream) const {
  rngs result = *this;
  if (rng_stream* own = result.find(name)) *own = stream;
  else result.others.emplace_back(name, stream);
  return result;
}

TESSERA_COMPILED rng_stream* rngs::find(std::string_view name) {
  if (name == "default") return &default_stream;
  if (name == "params") return &params;
  if (name == "dropout") return &dropout;
  const auto named = std::find_if(others.begin(), others.end(), [name](const auto& s) { return s.first == name; });
  return named == others.end() ? nullptr : &named->second;
}

TESSERA_COMPILED std::string rngs::listed() const {
  std::string names;
  const auto add = [&names](std::string_view name, const rng_stream& stream) {
    if (stream.present()) names += (names.empty() ? "" : ", ") + std::string(name);
  };
  add("params", params), add("dropout", dropout);
  for (const auto& [name, stream] : others) add(name, stream);
  return names.empty() ? "none" : names;
}

TESSERA_COMPILED std::vector<rngs> rngs::split(std::size_t n) {
  std::vector<rngs> parts(n, *this);
  const auto divide = [n](rng_stream& stream, auto of_part) {
    if (!stream.present()) return;
    const std::vector<random::key> bases = random::split(stream(), n);
    for (std::size_t i = 0; i < n; ++i) of_part(i) = bases[i];
  };
  divide(default_stream, [&](std::size_t i) -> rng_stream& { return parts[i].default_stream; });
  divide(params, [&](std::size_t i) -> rng_stream& { return parts[i].params; });
  divide(dropout, [&](std::size_t i) -> rng_stream& { return parts[i].dropout; });
  for (std::size_t s = 0; s < others.size(); ++s)
    divide(others[s].second, [&](std::size_t i) -> rng_stream& { return parts[i].others[s].second; });
  return parts;
}

TESSERA_COMPILED random::key rngs::operator()(std::string_view name) { return (*this)[name](); }

TESSERA_COMPILED rng_stream& rngs::operator[](std::string_view name) {
  if (rng_stream* own = find(name); own != nullptr && own->present()) return *own;
  if (default_stream.present()) return default_stream;
  throw value_error("nn::rngs: no stream \"" + std::string(name) + "\" and no default stream; there is " + listed());
}

#endif

}  // namespace tessera::nn
