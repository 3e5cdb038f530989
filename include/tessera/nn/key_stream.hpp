// SPDX-License-Identifier: Apache-2.0
// A stream of random keys that is part of a module: a forward pass draws from it.
#pragma once

#include <tessera/graph/visit.hpp>
#include <tessera/nn/variable.hpp>
#include <tessera/ops/random.hpp>

namespace tessera::nn {

/// The base key of a stream within a module, uint32[2]. `init` gives it one key of stream Name.
template <text Name>
struct stream_key : variable<rng_state, dtype::u32, shape<2>> {
  static constexpr std::string_view stream = Name.view();
  using variable<rng_state, dtype::u32, shape<2>>::operator=;
};

/// A member of layers that are random: `key_stream<"dropout"> rngs;`. Call c of it gives fold_in(key, c), uint32[2],
/// for random::bernoulli and the like; the count goes up in the module, in whatever body the call is (jit, scan,
/// checkpoint, cond), and a run again for a gradient draws the same key. `init` forks it from the stream of that name:
/// one key of that is its base, the count is 0; a layer in nn::stack has streams of its own. Source:
/// flax.nnx.RngStream, Rngs.fork.
template <text Name = "default">
struct key_stream {
  stream_key<Name> key;
  variable<rng_state, dtype::u32, shape<>> count;
  TESSERA_MODULE(key_stream, key, count)

  constexpr auto operator()() {
    const auto drawn = random::fold_in(key, count);
    count += 1;
    return drawn;
  }
};

}  // namespace tessera::nn
