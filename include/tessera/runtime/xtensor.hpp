// SPDX-License-Identifier: Apache-2.0
// Arrays from and to xtensor.
#pragma once

#include <tessera/runtime/tensor.hpp>

#include <xtensor/xarray.hpp>
#include <xtensor/xfixed.hpp>
#include <xtensor/xtensor.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
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

/// The bits of 16-bit elements, which files without such types can hold: .npy has no bfloat16, and xtensor no float16,
/// so
/// `xt::dump_npy("w.npy", to_bits(w))` writes unsigned integers of 16 bits ("<u2"). In NumPy they are read by
/// `np.load("w.npy").view(ml_dtypes.bfloat16)`, or `.view(np.float16)`, and written by `np.save("w.npy",
/// w.view(np.uint16))`.
template <dtype D, class Shape, class Spec, class Mesh>
requires(is_sixteen_bit(D)) xt::xarray<std::uint16_t> to_bits(const tensor<D, Shape, Spec, Mesh>& x) {
  const xt::xarray<storage_t<D>> host = to_xarray(x);
  xt::xarray<std::uint16_t> bits(host.shape());
  std::transform(host.begin(), host.end(), bits.begin(), [](storage_t<D> element) { return element.bits(); });
  return bits;
}

/// The numbers that have these bits: `device_put<shape<4, 8>, P<>,
/// mesh<>>(from_bits<bf16>(xt::load_npy<std::uint16_t>(file)))`.
template <dtype D>
requires(is_sixteen_bit(D)) xt::xarray<storage_t<D>> from_bits(const xt::xarray<std::uint16_t>& bits) {
  xt::xarray<storage_t<D>> numbers(bits.shape());
  std::transform(bits.begin(), bits.end(), numbers.begin(), [](std::uint16_t b) { return storage_t<D>::from_bits(b); });
  return numbers;
}

}  // namespace tessera
