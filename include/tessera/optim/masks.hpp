// SPDX-License-Identifier: Apache-2.0
// Transformations for some variables: masks by name, path, role or shape, and different ones for groups of variables.
#pragma once

#include <tessera/optim/transformation.hpp>

#include <string_view>

namespace tessera::optim {

/// Masks say of a leaf whether it is chosen; a lambda `[](const leaf& l) { return l.rank > 1; }` without captures is
/// one.

/// The last name of the path: `named<"kernel">`.
template <text Name>
struct named_t {
  constexpr bool operator()(const leaf& l) const { return l.name() == Name.view(); }
};
template <text Name>
inline constexpr named_t<Name> named{};

/// A part of the path: `within<"encoder">` chooses `encoder.layers[0].kernel`.
template <text Name>
struct within_t {
  constexpr bool operator()(const leaf& l) const { return l.path.find(Name.view()) != std::string_view::npos; }
};
template <text Name>
inline constexpr within_t<Name> within{};

/// The role in the variable's type: `of_role<"bias">`.
template <text Role>
struct of_role_t {
  constexpr bool operator()(const leaf& l) const { return l.role == Role.view(); }
};
template <text Role>
inline constexpr of_role_t<Role> of_role{};

/// Arrays of two dimensions or more.
inline constexpr auto matrices = [](const leaf& l) { return l.rank > 1; };

template <class Mask>
struct none_of {
  constexpr bool operator()(const leaf& l) const { return !Mask{}(l); }
};
/// What a mask does not choose.
template <class Mask>
constexpr none_of<Mask> others(Mask) {
  return {};
}

namespace detail {

/// The values for which a flag is set.
template <std::size_t N>
constexpr values chosen_values(const values& all, const std::array<bool, N>& flags) {
  values some;
  for (std::size_t i = 0; i < N; ++i)
    if (flags[i]) some.push_back(all[i]);
  return some;
}

template <std::size_t N>
constexpr void put_chosen(values& all, const values& some, const std::array<bool, N>& flags) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < N; ++i)
    if (flags[i]) all[i] = some[next++];
}

/// One transformation for the variables that a mask chooses of those of kind Wrt.
template <class Inner, class Model, class Wrt, class Mask>
struct masked_state {
  using chosen_leaves = chosen<Model, Wrt, Mask>;
  typename Inner::template state<Model, selected<Wrt, Mask>> inner;

  TESSERA_MODULE(masked_state, inner)

  constexpr void update(const Inner& t, values& updates, const values& params) {
    values some = chosen_values(updates, chosen_leaves::flags);
    t.update(some, chosen_values(params, chosen_leaves::flags), inner);
    put_chosen(updates, some, chosen_leaves::flags);
  }
  void start(const Inner& t, std::span<const runtime::storage_ptr> params) {
    std::vector<runtime::storage_ptr> some;
    for (std::size_t i = 0; i < params.size(); ++i)
      if (chosen_leaves::flags[i]) some.push_back(params[i]);
    start_state(t, inner, some);
  }
};

}  // namespace detail

/// A transformation that sees only the variables that Mask chooses, and has state for these alone; other updates pass
/// as they are. Source: optax.masked.
template <class Inner, class Mask>
struct masked_t {
  Inner inner;

  template <class Model, class Wrt>
  using state = detail::masked_state<Inner, Model, Wrt, Mask>;

  TESSERA_MODULE(masked_t, inner)

  template <class State>
  constexpr void update(values& updates, const values& params, State& s) const {
    s.update(inner, updates, params);
  }
  template <class State>
  void start(State& s, std::span<const runtime::storage_ptr> params) const {
    s.start(inner, params);
  }
};

/// `masked(add_decayed_weights(1e-4), named<"kernel">)`.
template <class Inner, class Mask>
masked_t<Inner, Mask> masked(Inner inner, Mask) {
  return {std::move(inner)};
}

/// Updates become 0: what they belong to does not move. Source: optax.set_to_zero.
struct set_to_zero_t {
  template <class Model, class Wrt>
  using state = empty_state;

  TESSERA_MODULE(set_to_zero_t)

  constexpr void update(values& updates, const values&, empty_state&) const {
    for (graph::value& u : updates) u = graph::zeros(u.owner, u.type());
  }
};
inline set_to_zero_t set_to_zero() { return {}; }

/// Updates stay as they are. Source: optax.identity.
struct identity_t {
  template <class Model, class Wrt>
  using state = empty_state;

  TESSERA_MODULE(identity_t)
  constexpr void update(values&, const values&, empty_state&) const {}
};
inline identity_t identity() { return {}; }

/// A mask and the transformation of the variables it chooses.
template <class Mask, class Inner>
struct group_t {
  Inner inner;
  TESSERA_MODULE(group_t, inner)
};
template <class Mask, class Inner>
group_t<Mask, Inner> group(Mask, Inner inner) {
  return {std::move(inner)};
}

/// What is in no group before.
struct everything_else_t {
  constexpr bool operator()(const leaf&) const { return true; }
};
inline constexpr everything_else_t everything_else{};

namespace detail {

/// The number of the first mask that chooses a leaf, or that of masks.
template <class... Masks>
constexpr std::size_t first_choice(const leaf& l) {
  std::size_t place = 0;
  static_cast<void>(((Masks{}(l) ? true : (++place, false)) || ...));
  return place;
}
template <std::size_t I, class... Masks>
struct choice_is {
  constexpr bool operator()(const leaf& l) const { return first_choice<Masks...>(l) == I; }
};

template <class Model, class Wrt, class... Masks>
constexpr bool all_are_chosen() {
  bool all = true;
  describe_leaves<Model, Wrt>([&](const leaf& l) { all = all && first_choice<Masks...>(l) < sizeof...(Masks); });
  return all;
}

template <class Places, class Model, class Wrt, class... Groups>
struct grouped_state;
template <std::size_t... I, class Model, class Wrt, class... Masks, class... Inners>
struct grouped_state<std::index_sequence<I...>, Model, Wrt, group_t<Masks, Inners>...> {
  static_assert(all_are_chosen<Model, Wrt, Masks...>(),
                "tessera: multi_transform: a variable is in no group; end with group(everything_else, ...)");
  std::tuple<masked_state<Inners, Model, Wrt, choice_is<I, Masks...>>...> parts;

  TESSERA_MODULE(grouped_state, parts)
};

}  // namespace detail

/// Each variable by the transformation of the first group whose mask chooses it. Source: optax.multi_transform,
/// optax.partition.
template <class... Groups>
struct multi_transform_t {
  std::tuple<Groups...> groups;

  template <class Model, class Wrt>
  using state = detail::grouped_state<std::index_sequence_for<Groups...>, Model, Wrt, Groups...>;

  TESSERA_MODULE(multi_transform_t, groups)

  template <class State>
  constexpr void update(values& updates, const values& params, State& s) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (std::get<I>(s.parts).update(std::get<I>(groups).inner, updates, params), ...);
    }
    (std::index_sequence_for<Groups...>{});
  }
  template <class State>
  void start(State& s, std::span<const runtime::storage_ptr> params) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (std::get<I>(s.parts).start(std::get<I>(groups).inner, params), ...);
    }
    (std::index_sequence_for<Groups...>{});
  }
};

/// `multi_transform(group(named<"embedding">, sgd(1e-2)), group(everything_else, adamw(1e-3)))`. A variable in no group
/// stops the build.
template <class... Groups>
multi_transform_t<Groups...> multi_transform(Groups... groups) {
  return {{std::move(groups)...}};
}

}  // namespace tessera::optim
