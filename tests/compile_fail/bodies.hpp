// SPDX-License-Identifier: Apache-2.0
// Values as the body of a shard_map over all axes of the cluster has them.
#pragma once

#include "arrays.hpp"

using ts::manual_state;

constexpr ts::axis_set data = 1;
constexpr ts::axis_set model = 2;

template <ts::dtype D, class Shape, manual_state State, ts::axis_set Axes>
struct body {
  static constexpr ts::aval type = ts::sharding::with_state(ts::plain_aval<D, Shape>(), Axes, State);
  using handle = ts::expr<type, ts::manual_region<cluster, data | model>>;
};

template <ts::dtype D, class Shape, manual_state State = manual_state::varying, ts::axis_set Axes = data>
inline constexpr auto local = typename body<D, Shape, State, Axes>::handle{};

template <class Shape, ts::axis_set Axes = data>
inline constexpr auto varying = local<ts::f32, Shape, manual_state::varying, Axes>;
