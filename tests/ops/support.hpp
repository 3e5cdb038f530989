// SPDX-License-Identifier: Apache-2.0
// Typed handles for tests of what operations say about types; nothing here is ever computed.
#pragma once

#include <tessera/core/type_text.hpp>
#include <tessera/nn/variable.hpp>
#include <tessera/ops/apply.hpp>
#include <tessera/runtime/tensor.hpp>

#include <catch2/catch.hpp>

/// The printed type of an expression that is not evaluated.
#define TYPE(...) ::tessera::type_text<std::remove_cvref_t<decltype(__VA_ARGS__)>>()

namespace ts = tessera;
using ts::axes, ts::message, ts::none, ts::P, ts::shape;

using grid = ts::mesh<ts::axis<"x", 2>, ts::axis<"y", 4>>;

template <ts::dtype D, class Shape, class Spec = P<>, class Mesh = grid>
using array = ts::expr<ts::tensor<D, Shape, Spec, Mesh>::type, Mesh>;

extern const array<ts::f32, shape<>> scalar;
extern const array<ts::f32, shape<8>> row;
extern const array<ts::f32, shape<8>, P<"y">> row_y;
extern const array<ts::f32, shape<4, 8>> whole;
extern const array<ts::f32, shape<4, 8>, P<"x">> by_x;
extern const array<ts::f32, shape<4, 8>, P<"x", "y">> by_xy;
extern const array<ts::f64, shape<4, 8>, P<"x">> doubles;
extern const array<ts::i32, shape<4, 8>, P<"x">> ints;
extern const array<ts::bool_, shape<4, 8>, P<"x">> bools;
extern const ts::nn::variable<ts::nn::param, ts::f32, shape<8>, P<"y">> bias;
extern const ts::nn::variable<ts::nn::param, ts::f32, shape<8, 16>, P<none, "y">> kernel;

/// What an operation's rule says of operands of these types.
template <auto Rule, class... Xs>
constexpr message fault = ts::ops::rule_on<Rule, grid, std::remove_cvref_t<Xs>...>().failure;
