// SPDX-License-Identifier: Apache-2.0
// From what a user wrote (dtype, shape, spec, mesh) to an abstract value, or the reason why there is none.
#pragma once

#include <tessera/core/aval.hpp>
#include <tessera/core/partition_spec.hpp>

namespace tessera {

/// What a sharding rule says: the result, or a message and the place it is about; then `result` is what it would have
/// been, where that helps to understand.
struct ruling {
  aval result{};
  message failure = message::none;
  int dimension = -1;
  std::string_view axis{};

  constexpr bool ok() const { return failure == message::none; }
};

constexpr ruling refuse(message why, int dimension = -1, std::string_view axis = {}) {
  return {{}, why, dimension, axis};
}

/// Where a spec names an axis the mesh does not have.
struct unknown_axis {
  int dimension = -1;
  std::string_view name{};
};

/// A spec as a value over one mesh.
struct spec_value {
  int rank = 0;
  axis_list dims[max_rank]{};
  unknown_axis unknown{};
};

template <class Cut>
struct cut_reader;
template <text... Names>
struct cut_reader<cut<Names...>> {
  static constexpr void read(spec_value& spec, const mesh_value& mesh) {
    if (spec.rank < max_rank) {
      axis_list list = 0;
      [[maybe_unused]] const auto add = [&](std::string_view name) {
        const int found = mesh.find(name);
        if (found < 0) spec.unknown = {spec.rank, name};
        else list = axis_append(list, found);
      };
      (add(Names.view()), ...);
      spec.dims[spec.rank] = list;
    }
    ++spec.rank;
  }
};

/// The value of a PartitionSpec type over `mesh`.
template <class Spec>
struct spec_reader;
template <class... Cuts>
struct spec_reader<partition_spec<Cuts...>> {
  static constexpr spec_value read(const mesh_value& mesh) {
    spec_value spec;
    (cut_reader<Cuts>::read(spec, mesh), ...);
    return spec;
  }
};
template <class Spec>
constexpr spec_value read_spec(const mesh_value& mesh) {
  return spec_reader<Spec>::read(mesh);
}

/// Whether the cuts of `a` are legal over `mesh`: no axis twice, every extent divisible (unknown sizes pass).
constexpr ruling check_cuts(const aval& a, const mesh_value& mesh) {
  axis_set seen = 0;
  for (int i = 0; i < a.rank; ++i) {
    for (int j = 0; j < axis_count(a.dims[i].axes); ++j) {
      const int axis = axis_at(a.dims[i].axes, j);
      if (seen & bit_of(axis)) return refuse(message::spec_axis_twice, i, mesh.name(axis));
      seen = static_cast<axis_set>(seen | bit_of(axis));
    }
    const std::int64_t devices = devices_along(a.dims[i].axes, mesh);
    if (devices > 0 && a.dims[i].extent % devices != 0)
      return refuse(message::spec_indivisible, i, mesh.name(axis_at(a.dims[i].axes, 0)));
  }
  return {a};
}

/// `a` cut as `spec` says, instead of as it was.
constexpr ruling with_spec(aval a, const spec_value& spec, const mesh_value& mesh) {
  const aval natural = a;
  if (spec.unknown.dimension >= 0) return {a, message::spec_unknown_axis, spec.unknown.dimension, spec.unknown.name};
  if (spec.rank > a.rank) return {a, message::spec_too_long, a.rank};
  for (int i = 0; i < a.rank; ++i) a.dims[i].axes = i < spec.rank ? spec.dims[i] : 0;
  for (int i = 0; i < a.rank; ++i)
    for (int j = 0; j < axis_count(a.dims[i].axes); ++j)
      if (const int axis = axis_at(a.dims[i].axes, j); mesh.kind(axis) != axis_kind::explicit_)
        return {natural, message::spec_axis_kind, i, mesh.name(axis)};
  ruling ruled = check_cuts(a, mesh);
  if (!ruled.ok()) ruled.result = natural;
  return ruled;
}

template <class Mesh, int Axis>
constexpr auto axis_name() {
  constexpr std::string_view name = Mesh::value.name(Axis);
  text<name.size() + 1> result;
  for (std::size_t i = 0; i < name.size(); ++i) result.chars[i] = name[i];
  result.chars[name.size()] = '\0';
  return result;
}

template <axis_list List, class Mesh>
constexpr auto cut_type() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return cut<axis_name<Mesh, axis_at(List, static_cast<int>(I))>()...>{};
  }
  (std::make_index_sequence<static_cast<std::size_t>(axis_count(List))>{});
}

template <aval Type, class Mesh>
constexpr auto spec_type_of() {
  return []<std::size_t... D>(std::index_sequence<D...>) {
    return typename strip_uncut<partition_spec<>, decltype(cut_type<Type.dims[D].axes, Mesh>())...>::type{};
  }
  (std::make_index_sequence<static_cast<std::size_t>(Type.rank)>{});
}

/// The PartitionSpec type of an abstract value.
template <aval Type, class Mesh>
using spec_type = decltype(spec_type_of<Type, Mesh>());

template <dtype D, class Shape>
constexpr aval plain_aval() {
  aval a;
  a.type = D;
  a.rank = Shape::rank < max_rank ? Shape::rank : max_rank;
  for (int i = 0; i < a.rank; ++i) a.dims[i].extent = Shape::extents[static_cast<std::size_t>(i)];
  return a;
}

/// The ruling on a tensor type as the user wrote it.
template <dtype D, class Shape, class Spec, class Mesh>
constexpr ruling resolve() {
  constexpr aval a = plain_aval<D, Shape>();
  if constexpr (Shape::rank > max_rank) return {a, message::shape_rank};
  for (int i = 0; i < a.rank; ++i)
    if (a.dims[i].extent < 0) return {a, message::shape_extent, i};
  ruling ruled = with_spec(a, read_spec<Spec>(Mesh::value), Mesh::value);
  ruled.result = ruled.ok() ? ruled.result : a;
  return ruled;
}

/// The extents nearest to `extent` that `devices` divide: below (0 if none) and above.
constexpr std::int64_t nearest_divisible(std::int64_t extent, std::int64_t devices) {
  const std::int64_t below = extent / devices * devices;
  return below > 0 && extent - below <= below + devices - extent ? below : below + devices;
}

/// Writes the place a ruling is about: dimension, extent, axis, devices, nearest extent.
constexpr void write_place(text_buffer& out, const ruling& ruled, const aval& subject, const spec_value& spec,
                           const mesh_value& mesh) {
  if (ruled.dimension < 0) return;
  out << ", dimension " << ruled.dimension;
  if (ruled.dimension < subject.rank) out << " of extent " << subject.dims[ruled.dimension].extent;
  if (!ruled.axis.empty()) {
    out << ", axis " << ruled.axis;
    if (mesh.find(ruled.axis) >= 0) out << " of size " << mesh.size(mesh.find(ruled.axis));
  }
  if (ruled.failure == message::spec_indivisible && ruled.dimension < subject.rank) {
    const std::int64_t devices = devices_along(spec.dims[ruled.dimension], mesh);
    out << ", " << devices << " devices, nearest extent "
        << nearest_divisible(subject.dims[ruled.dimension].extent, devices);
  }
  if (ruled.failure == message::spec_unknown_axis) {
    out << ", the mesh has";
    for (int i = 0; i < mesh.rank; ++i) out << " " << mesh.name(i);
    if (mesh.rank == 0) out << " none";
  }
}

/// Writes `float32[30,64], dimension 0 of extent 30, axis data of size 8, 8 devices, nearest extent 32`.
template <dtype D, class Shape, class Spec, class Mesh>
constexpr void write_spec_details(text_buffer& out) {
  write_aval(out, plain_aval<D, Shape>(), Mesh::value);
  if (Shape::rank > max_rank) out << " and more, " << Shape::rank << " dimensions";
  write_place(out, resolve<D, Shape, Spec, Mesh>(), plain_aval<D, Shape>(), read_spec<Spec>(Mesh::value), Mesh::value);
}

/// Checks a tensor type as written: the build stops with what is wrong.
template <dtype D, class Shape, class Spec, class Mesh>
constexpr bool check_spec() {
  constexpr ruling ruled = resolve<D, Shape, Spec, Mesh>();
  if constexpr (!ruled.ok())
    diagnose(report<ruled.failure, [] {
      text_buffer out;
      write_spec_details<D, Shape, Spec, Mesh>(out);
      return out;
    }>);
  return true;
}

}  // namespace tessera
