// SPDX-License-Identifier: Apache-2.0
// Device meshes: named axes with sizes, as types that users write and as values that rules compute with.
#pragma once

#include <tessera/core/diagnose.hpp>
#include <tessera/core/text.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tessera {

/// Axes a mesh may have at most.
inline constexpr int max_mesh_axes = 8;

/// Characters an axis name may have at most.
inline constexpr std::size_t max_axis_name = 31;

/// Who says how arrays lie along an axis: their types, the compiler (the axis then is in no type), or the program
/// itself, which sees the blocks of its device (inside shard_map).
enum class axis_kind : std::uint8_t { explicit_, auto_, manual };

/// A mesh as a value. An axis of size 0 belongs to an open mesh: its size is not known yet.
struct mesh_value {
  int rank = 0;
  std::array<std::string_view, max_mesh_axes> names{};
  std::array<std::int64_t, max_mesh_axes> sizes{};
  std::array<axis_kind, max_mesh_axes> kinds{};

  constexpr std::int64_t size(int axis) const { return sizes[static_cast<std::size_t>(axis)]; }
  constexpr std::string_view name(int axis) const { return names[static_cast<std::size_t>(axis)]; }
  constexpr axis_kind kind(int axis) const { return kinds[static_cast<std::size_t>(axis)]; }

  /// The axes of a kind: one bit each.
  constexpr std::uint16_t axes_of(axis_kind wanted) const {
    unsigned set = 0;
    for (int i = 0; i < rank; ++i)
      if (kind(i) == wanted) set |= 1U << i;
    return static_cast<std::uint16_t>(set);
  }

  /// The place of the axis called `wanted`, or -1.
  constexpr int find(std::string_view wanted) const {
    for (int i = 0; i < rank; ++i)
      if (name(i) == wanted) return i;
    return -1;
  }
  constexpr std::int64_t devices() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= size(i);
    return n;
  }
  constexpr bool distinct() const {
    for (int i = 0; i < rank; ++i)
      if (find(name(i)) != i) return false;
    return true;
  }
};

/// Writes `data=2,model=4`.
constexpr void write_mesh(text_buffer& out, const mesh_value& mesh) {
  for (int i = 0; i < mesh.rank; ++i) out << (i > 0 ? "," : "") << mesh.name(i) << "=" << mesh.size(i);
  if (mesh.rank == 0) out << "of one device";
}

/// One named axis of a mesh, with the number of devices along it.
template <text Name, std::int64_t Size>
struct axis {
  static constexpr std::string_view name = Name.view();
  static constexpr std::int64_t size = Size;
  static constexpr axis_kind kind = axis_kind::explicit_;
};

/// An axis that is left to the compiler: it is in no type, and how arrays lie along it is found by propagation.
template <text Name, std::int64_t Size>
struct auto_axis : axis<Name, Size> {
  static constexpr axis_kind kind = axis_kind::auto_;
};

template <class Axis>
constexpr bool check_axis() {
  constexpr auto details = [] { return text_buffer{} << "axis " << Axis::name << " of size " << Axis::size; };
  if constexpr (Axis::size < 1) diagnose(report<message::mesh_axis_size, details>);
  if constexpr (Axis::name.empty() || Axis::name.size() > max_axis_name)
    diagnose(report<message::mesh_axis_name, details>);
  return true;
}

template <class... Axes>
constexpr mesh_value make_mesh_value() {
  constexpr auto details = [] {
    text_buffer names;
    ((names << (names.size > 0 ? " " : "") << Axes::name), ...);
    return names;
  };
  if constexpr (sizeof...(Axes) > max_mesh_axes) {
    diagnose(report<message::mesh_axis_count, details>);
    return mesh_value{};
  } else {
    constexpr mesh_value built{static_cast<int>(sizeof...(Axes)), {Axes::name...}, {Axes::size...}, {Axes::kind...}};
    if constexpr (!built.distinct()) diagnose(report<message::mesh_axis_twice, details>);
    return built;
  }
}

/// The devices a program runs on, row-major over its axes; `mesh<>` is one device.
template <class... Axes>
struct mesh {
  static constexpr bool open = false;
  static constexpr bool checked = (true && ... && check_axis<Axes>());
  static constexpr mesh_value value = make_mesh_value<Axes...>();
  static constexpr std::int64_t devices = checked ? value.devices() : 0;
};

/// Mesh as the body of a shard_map, of auto_axes or of explicit_axes sees it: the axes of a set (one bit each) are of
/// another kind there.
template <class Mesh, axis_kind Kind, std::uint16_t Axes>
struct region {
  using surrounding = Mesh;

  static constexpr bool open = false;
  static constexpr mesh_value value = [] {
    mesh_value inside = Mesh::value;
    for (int i = 0; i < inside.rank; ++i)
      if (Axes & (1U << i)) inside.kinds[static_cast<std::size_t>(i)] = Kind;
    return inside;
  }();
  static constexpr std::int64_t devices = value.devices();
};

/// The mesh around all regions.
template <class Mesh>
struct mesh_around : std::type_identity<Mesh> {};
template <class Mesh, axis_kind Kind, std::uint16_t Axes>
struct mesh_around<region<Mesh, Kind, Axes>> : mesh_around<Mesh> {};

/// Whether Inner is Outer, or a region within it.
template <class Inner, class Outer>
constexpr bool lies_within() {
  if constexpr (std::is_same_v<Inner, Outer>) return true;
  else if constexpr (requires { typename Inner::surrounding; })
    return lies_within<typename Inner::surrounding, Outer>();
  else return false;
}

/// The axes that a parameter's spec names while its mesh is not known; joins any mesh that has them.
template <text... Names>
struct open_mesh {
  static constexpr bool open = true;
  static constexpr mesh_value value{static_cast<int>(sizeof...(Names)), {Names.view()...}, {}};
};

}  // namespace tessera
