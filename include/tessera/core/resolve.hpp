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

/// Where a spec names an axis the mesh does not have; a mark has no dimension.
struct unknown_axis {
  int dimension = -1;
  std::string_view name{};
};

/// A spec as a value over one mesh.
struct spec_value {
  int rank = 0;
  axis_list dims[max_rank]{};
  unknown_axis unknown{};
  axis_set unreduced = 0;
  axis_set reduced = 0;
  combine pending = combine::sum;
  message mark_fault = message::none;  ///< what is wrong with the marks alone
  int mark_axis = -1;
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

constexpr spec_value without_marks(spec_value spec) {
  spec.unreduced = 0;
  spec.reduced = 0;
  spec.pending = combine::sum;
  return spec;
}

/// Adds an axis to the unreduced or reduced ones.
constexpr void add_mark(spec_value& spec, axis_use use, int axis) {
  axis_set& set = use == axis_use::reduced ? spec.reduced : spec.unreduced;
  const combine kind = use == axis_use::unreduced_max   ? combine::max
                       : use == axis_use::unreduced_min ? combine::min
                                                        : combine::sum;
  message fault = message::none;
  if (set & bit_of(axis)) fault = message::spec_axis_twice;
  else if (use != axis_use::reduced && set != 0 && kind != spec.pending) fault = message::spec_unreduced_kinds;
  set = static_cast<axis_set>(set | bit_of(axis));
  if (use != axis_use::reduced) spec.pending = kind;
  if (fault != message::none && spec.mark_fault == message::none) spec.mark_fault = fault, spec.mark_axis = axis;
}

template <axis_use Use, text... Names>
struct cut_reader<marked<Use, Names...>> {
  static constexpr void read(spec_value& spec, const mesh_value& mesh) {
    const auto add = [&](std::string_view name) {
      if (const int found = mesh.find(name); found >= 0) add_mark(spec, Use, found);
      else if (spec.unknown.name.empty()) spec.unknown = {-1, name};
    };
    (add(Names.view()), ...);
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

/// Whether no axis has two uses, and a pending sum is one of numbers.
constexpr ruling check_marks(const aval& a, const mesh_value& mesh) {
  const auto both = static_cast<axis_set>((a.cut() & (a.unreduced | a.reduced)) | (a.unreduced & a.reduced));
  for (int axis = 0; axis < mesh.rank; ++axis)
    if (both & bit_of(axis)) return refuse(message::spec_axis_uses, -1, mesh.name(axis));
  if (a.unreduced != 0 && a.type == dtype::bool_) return refuse(message::spec_unreduced_bool);
  return {a};
}

/// Refuses an operand that is unreduced or reduced: one of integers that say where or how far.
constexpr message check_unmarked(const aval& a) {
  if (a.unreduced != 0) return message::unreduced_operand;
  return a.reduced != 0 ? message::reduced_operand : message::none;
}

/// Whether `beside` may stand beside `a` in an operation that is linear in both together: both are pending sums over
/// the same axes or neither is, both are reduced over the same axes, and a scalar that is neither goes with a reduced
/// array.
constexpr bool marked_alike(const aval& a, const aval& beside) {
  const bool free = beside.rank == 0 && !beside.marked() && a.unreduced == 0;
  return a.pending == combine::sum && beside.pending == combine::sum && (free || with_marks(a, beside) == a);
}

/// Whether the cuts of `a` are legal over `mesh`: no axis twice, every extent divisible (unknown sizes pass), none that
/// is unreduced or reduced too.
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
  return check_marks(a, mesh);
}

/// `a` cut, unreduced and reduced as `spec` says, instead of as it was.
constexpr ruling with_spec(aval a, const spec_value& spec, const mesh_value& mesh) {
  const aval natural = a;
  if (!spec.unknown.name.empty()) return {a, message::spec_unknown_axis, spec.unknown.dimension, spec.unknown.name};
  if (spec.rank > a.rank) return {a, message::spec_too_long, a.rank};
  if (spec.mark_fault != message::none) return {a, spec.mark_fault, -1, mesh.name(spec.mark_axis)};
  a.unreduced = spec.unreduced;
  a.reduced = spec.reduced;
  a.pending = spec.pending;
  for (int i = 0; i < a.rank; ++i) a.dims[i].axes = i < spec.rank ? spec.dims[i] : 0;
  for (int i = 0; i < a.rank; ++i)
    for (int j = 0; j < axis_count(a.dims[i].axes); ++j)
      if (const int axis = axis_at(a.dims[i].axes, j); mesh.kind(axis) != axis_kind::explicit_)
        return {natural, message::spec_axis_kind, i, mesh.name(axis)};
  for (int axis = 0; axis < mesh.rank; ++axis)
    if (((spec.unreduced | spec.reduced) & bit_of(axis)) && mesh.kind(axis) != axis_kind::explicit_)
      return {natural, message::spec_axis_kind, -1, mesh.name(axis)};
  ruling ruled = check_cuts(a, mesh);
  if (!ruled.ok()) ruled.result = natural;
  return ruled;
}

/// The same for a spec that has to leave unreduced and reduced axes as they are.
constexpr ruling with_cuts(const aval& a, const spec_value& spec, const mesh_value& mesh) {
  const ruling chosen = with_spec(a, spec, mesh);
  return chosen.ok() && !(with_marks(chosen.result, a) == chosen.result) ? refuse(message::marks_changed) : chosen;
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

/// The names of a set of axes as an entry of a spec.
template <axis_set Set, class Mesh>
constexpr spec_entry entry_of_set() {
  spec_entry entry;
  for (int axis = 0; axis < Mesh::value.rank; ++axis)
    if (Set & bit_of(axis)) entry.insert(Mesh::value.name(axis));
  return entry;
}

constexpr axis_use use_of(combine pending) {
  return pending == combine::sum   ? axis_use::unreduced
         : pending == combine::max ? axis_use::unreduced_max
                                   : axis_use::unreduced_min;
}

template <aval Type, class Mesh>
constexpr auto spec_type_of() {
  return []<std::size_t... D>(std::index_sequence<D...>) {
    using cuts = typename strip_uncut<partition_spec<>, decltype(cut_type<Type.dims[D].axes, Mesh>())...>::type;
    if constexpr (!Type.marked()) return cuts{};
    else
      return
          typename with_marked<cuts,
                               decltype(entry_marks<use_of(Type.pending), entry_of_set<Type.unreduced, Mesh>()>()),
                               decltype(entry_marks<axis_use::reduced, entry_of_set<Type.reduced, Mesh>()>())>::type{};
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

/// A spec as an array's type keeps it: axes that are left to the compiler are in no type.
constexpr spec_value without_auto(spec_value spec, const mesh_value& mesh) {
  for (int d = 0; d < spec.rank && d < max_rank; ++d) {
    axis_list kept = 0;
    for (int i = 0; i < axis_count(spec.dims[d]); ++i)
      if (const int axis = axis_at(spec.dims[d], i); mesh.kind(axis) != axis_kind::auto_)
        kept = axis_append(kept, axis);
    spec.dims[d] = kept;
  }
  const axis_set automatic = mesh.axes_of(axis_kind::auto_);
  spec.unreduced = static_cast<axis_set>(spec.unreduced & ~automatic);
  spec.reduced = static_cast<axis_set>(spec.reduced & ~automatic);
  return spec;
}

/// The ruling on a tensor type as the user wrote it.
template <dtype D, class Shape, class Spec, class Mesh>
constexpr ruling resolve() {
  constexpr aval a = plain_aval<D, Shape>();
  if constexpr (Shape::rank > max_rank) return {a, message::shape_rank};
  for (int i = 0; i < a.rank; ++i)
    if (a.dims[i].extent < 0) return {a, message::shape_extent, i};
  ruling ruled = with_spec(a, without_auto(read_spec<Spec>(Mesh::value), Mesh::value), Mesh::value);
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
  if (ruled.dimension >= 0) out << ", dimension " << ruled.dimension;
  if (ruled.dimension >= 0 && ruled.dimension < subject.rank)
    out << " of extent " << subject.dims[ruled.dimension].extent;
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
