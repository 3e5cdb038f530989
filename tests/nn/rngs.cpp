// SPDX-License-Identifier: Apache-2.0
#include <tessera/nn/rngs.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <catch2/catch.hpp>

#include "reference/reference.hpp"

namespace nn = tessera::nn;
namespace rnd = tessera::random;

static_assert(std::is_aggregate_v<nn::rngs>);

// A stream is usable in a constant expression: call c gives fold_in(base, c).
static_assert([] {
  nn::rng_stream stream = 5;
  stream();
  return stream() == rnd::fold_in(rnd::make_key(5), 1) && stream.count() == 2;
}());

TEST_CASE("named streams count by themselves") {
  nn::rngs streams{.params = 0, .dropout = 1};
  CHECK(streams("params") == rnd::fold_in(rnd::make_key(0), 0));
  CHECK(streams("dropout") == rnd::fold_in(rnd::make_key(1), 0));
  CHECK(streams("params") == rnd::fold_in(rnd::make_key(0), 1));
}

TEST_CASE("a name without a stream draws from the default stream and shares its count") {
  nn::rngs streams{.default_stream = 9, .params = 0};
  CHECK(streams("noise") == rnd::fold_in(rnd::make_key(9), 0));
  CHECK(streams("default") == rnd::fold_in(rnd::make_key(9), 1));
  CHECK(streams("dropout") == rnd::fold_in(rnd::make_key(9), 2));
  CHECK(streams.params.count() == 0);

  nn::rngs alone{3};
  CHECK(alone("params") == rnd::fold_in(rnd::make_key(3), 0));
}

TEST_CASE("a user names streams, replaces them, and seeds them with keys") {
  nn::rngs streams = nn::rngs{.params = 0}.with("noise", 3).with("params", rnd::key{7, 8});
  CHECK(streams("noise") == rnd::fold_in(rnd::make_key(3), 0));
  CHECK(streams("params") == rnd::fold_in(rnd::key{7, 8}, 0));
  CHECK(streams.with("noise", 4)("noise") == rnd::fold_in(rnd::make_key(4), 0));
  CHECK(streams("noise") == rnd::fold_in(rnd::make_key(3), 1));
}

TEST_CASE("a fork takes one key of its parent as base and counts from 0") {
  nn::rngs streams{.params = 0, .dropout = 1};
  nn::rng_stream forked = streams.fork("dropout");
  CHECK(forked.base() == rnd::fold_in(rnd::make_key(1), 0));
  CHECK(forked() == rnd::fold_in(forked.base(), 0));
  CHECK(streams.dropout.count() == 1);
  nn::rngs alone{4};
  CHECK(alone.fork("dropout").base() == rnd::fold_in(rnd::make_key(4), 0));
}

TEST_CASE("a copy draws the same keys") {
  nn::rngs streams{.params = 6};
  streams("params");
  nn::rngs copy = streams;
  CHECK(copy("params") == streams("params"));
}

TEST_CASE("a missing stream without a default is an error that names it and those present") {
  nn::rngs streams = nn::rngs{.params = 0}.with("noise", 3);
  CHECK_THROWS_AS(streams("dropout"), tessera::value_error);
  CHECK_THROWS_WITH(streams("dropout"),
                    "nn::rngs: no stream \"dropout\" and no default stream; there is params, noise");
  CHECK_THROWS_WITH(nn::rngs{}("params"), "nn::rngs: no stream \"params\" and no default stream; there is none");
  CHECK_THROWS_WITH(streams.dropout(), "nn::rng_stream: this stream has no seed");
  CHECK_THROWS_AS(nn::rngs{.params = -1}, tessera::value_error);
  CHECK(streams.params.count() == 0);
}

TEST_CASE("the kernels of an object-style transformer draw the keys their place in the order of construction says") {
  // A block draws 10 keys: two norms (scale, bias), then qkv 4, proj 5, fc1 6 and its bias 7, fc2 8 and its bias 9.
  nn::rngs streams{0};
  std::vector<rnd::key> calls;
  for (int c = 0; c < 15; ++c) calls.push_back(streams("params"));
  std::vector<std::vector<std::uint32_t>> got;
  for (const std::size_t c : {4U, 5U, 6U, 8U, 14U}) got.push_back({calls[c].hi, calls[c].lo});
  CHECK(reference::check("object_transformer_first_keys", got));
}
