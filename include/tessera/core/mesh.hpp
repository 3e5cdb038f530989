// SPDX-License-Identifier: Apache-2.0
// Device meshes: named axes with sizes, as types that users write and as values that rules compute with.
#pragma once

#include <tessera/core/diagnose.hpp>
#include <tessera/core/text.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace tessera {

/// Axes a mesh may have at most.
inline constexpr int max_mesh_axes = 8;

/// Characters an axis name may have at most.
inline constexpr std::size_t max_axis_name = 31;

/// A mesh as a value. An axis of size 0 belongs to an open mesh: its size is not known yet.
struct mesh_value {
  int rank = 0;
  std::array<std::string_view, max_mesh_axes> names{};
  std::array<std::int64_t, max_mesh_axes> sizes{};

  constexpr std::int64_t size(int axis) const { return sizes[static_cast<std::size_t>(axis)]; }
  constexpr std::string_view name(int axis) const { return names[static_cast<std::size_t>(axis)]; }

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
    constexpr mesh_value built{static_cast<int>(sizeof...(Axes)), {Axes::name...}, {Axes::size...}};
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

/// The axes that a parameter's spec names while its mesh is not known; joins any mesh that has them.
template <text... Names>
struct open_mesh {
  static constexpr bool open = true;
  static constexpr mesh_value value{static_cast<int>(sizeof...(Names)), {Names.view()...}, {}};
};

}  // namespace tessera
