// SPDX-License-Identifier: Apache-2.0
// PartitionSpec: for each dimension, the mesh axes that cut it up, as one normalised type.
#pragma once

#include <tessera/core/mesh.hpp>
#include <tessera/core/shape.hpp>
#include <tessera/core/text.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace tessera {

/// An uncut dimension.
struct none_t {};
inline constexpr none_t none{};

/// What a user may write for one dimension: an axis name, `axes<...>` or `none`.
struct spec_entry {
  static constexpr int max_names = max_mesh_axes;

  char names[max_names][max_axis_name + 1]{};
  std::size_t lengths[max_names]{};
  int count = 0;

  constexpr spec_entry() = default;
  constexpr spec_entry(none_t) {}
  template <std::size_t N>
  constexpr spec_entry(const char (&name)[N]) {
    add(name, N - 1);
  }
  constexpr void add(const char* name, std::size_t length) {
    for (std::size_t i = 0; i < length && i < max_axis_name; ++i) names[count][i] = name[i];
    lengths[count++] = length < max_axis_name ? length : max_axis_name;
  }
};

template <text... Names>
constexpr spec_entry entry_of_axes() {
  constexpr int count = sizeof...(Names);
  spec_entry entry;
  if constexpr (count <= spec_entry::max_names) (entry.add(Names.chars, Names.length), ...);
  else diagnose(report<message::mesh_axis_count, [] { return text_buffer{} << count << " axes on one dimension"; }>);
  return entry;
}

/// Several axes on one dimension, major first: `P<axes<"data", "model">>`.
template <text... Names>
inline constexpr spec_entry axes = entry_of_axes<Names...>();

/// The axes of one dimension; `cut<>` is an uncut one.
template <text... Names>
struct cut {
  static constexpr int count = sizeof...(Names);
};

/// The normalised spec: no trailing uncut dimensions, so equal specs are one type.
template <class... Cuts>
struct partition_spec {
  static constexpr int rank = sizeof...(Cuts);
};

template <spec_entry Entry, std::size_t I>
constexpr auto entry_name() {
  text<Entry.lengths[I] + 1> name;
  for (std::size_t c = 0; c < Entry.lengths[I]; ++c) name.chars[c] = Entry.names[I][c];
  name.chars[Entry.lengths[I]] = '\0';
  return name;
}

template <spec_entry Entry>
constexpr auto entry_cut() {
  return []<std::size_t... I>(std::index_sequence<I...>) { return cut<entry_name<Entry, I>()...>{}; }
  (std::make_index_sequence<static_cast<std::size_t>(Entry.count)>{});
}

template <class Kept, class... Rest>
struct strip_uncut;
template <class... Kept>
struct strip_uncut<partition_spec<Kept...>> : std::type_identity<partition_spec<Kept...>> {};
template <class... Kept, class First, class... Rest>
struct strip_uncut<partition_spec<Kept...>, First, Rest...>
    : std::conditional_t<(First::count + ... + Rest::count) == 0, std::type_identity<partition_spec<Kept...>>,
                         strip_uncut<partition_spec<Kept..., First>, Rest...>> {};

/// A struct, since g++ 12 crashes where an alias asks for the type of a call that depends on a variable template.
template <spec_entry... Entries>
struct spec_of_entries : strip_uncut<partition_spec<>, decltype(entry_cut<Entries>())...> {};

/// `P<"data", none>`: one entry a dimension, trailing `none`s implied.
template <spec_entry... Entries>
using P = typename spec_of_entries<Entries...>::type;

/// An argument of operations that lets the caller choose how the result is cut: `out_sharding<P<"data">>`.
template <class Spec>
struct out_sharding_t {
  using spec = Spec;
};
template <class Spec>
inline constexpr out_sharding_t<Spec> out_sharding{};

}  // namespace tessera
