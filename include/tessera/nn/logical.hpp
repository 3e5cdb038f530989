// SPDX-License-Identifier: Apache-2.0
// Logical names for the dimensions of parameters, and rules that map them to axes of a mesh.
#pragma once

#include <tessera/core/diagnose.hpp>
#include <tessera/core/partition_spec.hpp>

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace tessera::nn {

/// `rule<"mlp", "model">`: dimensions of that name are cut along these axes; `none` cuts nothing.
template <text Name, spec_entry Axes>
struct rule {
  static constexpr std::string_view name = Name.view();
  static constexpr spec_entry axes = Axes;
};

namespace detail {

/// Whether two entries have an axis in common.
constexpr bool share_axis(const spec_entry& a, const spec_entry& b) {
  for (int i = 0; i < a.count; ++i)
    for (int j = 0; j < b.count; ++j)
      if (a.names[i].view() == b.names[j].view()) return true;
  return false;
}

/// The entries of a spec for names, one after another: the first rule of a name whose axes no dimension before has.
template <class... Rules>
struct entry_finder {
  static constexpr bool knows(std::string_view name) { return (false || ... || (Rules::name == name)); }

  template <std::size_t N>
  static constexpr std::array<spec_entry, N> find(const std::array<std::string_view, N>& names) {
    std::array<spec_entry, N> entries{};
    for (std::size_t d = 0; d < N; ++d) {
      bool found = false;
      entries[d] = spec_entry(none);
      const auto consider = [&](std::string_view name, const spec_entry& axes) {
        if (found || name != names[d]) return;
        for (std::size_t before = 0; before < d; ++before)
          if (share_axis(entries[before], axes)) return;
        entries[d] = axes;
        found = true;
      };
      (consider(Rules::name, Rules::axes), ...);
    }
    return entries;
  }
};

template <class Finder, text... Names>
struct logical_spec {
  static constexpr std::array<std::string_view, sizeof...(Names)> names{Names.view()...};
  static constexpr std::array<spec_entry, sizeof...(Names)> entries = Finder::find(names);
  static constexpr bool known = (true && ... && Finder::knows(Names.view()));

  static constexpr text_buffer unknown() {
    text_buffer out;
    for (const std::string_view name : names)
      if (!Finder::knows(name) && out.size == 0) out << name;
    return out;
  }
  static constexpr bool check() {
    if constexpr (!known) diagnose(report<message::logical_axis, &unknown>);
    return true;
  }
  static_assert(check());

  template <std::size_t... I>
  static typename spec_of_entries<entries[I]...>::type make(std::index_sequence<I...>);
  using type = decltype(make(std::make_index_sequence<sizeof...(Names)>{}));
};

}  // namespace detail

/// A table that says where dimensions with a name lie: `using layout = rules<rule<"embed", none>, rule<"mlp",
/// "model">>;`,
/// `linear<64, 256, kernel<layout::spec<"embed", "mlp">>>` is cut as `P<none, "model">`. Several rules of one name: the
/// first one whose axes no dimension before has. Changing the table lays a whole model out anew. A name without a rule
/// does not compile. Source: flax.nnx.with_partitioning, flax.linen.logical_axis_rules.
template <class... Rules>
struct rules {
  template <text... Names>
  using spec = typename detail::logical_spec<detail::entry_finder<Rules...>, Names...>::type;
};

}  // namespace tessera::nn
