// SPDX-License-Identifier: Apache-2.0
// What optimisers are made of: pure updates of lists of gradients, with state that mirrors a model's variables.
#pragma once

#include <tessera/graph/paths.hpp>
#include <tessera/graph/value.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/nn/variable.hpp>

#include <tuple>
#include <utility>

namespace tessera::optim {

/// One value a parameter, in the order of the model's variables.
using values = graph::list<graph::value>;

/// One array for each variable of kind Wrt of Model, of the same type and sharding.
template <class Model, class Wrt>
struct like {
  Model arrays;

  template <class F>
  constexpr void visit_variables(F&& f) {
    nn::visit_kind<Wrt>(arrays, f);
  }
  template <class F>
  constexpr void visit_variables(F&& f) const {
    nn::visit_kind<Wrt>(arrays, f);
  }
  template <class F>
  constexpr void visit_paths(member_path& path, F&& f) const {
    tessera::visit_paths(arrays, path, [&](const member_path& p, const auto& v) {
      if constexpr (std::same_as<typename std::remove_cvref_t<decltype(v)>::variable_kind, Wrt>) f(p, v);
    });
  }
};

constexpr graph::value value_of(const auto& variable) { return graph::seen(variable.handle.owner, variable.handle.id); }

/// The variables of an object as values.
template <class T>
constexpr values values_of(const T& object) {
  values list;
  visit_variables(object, [&](const auto& v) { list.push_back(value_of(v)); });
  return list;
}

template <class T>
constexpr void assign(T& object, const values& list) {
  std::size_t next = 0;
  visit_variables(object, [&](auto& v) {
    v.handle.become(list[next].owner, list[next].id);
    ++next;
  });
}

constexpr void assign_one(auto& variable, graph::value v) { variable.handle.become(v.owner, v.id); }

/// A count of steps.
using counter = nn::variable<nn::optimizer_state, dtype::i32, shape<>>;

/// The count plus 1, as float32; the count goes up.
constexpr graph::value count_up(counter& count) {
  const graph::value next = value_of(count) + 1.0;
  assign_one(count, next);
  return graph::convert(next, dtype::f32);
}

/// State of a transformation that has none.
struct empty_state {
  TESSERA_MODULE(empty_state)
};

/// Several transformations, each fed what the one before gives.
template <class... Ts>
struct chained {
  std::tuple<Ts...> parts;

  template <class Model, class Wrt>
  using state = std::tuple<typename Ts::template state<Model, Wrt>...>;

  TESSERA_MODULE(chained, parts)

  template <class State>
  constexpr void update(values& updates, const values& params, State& states) const {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (std::get<I>(parts).update(updates, params, std::get<I>(states)), ...);
    }
    (std::index_sequence_for<Ts...>{});
  }
};

/// `chain(clip_by_global_norm(1.0), adamw(1e-3))`. Source: optax.chain.
template <class... Ts>
chained<Ts...> chain(Ts... parts) {
  return {{std::move(parts)...}};
}

}  // namespace tessera::optim
