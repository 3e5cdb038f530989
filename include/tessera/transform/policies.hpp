// SPDX-License-Identifier: Apache-2.0
// Policies of checkpoints: which values are kept, where, and what a name means that nobody carries.
#pragma once

#include <tessera/core/text.hpp>
#include <tessera/graph/graph.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>

namespace tessera {

using graph::keep;
using graph::residual;

/// Policies: each takes a `residual` (operation, type, name) and says whether it may be kept, as a bool or as a `keep`.
/// What is kept is what may be kept, is used by the gradient, and is not elementwise in other kept values: a policy
/// permits, it does not oblige. A policy of one's own is any captureless function of this kind. Source:
/// jax.checkpoint_policies.
inline constexpr auto everything_saveable = [](const residual&) { return true; };
inline constexpr auto nothing_saveable = [](const residual&) { return false; };
inline constexpr auto dots_saveable = [](const residual& value) { return value.code == graph::op::dot; };
inline constexpr auto dots_with_no_batch_dims_saveable = [](const residual& value) {
  return value.code == graph::op::dot && !value.batched;
};
inline constexpr auto checkpoint_dots = dots_saveable;
inline constexpr auto checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable;
/// Products without batch dimensions wait in host memory.
inline constexpr auto offload_dot_with_no_batch_dims = [](const residual& value) {
  return dots_with_no_batch_dims_saveable(value) ? keep::offload : keep::recompute;
};

/// Names of values: of one, whether it carries one of them.
template <text... Names>
struct names {
  static constexpr std::array<std::string_view, sizeof...(Names)> list{Names.view()...};
  static constexpr bool of(const residual& value) { return (false || ... || (value.name == Names.view())); }
};

namespace ops {

/// What is to happen where no value of a checkpointed function carries a name that its policy lists.
enum class missing_name { is_fine, is_warning, is_error };

#if defined(TESSERA_STRICT_NAMES)
inline constexpr missing_name usual_missing_name = missing_name::is_error;
#else
inline constexpr missing_name usual_missing_name = missing_name::is_warning;
#endif

/// A policy as nodes hold it.
template <auto Policy>
constexpr keep keeps(const residual& value) {
  if constexpr (std::same_as<decltype(Policy(value)), bool>) return Policy(value) ? keep::save : keep::recompute;
  else return Policy(value);
}

/// A policy that lists the names it goes by.
template <auto Policy>
concept GoesByNames = requires {
  Policy.when_missing;
};

/// The names that a policy lists, and what is to happen where one is missing.
template <auto Policy>
struct names_of {
  static constexpr std::array<std::string_view, 0> list{};
  static constexpr missing_name when_missing = missing_name::is_fine;
};
template <auto Policy>
requires GoesByNames<Policy>
struct names_of<Policy> {
  static constexpr auto list = Policy.list();
  static constexpr missing_name when_missing = Policy.when_missing;
};

template <std::size_t First, std::size_t Second>
constexpr auto joined(const std::array<std::string_view, First>& first,
                      const std::array<std::string_view, Second>& second) {
  std::array<std::string_view, First + Second> all{};
  for (std::size_t i = 0; i < First; ++i) all[i] = first[i];
  for (std::size_t i = 0; i < Second; ++i) all[First + i] = second[i];
  return all;
}

struct lists_names {
  static constexpr missing_name when_missing = usual_missing_name;
};

template <text... Names>
struct only_these_names : lists_names {
  static constexpr auto list() { return names<Names...>::list; }
  constexpr bool operator()(const residual& value) const { return names<Names...>::of(value); }
};
template <text... Names>
struct names_but_these : lists_names {
  static constexpr auto list() { return names<Names...>::list; }
  constexpr bool operator()(const residual& value) const { return !value.name.empty() && !names<Names...>::of(value); }
};
template <text... Names>
struct anything_except_these_names : lists_names {
  static constexpr auto list() { return names<Names...>::list; }
  constexpr bool operator()(const residual& value) const { return !names<Names...>::of(value); }
};
template <class Saved, class Offloaded>
struct saved_and_offloaded_names : lists_names {
  static constexpr auto list() { return joined(Saved::list, Offloaded::list); }
  constexpr keep operator()(const residual& value) const {
    return Saved::of(value) ? keep::save : Offloaded::of(value) ? keep::offload : keep::recompute;
  }
};

template <auto First, auto Second>
struct first_answer {
  constexpr keep operator()(const residual& value) const {
    const keep answer = keeps<First>(value);
    return answer != keep::recompute ? answer : keeps<Second>(value);
  }
};
template <auto First, auto Second>
struct either_policy : first_answer<First, Second> {};
template <auto First, auto Second>
requires(GoesByNames<First> || GoesByNames<Second>) struct either_policy<First, Second> : first_answer<First, Second> {
  static constexpr missing_name when_missing = std::max(names_of<First>::when_missing, names_of<Second>::when_missing);
  static constexpr auto list() { return joined(names_of<First>::list, names_of<Second>::list); }
};

template <auto Policy, missing_name What>
struct with_missing_names {
  static constexpr missing_name when_missing = What;
  static constexpr auto list() { return names_of<Policy>::list; }
  constexpr auto operator()(const residual& value) const { return Policy(value); }
};

}  // namespace ops

/// Values named so, and no others.
template <text... Names>
inline constexpr ops::only_these_names<Names...> save_only_these_names{};
/// Named values with other names than these, and no unnamed ones.
template <text... Names>
inline constexpr ops::names_but_these<Names...> save_any_names_but_these{};
/// All values but those with these names.
template <text... Names>
inline constexpr ops::anything_except_these_names<Names...> save_anything_except_these_names{};
/// `save_and_offload_only_these_names<names<"scores">, names<"hidden">>`: the former stay on the device, the latter
/// wait in host memory, all else is computed again.
template <class Saved, class Offloaded>
inline constexpr ops::saved_and_offloaded_names<Saved, Offloaded> save_and_offload_only_these_names{};
/// What the first of the two lets be saved or offloaded or, failing that, the second.
template <auto First, auto Second>
inline constexpr ops::either_policy<First, Second> save_from_both_policies{};

/// The policy, but a name it lists that no value of the function carries stops the build, where otherwise the compiler
/// warns (or, if TESSERA_STRICT_NAMES is defined, stops too).
template <auto Policy>
inline constexpr ops::with_missing_names<Policy, ops::missing_name::is_error> strict_names{};
/// The policy, and nothing is said of a name that no value carries: for one that serves several functions.
template <auto Policy>
inline constexpr ops::with_missing_names<Policy, ops::missing_name::is_fine> optional_names{};

}  // namespace tessera
