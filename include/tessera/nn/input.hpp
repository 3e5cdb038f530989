// SPDX-License-Identifier: Apache-2.0
// What a layer is called with: arrays, variables, what is wrong already, and inputs that do not fit the layer.
#pragma once

#include <tessera/nn/precision.hpp>
#include <tessera/ops/reshard.hpp>

namespace tessera::nn {

/// Whether the last extents are those of a layer's input; in the body of a shard_map a block of it.
template <class Layer, class X>
constexpr bool features_fit() {
  constexpr aval type = X::type;
  const bool in_blocks = !X::mesh_type::open && X::mesh_type::value.axes_of(axis_kind::manual) != 0;
  const auto fits = [&](int from_end, std::int64_t wanted) {
    if (type.rank < from_end) return false;
    const std::int64_t given = type.dims[type.rank - from_end].extent;
    return given == wanted || (in_blocks && given > 0 && wanted % given == 0);
  };
  if constexpr (requires { typename Layer::in_shape; }) {
    constexpr auto wanted = Layer::in_shape::extents;
    int from_end = static_cast<int>(wanted.size());
    for (const std::int64_t extent : wanted)
      if (!fits(from_end--, extent)) return false;
    return true;
  } else {
    return fits(1, Layer::in_features);
  }
}

/// f(x), with x as a traced array, unless it is poison or its last extent is not the layer's in_features: then the
/// build stops, and the result is a poison.
template <class Layer, class X, class F>
constexpr auto with_features(const X& x, F f) {
  if constexpr (Poison<X>) {
    return poison{};
  } else if constexpr (Variable<X>) {
    return with_features<Layer>(reshard<typename X::spec_type>(x), f);
  } else if constexpr (RuntimeArray<X>) {
    return reshard<P<>>(x);
  } else if constexpr (!features_fit<Layer, X>()) {
    diagnose(report<message::layer_features, &Layer::name::template of<X>>);
    return poison{};
  } else {
    return f(x);
  }
}

}  // namespace tessera::nn
