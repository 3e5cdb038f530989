// SPDX-License-Identifier: Apache-2.0
// PartitionSpec: for each dimension, the mesh axes that cut it up, and axes that are unreduced or reduced, as one
// normalised type.
#pragma once

#include <tessera/core/mesh.hpp>
#include <tessera/core/shape.hpp>
#include <tessera/core/text.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tessera {

/// An uncut dimension.
struct none_t {};
inline constexpr none_t none{};

/// What an entry of a spec says of its axes: they cut a dimension, or the array is unreduced or reduced over them.
enum class axis_use : std::uint8_t { cut, unreduced, unreduced_max, unreduced_min, reduced };

/// An axis name as a template argument may hold it.
struct entry_axis {
  char chars[max_axis_name + 1]{};
  std::size_t length = 0;

  constexpr std::string_view view() const { return {chars, length}; }
};

/// What a user may write in a spec: for one dimension an axis name, `axes<...>` or `none`; `unreduced<...>`,
/// `reduced<...>` for the array.
struct spec_entry {
  static constexpr int max_names = max_mesh_axes;

  entry_axis names[max_names]{};
  int count = 0;
  axis_use use = axis_use::cut;

  constexpr spec_entry() = default;
  constexpr spec_entry(none_t) {}
  template <std::size_t N>
  constexpr spec_entry(const char (&name)[N]) {
    add({name, N - 1});
  }
  constexpr void add(std::string_view name) {
    entry_axis& next = names[count++];
    next.length = name.size() < max_axis_name ? name.size() : max_axis_name;
    for (std::size_t i = 0; i < next.length; ++i) next.chars[i] = name[i];
  }

  /// Adds a name where the alphabet wants it.
  constexpr void insert(std::string_view name) {
    add(name);
    for (int i = count - 1; i > 0 && names[i].view() < names[i - 1].view(); --i) std::swap(names[i], names[i - 1]);
  }
};

template <axis_use Use, text... Names>
constexpr spec_entry entry_of_axes() {
  constexpr int count = sizeof...(Names);
  spec_entry entry;
  entry.use = Use;
  if constexpr (count <= spec_entry::max_names) (entry.add(Names.view()), ...);
  else diagnose(report<message::mesh_axis_count, [] { return text_buffer{} << count << " axes in one place"; }>);
  return entry;
}

/// Several axes on one dimension, major first: `P<axes<"data", "model">>`.
template <text... Names>
inline constexpr spec_entry axes = entry_of_axes<axis_use::cut, Names...>();

/// `P<"x", unreduced<"y">>`: the array is the sum, over the devices along y, of what each of them holds. No dimension;
/// the order of names does not count.
template <text... Names>
inline constexpr spec_entry unreduced = entry_of_axes<axis_use::unreduced, Names...>();

/// The same with the largest or the smallest element in place of the sum.
template <text... Names>
inline constexpr spec_entry unreduced_max = entry_of_axes<axis_use::unreduced_max, Names...>();
template <text... Names>
inline constexpr spec_entry unreduced_min = entry_of_axes<axis_use::unreduced_min, Names...>();

/// `P<"x", reduced<"y">>`: the same bytes on every device along y, as of an uncut array, but the gradient stays
/// unreduced over y: nothing is summed before someone asks for it.
template <text... Names>
inline constexpr spec_entry reduced = entry_of_axes<axis_use::reduced, Names...>();

/// The axes of one dimension; `cut<>` is an uncut one.
template <text... Names>
struct cut {
  static constexpr int count = sizeof...(Names);
};

/// Axes of another use than cutting a dimension, in the order of the alphabet.
template <axis_use Use, text... Names>
struct marked {
  static constexpr int count = 0;
};

template <class Part>
inline constexpr bool is_cut = false;
template <text... Names>
inline constexpr bool is_cut<cut<Names...>> = true;

template <class Part, axis_use Use>
inline constexpr bool is_marked = false;
template <axis_use Use, text... Names>
inline constexpr bool is_marked<marked<Use, Names...>, Use> = true;

/// The normalised spec: cuts, without trailing uncut dimensions, then at most one `marked` a use, so equal specs are
/// one type.
template <class... Parts>
struct partition_spec {
  static constexpr int rank = (0 + ... + int{is_cut<Parts>});
};

/// Whether a spec has a mark of one use.
template <class Spec, axis_use Use>
inline constexpr bool has_mark = false;
template <class... Parts, axis_use Use>
inline constexpr bool has_mark<partition_spec<Parts...>, Use> = (is_marked<Parts, Use> || ...);

template <spec_entry Entry, std::size_t I>
constexpr auto entry_name() {
  text<Entry.names[I].length + 1> name;
  for (std::size_t c = 0; c < Entry.names[I].length; ++c) name.chars[c] = Entry.names[I].chars[c];
  name.chars[Entry.names[I].length] = '\0';
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

/// All names that are written for one use.
template <axis_use Use, spec_entry... Entries>
constexpr spec_entry entry_of_use() {
  constexpr int count = (0 + ... + (Entries.use == Use ? Entries.count : 0));
  spec_entry found;
  if constexpr (count <= spec_entry::max_names) {
    const auto take = [&](const spec_entry& entry) {
      for (int i = 0; i < entry.count; ++i) found.insert(entry.names[i].view());
    };
    ((Entries.use == Use ? take(Entries) : void()), ...);
  } else {
    diagnose(report<message::mesh_axis_count, [] { return text_buffer{} << count << " axes in one place"; }>);
  }
  return found;
}

template <axis_use Use, spec_entry Entry>
constexpr auto entry_marks() {
  return []<std::size_t... I>(std::index_sequence<I...>) { return marked<Use, entry_name<Entry, I>()...>{}; }
  (std::make_index_sequence<static_cast<std::size_t>(Entry.count)>{});
}

/// A spec with marks behind its cuts; a mark without axes is dropped.
template <class Spec, class... Marks>
struct with_marked;
template <class... Parts>
struct with_marked<partition_spec<Parts...>> : std::type_identity<partition_spec<Parts...>> {};
template <class... Parts, axis_use Use, class... Rest>
struct with_marked<partition_spec<Parts...>, marked<Use>, Rest...> : with_marked<partition_spec<Parts...>, Rest...> {};
template <class... Parts, axis_use Use, text First, text... Names, class... Rest>
struct with_marked<partition_spec<Parts...>, marked<Use, First, Names...>, Rest...>
    : with_marked<partition_spec<Parts..., marked<Use, First, Names...>>, Rest...> {};

/// The cuts among the entries, normalised.
template <class Cuts, spec_entry... Entries>
struct cuts_of_entries;
template <class... Cuts>
struct cuts_of_entries<partition_spec<Cuts...>> : strip_uncut<partition_spec<>, Cuts...> {};
template <class... Cuts, spec_entry First, spec_entry... Rest>
struct cuts_of_entries<partition_spec<Cuts...>, First, Rest...>
    : std::conditional_t<First.use == axis_use::cut,
                         cuts_of_entries<partition_spec<Cuts..., decltype(entry_cut<First>())>, Rest...>,
                         cuts_of_entries<partition_spec<Cuts...>, Rest...>> {};

/// A struct, since g++ 12 crashes where an alias asks for the type of a call that depends on a variable template.
template <spec_entry... Entries>
struct spec_of_entries : strip_uncut<partition_spec<>, decltype(entry_cut<Entries>())...> {};
template <spec_entry... Entries>
requires(false || ... || (Entries.use != axis_use::cut)) struct spec_of_entries<Entries...>
    : with_marked<typename cuts_of_entries<partition_spec<>, Entries...>::type,
                  decltype(entry_marks<axis_use::unreduced, entry_of_use<axis_use::unreduced, Entries...>()>()),
                  decltype(entry_marks<axis_use::unreduced_max, entry_of_use<axis_use::unreduced_max, Entries...>()>()),
                  decltype(entry_marks<axis_use::unreduced_min, entry_of_use<axis_use::unreduced_min, Entries...>()>()),
                  decltype(entry_marks<axis_use::reduced, entry_of_use<axis_use::reduced, Entries...>()>())> {
};

/// `P<"data", none>`: one entry a dimension, trailing `none`s implied; `unreduced<...>` and `reduced<...>` beside them.
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
