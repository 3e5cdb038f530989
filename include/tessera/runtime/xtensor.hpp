// SPDX-License-Identifier: Apache-2.0
// Arrays from and to xtensor.
#pragma once

#include <tessera/runtime/tensor.hpp>

#include <xtensor/xarray.hpp>
#include <xtensor/xfixed.hpp>
#include <xtensor/xtensor.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace tessera {

/// The extents of an xtensor_fixed as a shape.
template <class T>
struct fixed_shape;
template <class Data, std::size_t... Extents, xt::layout_type Layout, bool Sharable, class Tag>
struct fixed_shape<xt::xfixed_container<Data, xt::fixed_shape<Extents...>, Layout, Sharable, Tag>>
    : std::type_identity<shape<static_cast<std::int64_t>(Extents)...>> {};

/// `device_put<P<"data">, cluster>(x)` for an array whose extents are part of its type.
template <class Spec, class Mesh, HostSpan Host>
requires requires { typename fixed_shape<Host>::type; }
auto device_put(const Host& host) { return device_put<typename fixed_shape<Host>::type, Spec, Mesh>(host); }

/// All elements in an array of the same rank, or, as an xarray, of any.
template <dtype D, class Shape, class Spec, class Mesh>
xt::xtensor<storage_t<D>, static_cast<std::size_t>(Shape::rank)> to_xtensor(const tensor<D, Shape, Spec, Mesh>& x) {
  std::array<std::size_t, static_cast<std::size_t>(Shape::rank)> extents{};
  std::copy(Shape::extents.begin(), Shape::extents.end(), extents.begin());
  xt::xtensor<storage_t<D>, static_cast<std::size_t>(Shape::rank)> host(extents);
  x.copy_to(host.data());
  return host;
}
template <dtype D, class Shape, class Spec, class Mesh>
xt::xarray<storage_t<D>> to_xarray(const tensor<D, Shape, Spec, Mesh>& x) {
  typename xt::xarray<storage_t<D>>::shape_type extents(static_cast<std::size_t>(Shape::rank));
  std::copy(Shape::extents.begin(), Shape::extents.end(), extents.begin());
  xt::xarray<storage_t<D>> host(extents);
  x.copy_to(host.data());
  return host;
}

}  // namespace tessera
