// SPDX-License-Identifier: Apache-2.0
// Traced arrays of any type, and what a function gives for them.
#pragma once

#include <tessera/ops/control.hpp>
#include <tessera/types.hpp>

#include <utility>

namespace ts = tessera;

/// The abstract value of a case's input: V, U, R are the sets of axes over which it varies, has a sum pending, or is
/// reduced.
template <ts::dtype D, class Shape, class Spec, class Mesh, ts::axis_set V, ts::axis_set U, ts::axis_set R>
constexpr ts::aval aval_of_input() {
  ts::aval a = ts::resolve<D, Shape, Spec, Mesh>().result;
  a.varying = V;
  a.unreduced = U;
  a.reduced = R;
  return a;
}
template <ts::dtype D, class Shape, class Spec, class Mesh, ts::axis_set V, ts::axis_set U, ts::axis_set R>
using array = ts::expr<aval_of_input<D, Shape, Spec, Mesh, V, U, R>(), Mesh>;

/// What a function gives for traced arrays.
template <const auto& F, class... Arrays>
using result_of = decltype(F(Arrays{}...));
