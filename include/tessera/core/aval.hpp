// SPDX-License-Identifier: Apache-2.0
// The abstract value of an array: element type, extents and the mesh axes that cut each dimension.
#pragma once

#include <tessera/core/dtype.hpp>
#include <tessera/core/mesh.hpp>
#include <tessera/core/shape.hpp>

#include <cstdint>

namespace tessera {

/// An ordered list of mesh axes, major first: four bits an axis (its place in the mesh + 1), the major one lowest.
using axis_list = std::uint32_t;

/// A set of mesh axes: one bit an axis.
using axis_set = std::uint16_t;

constexpr int axis_count(axis_list list) {
  int n = 0;
  for (; list != 0; list >>= 4) ++n;
  return n;
}
constexpr int axis_at(axis_list list, int i) { return static_cast<int>((list >> (4 * i)) & 15U) - 1; }
constexpr axis_list axis_append(axis_list list, int axis) {
  return list | (static_cast<axis_list>(axis + 1) << (4 * axis_count(list)));
}
constexpr axis_set bit_of(int axis) { return static_cast<axis_set>(1U << axis); }
constexpr axis_set set_of(axis_list list) {
  axis_set set = 0;
  for (; list != 0; list >>= 4) set = static_cast<axis_set>(set | bit_of(static_cast<int>(list & 15U) - 1));
  return set;
}

/// `list` with the axes of `tail` after its own.
constexpr axis_list axis_concat(axis_list list, axis_list tail) { return list | (tail << (4 * axis_count(list))); }

/// Whether `whole` starts with the axes of `head`.
constexpr bool starts_with(axis_list whole, axis_list head) {
  const int n = axis_count(head);
  return n == 0 || (n <= 8 && (whole & (n == 8 ? ~0U : (1U << (4 * n)) - 1)) == head);
}

/// `whole` without its first axes, those of `head`.
constexpr axis_list without_head(axis_list whole, axis_list head) {
  const int n = axis_count(head);
  return n == 8 ? 0 : whole >> (4 * n);
}

/// Devices along all axes of a list, or of a set.
constexpr std::int64_t devices_along(axis_list list, const mesh_value& mesh) {
  std::int64_t n = 1;
  for (; list != 0; list >>= 4) n *= mesh.size(static_cast<int>(list & 15U) - 1);
  return n;
}
constexpr std::int64_t devices_in(axis_set set, const mesh_value& mesh) {
  std::int64_t n = 1;
  for (int i = 0; i < mesh.rank; ++i)
    if (set & bit_of(i)) n *= mesh.size(i);
  return n;
}

/// One dimension: its global extent and the axes that cut it.
struct dim {
  std::int64_t extent = 0;
  axis_list axes = 0;
  friend constexpr bool operator==(const dim&, const dim&) = default;
};

/// How parts combine into a whole.
enum class combine : std::uint8_t { sum, max, min, prod };

/// Element type, dimensions, and what is not a plain cut: mesh axes over which the value is the sum (or maximum,
/// minimum:
/// `pending`) of what the devices hold (unreduced), over which its cotangent is one (reduced), or over which the value
/// differs inside a manual region (varying).
struct aval {
  dtype type = dtype::f32;
  int rank = 0;
  dim dims[max_rank]{};
  axis_set unreduced = 0;
  axis_set reduced = 0;
  axis_set varying = 0;
  combine pending = combine::sum;  ///< of the unreduced axes; sum where there are none

  friend constexpr bool operator==(const aval&, const aval&) = default;

  constexpr std::int64_t size() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[i].extent;
    return n;
  }
  constexpr std::int64_t bytes() const { return size() * info(type).size; }

  /// Every axis that cuts some dimension.
  constexpr axis_set cut() const {
    axis_set set = 0;
    for (int i = 0; i < rank; ++i) set = static_cast<axis_set>(set | set_of(dims[i].axes));
    return set;
  }
  constexpr bool same_shape(const aval& other) const {
    if (rank != other.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (dims[i].extent != other.dims[i].extent) return false;
    return true;
  }
  constexpr bool same_spec(const aval& other) const {
    return same_cuts(other) && unreduced == other.unreduced && reduced == other.reduced && pending == other.pending;
  }
  constexpr bool same_cuts(const aval& other) const {
    if (rank != other.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (dims[i].axes != other.dims[i].axes) return false;
    return true;
  }

  /// Whether it is unreduced or reduced over some axis.
  constexpr bool marked() const { return unreduced != 0 || reduced != 0; }
  constexpr bool axis_on_two_dims() const {
    axis_set seen = 0;
    for (int i = 0; i < rank; ++i) {
      const axis_set here = set_of(dims[i].axes);
      if (seen & here) return true;
      seen = static_cast<axis_set>(seen | here);
    }
    return false;
  }
};

/// A scalar of type `d`.
constexpr aval scalar_aval(dtype d) {
  aval a;
  a.type = d;
  return a;
}

/// `a` with the unreduced and reduced axes of another value.
constexpr aval with_marks(aval a, const aval& of) {
  a.unreduced = of.unreduced;
  a.reduced = of.reduced;
  a.pending = of.pending;
  return a;
}

/// `a` neither unreduced nor reduced.
constexpr aval without_marks(const aval& a) { return with_marks(a, aval{}); }

/// The type of the gradient of a value of type `a`: unreduced where that is reduced and the other way round. What one
/// device adds to a reduced value's gradient stays there as a part of a sum.
constexpr aval cotangent_type(const aval& a) {
  aval dual = without_marks(a);
  dual.unreduced = a.reduced;
  dual.reduced = a.unreduced;
  return dual;
}

/// The block of `a` that one device holds.
constexpr aval local_block(aval a, const mesh_value& mesh) {
  for (int i = 0; i < a.rank; ++i) {
    a.dims[i].extent /= devices_along(a.dims[i].axes, mesh);
    a.dims[i].axes = 0;
  }
  return a;
}

/// `list` with each axis looked up by name in another mesh; what is missing there becomes -1 (see `rebindable`).
constexpr axis_list rebind(axis_list list, const mesh_value& from, const mesh_value& to) {
  axis_list result = 0;
  for (int i = 0; i < axis_count(list); ++i) result = axis_append(result, to.find(from.name(axis_at(list, i))));
  return result;
}
constexpr axis_set rebind_set(axis_set set, const mesh_value& from, const mesh_value& to) {
  axis_set result = 0;
  for (int i = 0; i < from.rank; ++i)
    if (set & bit_of(i)) result = static_cast<axis_set>(result | bit_of(to.find(from.name(i))));
  return result;
}

/// The same array seen over `to`, a mesh that has every axis `a` names.
constexpr aval rebind(aval a, const mesh_value& from, const mesh_value& to) {
  for (int i = 0; i < a.rank; ++i) a.dims[i].axes = rebind(a.dims[i].axes, from, to);
  a.unreduced = rebind_set(a.unreduced, from, to);
  a.reduced = rebind_set(a.reduced, from, to);
  a.varying = rebind_set(a.varying, from, to);
  return a;
}

/// Writes `float32[32@data,256@model]`, and what is unreduced or reduced as `float32[8@x,8]{U:y}`.
constexpr void write_aval(text_buffer& out, const aval& a, const mesh_value& mesh) {
  out << info(a.type).name << "[";
  for (int i = 0; i < a.rank; ++i) {
    if (i > 0) out << ",";
    out << a.dims[i].extent;
    const int count = axis_count(a.dims[i].axes);
    if (count > 0) out << "@";
    if (count > 1) out << "(";
    for (int j = 0; j < count; ++j) {
      if (j > 0) out << ",";
      out << mesh.name(axis_at(a.dims[i].axes, j));
    }
    if (count > 1) out << ")";
  }
  out << "]";
  const auto write_set = [&](const char* mark, axis_set set) {
    if (set == 0) return;
    out << "{" << mark << ":";
    bool first = true;
    for (int i = 0; i < mesh.rank; ++i) {
      if (!(set & bit_of(i))) continue;
      if (!first) out << ",";
      out << mesh.name(i);
      first = false;
    }
    out << "}";
  };
  write_set("V", a.varying);
  write_set(a.pending == combine::sum ? "U" : a.pending == combine::max ? "U_max" : "U_min", a.unreduced);
  write_set("R", a.reduced);
}

}  // namespace tessera
