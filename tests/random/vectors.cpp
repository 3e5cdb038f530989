// SPDX-License-Identifier: Apache-2.0
// Every vector of tests/reference/random_vectors.json, by a loop over the file.
#include <tessera/nn/initializers.hpp>
#include <tessera/nn/path_key.hpp>
#include <tessera/nn/rngs.hpp>
#include <tessera/random/distributions.hpp>
#include <tessera/random/erf_inv.hpp>
#include <tessera/random/threefry.hpp>

#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "reference/reference.hpp"

namespace {

namespace rnd = tessera::random;
namespace nn = tessera::nn;
using reference::json;

std::uint64_t from_hex(const json& text) { return std::stoull(text.get<std::string>(), nullptr, 16); }

rnd::key key_of(const json& v) {
  return {static_cast<std::uint32_t>(from_hex(v["key"][0])), static_cast<std::uint32_t>(from_hex(v["key"][1]))};
}

std::vector<std::int64_t> shape_of(const json& v) { return v["shape"].get<std::vector<std::int64_t>>(); }

std::size_t count_of(const json& v) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape_of(v)) count *= static_cast<std::size_t>(extent);
  return count;
}

void check_keys(const json& v, const std::vector<rnd::key>& got) {
  REQUIRE(v["values_hex"].size() == 2 * got.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(got[i].hi == from_hex(v["values_hex"][2 * i]));
    CHECK(got[i].lo == from_hex(v["values_hex"][2 * i + 1]));
  }
}

template <class At>
void check_bits(const json& v, At at) {
  const json& first = v["first_hex"];
  REQUIRE(first.size() == std::min<std::size_t>(count_of(v), 8));
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < count_of(v); ++i) {
    const std::uint64_t got = at(key_of(v), i);
    if (i < first.size()) CHECK(got == from_hex(first[i]));
    all ^= got;
  }
  if (v.contains("xor_of_all_hex")) CHECK(all == from_hex(v["xor_of_all_hex"]));
}

/// Compares a drawn array with the vector's first and last elements and its sum, by the vector's tolerance.
void check_floats(const json& v, const std::vector<float>& got) {
  REQUIRE(got.size() == count_of(v));
  const json& rule = v["tolerance"];
  const json& first = v["first"];
  REQUIRE(first.size() == std::min<std::size_t>(got.size(), 8));
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(reference::compare(first[i], got[i], rule));
    const auto bits = static_cast<std::uint32_t>(from_hex(v["first_float32_hex"][i]));
    CHECK(reference::compare(std::bit_cast<float>(bits), got[i], rule));
  }
  if (v.contains("last")) CHECK(reference::compare(v["last"], got.back(), rule));
  if (v.contains("sum")) {
    double sum = 0;
    for (const float x : got) sum += double{x};
    const json sum_rule = rule.contains("sum_atol") ? json{{"atol", rule["sum_atol"]}} : rule;
    CHECK(reference::compare(v["sum"], sum, sum_rule));
  }
}

template <class Distribution>
std::vector<float> drawn(const json& v, const Distribution& distribution) {
  std::vector<float> out(count_of(v));
  rnd::fill(std::span(out), key_of(v), distribution);
  for (std::size_t i = 0; i < out.size(); ++i) REQUIRE(out[i] == distribution(key_of(v), i));
  return out;
}

void check_hash(const json& v) {
  const json& counter = v["args"]["counter_hex"];
  check_keys(v, {rnd::threefry2x32(key_of(v), static_cast<std::uint32_t>(from_hex(counter[0])),
                                   static_cast<std::uint32_t>(from_hex(counter[1])))});
}

void check_uniform(const json& v) {
  const json args = v.value("args", json::object());
  check_floats(v, drawn(v, rnd::uniform_distribution<float>(args.value("low", 0.0F), args.value("high", 1.0F))));
}

void check_truncated_normal(const json& v) {
  check_floats(v, drawn(v, rnd::truncated_normal_distribution<float>(v["args"]["low"], v["args"]["high"])));
}

void check_bernoulli(const json& v) {
  const rnd::bernoulli_distribution distribution(v["args"]["p"].get<double>());
  const json& first = v["first"];
  std::size_t count_true = 0;
  for (std::size_t i = 0; i < count_of(v); ++i) {
    const bool got = distribution(key_of(v), i);
    if (i < first.size()) CHECK(got == (first[i] == 1));
    count_true += got;
  }
  CHECK(count_true == v["count_true"]);
}

void check_randint(const json& v) {
  const rnd::integers<std::int32_t> distribution(v["args"]["low"], v["args"]["high"]);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < count_of(v); ++i) {
    const std::int32_t got = distribution(key_of(v), i);
    if (i < v["first"].size()) CHECK(got == v["first"][i]);
    sum += got;
  }
  CHECK(sum == v["sum"]);
}

void check_lecun_normal(const json& v) {
  const auto shape = shape_of(v);
  std::vector<float> out(count_of(v));
  nn::initializers::lecun_normal().fill(std::span(out), key_of(v), shape);
  check_floats(v, out);
}

/// Plays the calls of a stream vector: "name" draws a key, "name.fork" forks that stream, "fork" draws from the fork.
void check_stream(const json& v) {
  nn::rngs streams;
  const std::string seeds = v["args"]["streams"];
  if (seeds == "default=0") streams = nn::rngs{0};
  else if (seeds == "params=0, dropout=1") streams = nn::rngs{.params = 0, .dropout = 1};
  else FAIL("unknown streams: " << seeds);
  nn::rng_stream forked;
  std::vector<rnd::key> got;
  for (const std::string call : v["args"]["calls"]) {
    if (call == "fork") {
      got.push_back(forked());
    } else if (const auto dot = call.find(".fork"); dot != std::string::npos) {
      forked = streams.fork(call.substr(0, dot));
      got.push_back(forked.base());
    } else {
      got.push_back(streams(call));
    }
  }
  check_keys(v, got);
}

void check_path_key(const json& v) {
  const json& path = v["args"]["path"];
  REQUIRE(path.size() == 2);
  const auto layer = path[0].get<std::string>();
  check_keys(v, {nn::path_key(key_of(v), {layer}, path[1].get<std::uint32_t>())});
}

void check_erf_inv(const json& v) {
  REQUIRE(v["x"].size() == v["values"].size());
  for (std::size_t i = 0; i < v["x"].size(); ++i) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(from_hex(v["x_float32_hex"][i])));
    CHECK(x == v["x"][i].get<float>());
    CHECK(reference::compare(v["values"][i], rnd::erf_inv(x), v["tolerance"]));
    CHECK(reference::compare(v["values"][i], rnd::erf_inv(double{x}), v["tolerance"]));
  }
}

const std::map<std::string, std::function<void(const json&)>> checks{
    {"hash", check_hash},
    {"split", [](const json& v) { check_keys(v, rnd::split(key_of(v), v["args"]["n"].get<std::size_t>())); }},
    {"fold_in", [](const json& v) { check_keys(v, {rnd::fold_in(key_of(v), v["args"]["data"])}); }},
    {"bits8", [](const json& v) { check_bits(v, rnd::bits8_at); }},
    {"bits16", [](const json& v) { check_bits(v, rnd::bits16_at); }},
    {"bits32", [](const json& v) { check_bits(v, rnd::bits32_at); }},
    {"bits64", [](const json& v) { check_bits(v, rnd::bits64_at); }},
    {"uniform", check_uniform},
    {"normal", [](const json& v) { check_floats(v, drawn(v, rnd::normal_distribution<float>())); }},
    {"truncated_normal", check_truncated_normal},
    {"bernoulli", check_bernoulli},
    {"randint", check_randint},
    {"lecun_normal", check_lecun_normal},
    {"stream", check_stream},
    {"path_key", check_path_key},
    {"erf_inv", check_erf_inv},
};

}  // namespace

TEST_CASE("every random vector of the reference file comes out") {
  const json vectors = reference::load_json("random_vectors.json").at("vectors");
  REQUIRE(vectors.size() == 77);
  std::size_t checked = 0;
  for (const json& v : vectors) {
    const std::string op = v.at("op");
    INFO("vector " << v.dump().substr(0, 200));
    REQUIRE(checks.count(op) == 1);
    checks.at(op)(v);
    ++checked;
  }
  CHECK(checked == vectors.size());
}
