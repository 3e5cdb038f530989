// SPDX-License-Identifier: Apache-2.0
// Dropout: elements that are zero at random while a model trains.
#pragma once

#include <tessera/nn/input.hpp>
#include <tessera/nn/key_stream.hpp>
#include <tessera/nn/mode.hpp>
#include <tessera/ops/create.hpp>
#include <tessera/ops/where.hpp>

namespace tessera {

/// Dimensions along which dropout drops all elements or none.
template <int... Dims>
struct broadcast_dims {
  static constexpr nn::option about = nn::option::broadcast_dims;

  static constexpr bool has([[maybe_unused]] int d, [[maybe_unused]] int rank) {
    return (false || ... || (Dims == d || Dims + rank == d));
  }
};

namespace nn {

/// An argument of dropout: this call drops nothing.
struct deterministic_t {};
inline constexpr deterministic_t deterministic{};

/// y = x / (1 - Rate) where a draw keeps an element, 0 elsewhere, which happens with probability Rate: float32[...] ->
/// the same type. `nn::eval(model)` and `drop(x, nn::deterministic)` pass x on. A rate of 0 is the identity bit for
/// bit, of 1 gives zeros, neither draws. Options: `broadcast_dims<...>`, which share a draw. Each call takes one key of
/// the layer's own stream, `key_stream<"dropout">`; elements depend on the key and their place alone, so that any mesh
/// and every run again (checkpoint) draws the same. Gradient: the cotangent / (1 - Rate) where x was kept. Saved for
/// it: nothing, the draw is repeated. No collective. Errors: a rate outside [0, 1] does not compile. Source: Srivastava
/// et al. 2014; flax.nnx.Dropout, with its bits.
template <double Rate, class... Options>
struct dropout {
  using name = layer_name<"dropout">;
  static_assert(allows<name, option::broadcast_dims>::template check<Options...>());
  static constexpr bool rate_checked() {
    if constexpr (!(Rate >= 0 && Rate <= 1)) diagnose(report<message::dropout_rate, no_details<dropout>>);
    return true;
  }
  static_assert(rate_checked());

  key_stream<"dropout"> rngs;
  TESSERA_MODULE(dropout, rngs)

  template <ArrayLike X>
  constexpr auto operator()(const X& x) {
    if constexpr (Variable<X>) {
      return (*this)(reshard<typename X::spec_type>(x));
    } else if constexpr (Poison<X>) {
      return poison{};
    } else if constexpr (RuntimeArray<X>) {
      return reshard<P<>>(x);
    } else if constexpr (Rate == 0) {
      return x;
    } else {
      if (evaluates(*this)) return x;
      if constexpr (Rate >= 1) return zeros_like(x);
      else return where(kept(x), x / (1 - Rate), 0.0);
    }
  }
  template <Expr X>
  constexpr X operator()(const X& x, deterministic_t) const {
    return x;
  }

 private:
  /// Cut as x is, so that each device draws its own part.
  template <Expr X>
  constexpr auto kept(const X&) {
    using shared = option_or<option::broadcast_dims, broadcast_dims<>, Options...>;
    constexpr aval mask = [] {
      aval type = without_marks(X::type);
      for (int d = 0; d < type.rank; ++d)
        if (shared::has(d, type.rank)) type.dims[d] = {1, 0};
      return type;
    }();
    const auto drawn = rngs();
    const expr<decltype(drawn)::type, typename X::mesh_type> key{drawn.handle};  // on the mesh of x, not an open one
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return random::bernoulli<shape<mask.dims[I].extent...>>(key, 1 - Rate,
                                                              out_sharding<spec_type<mask, typename X::mesh_type>>);
    }
    (std::make_index_sequence<static_cast<std::size_t>(mask.rank)>{});
  }
};

}  // namespace nn
}  // namespace tessera
