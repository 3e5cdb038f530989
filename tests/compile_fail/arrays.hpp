// SPDX-License-Identifier: Apache-2.0
// Traced arrays as values, for calls of single operations.
#pragma once

#include <tessera/ops.hpp>

namespace ts = tessera;
using ts::none;
using ts::P;

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;

template <ts::dtype D, class Shape, class Spec = P<>, class Mesh = cluster>
inline constexpr ts::expr<ts::tensor<D, Shape, Spec, Mesh>::type, Mesh> array{};

template <class Shape, class Spec = P<>>
inline constexpr auto floats = array<ts::f32, Shape, Spec>;
