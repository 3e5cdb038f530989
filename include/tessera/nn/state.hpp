// SPDX-License-Identifier: Apache-2.0
// Modules taken apart into structure and data, and put together again: split, merge, state, update, pop.
#pragma once

#include <tessera/core/diagnose.hpp>
#include <tessera/nn/filter.hpp>

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tessera::nn {

/// The structure of a module: its type, and nothing else. Source: flax.nnx.GraphDef.
template <class Module>
struct graphdef {
  using module_type = Module;
};

/// The mesh of what is bound to one.
template <class T>
struct with_mesh_of {};
template <class T>
requires requires { typename T::mesh_type; }
struct with_mesh_of<T> {
  using mesh_type = typename T::mesh_type;
};

/// The variables of a module that a filter lets through; the others are empty. It is walked over as a module is, can be
/// passed to steps, differentiated and saved, and shares memory with the module until one of them changes. Source:
/// flax.nnx.State.
template <class Filter, class Module>
struct state_of : with_mesh_of<Module> {
  using filter = Filter;
  using module_type = Module;

  Module variables;

  template <class F>
  constexpr void visit_variables(F&& f) {
    visit_selected<Filter>(variables, f);
  }
  template <class F>
  constexpr void visit_variables(F&& f) const {
    visit_selected<Filter>(variables, f);
  }
  template <class F>
  constexpr void visit_paths(member_path& path, F&& f) const {
    std::size_t next = 0;
    tessera::visit_paths(variables, path, [&](const member_path& p, const auto& v) {
      if (selected<Module, Filter>[next++]) f(p, v);
    });
  }
};

template <class T>
concept State = requires {
  typename std::remove_cvref_t<T>::filter;
  typename std::remove_cvref_t<T>::module_type;
};

namespace detail {

/// Where a variable has its node and its memory.
template <class Handle, class Data>
struct slot {
  Handle* handle = nullptr;
  Data* data = nullptr;
};
using const_slot = slot<const trace_handle, const runtime::storage_ptr>;
using own_slot = slot<trace_handle, runtime::storage_ptr>;

template <class Slot, class T>
constexpr graph::list<Slot> slots_of(T& object) {
  graph::list<Slot> slots;
  visit_variables(object, [&](auto& v) { slots.push_back({&v.handle, &v.data}); });
  return slots;
}

/// The node or memory of a variable for another one, which belongs to no step.
constexpr void take(const own_slot& to, const const_slot& from) {
  *to.handle = {from.handle->owner, from.handle->id, nullptr, false, from.handle->evaluates};
  *to.data = *from.data;
}

template <class Filter, class Module>
constexpr state_of<Filter, Module> taken(const Module& module) {
  state_of<Filter, Module> result;
  const graph::list<const_slot> from = slots_of<const_slot>(module);
  const graph::list<own_slot> to = slots_of<own_slot>(result.variables);
  for (std::size_t i = 0; i < from.size(); ++i)
    if (selected<Module, Filter>[i]) take(to[i], from[i]);
  return result;
}

/// Each filter without what those before it take.
template <class Before, class... Filters>
struct apart : std::type_identity<Before> {};
template <class... Done, class First, class... Rest>
struct apart<std::tuple<Done...>, First, Rest...>
    : apart<std::tuple<Done..., std::conditional_t<sizeof...(Done) == 0, First, all_of<First, not_<any_of<Done...>>>>>,
            Rest...> {};

template <class Module, class... Filters>
constexpr bool all_taken() {
  for (const bool one : selected<Module, any_of<Filters...>>)
    if (!one) return false;
  return true;
}

/// The first leaf that no filter takes.
template <class Module, class... Filters>
constexpr text_buffer left_behind() {
  text_buffer out;
  std::size_t next = 0;
  const Module object{};
  visit_paths(object, [&](const member_path& p, const auto&) {
    if (!selected<Module, any_of<Filters...>>[next++] && out.size == 0) out << p.view();
  });
  return out;
}

}  // namespace detail

/// The variables of a module, or those that a filter lets through: `state<param>(model)`. Source: flax.nnx.state.
template <class Filter = everything, class Module>
constexpr state_of<Filter, Module> state(const Module& module) {
  return detail::taken<Filter>(module);
}

/// `auto [def, params, stats, rest] = split<param, batch_stat, everything_else>(model)`: the structure, and a state for
/// each filter with what those before it left. Every variable goes somewhere, or it does not compile. Source:
/// flax.nnx.split.
template <class... Filters, class Module>
constexpr auto split(const Module& module) {
  if constexpr (sizeof...(Filters) == 0) {
    return std::tuple(graphdef<Module>{}, state(module));
  } else {
    if constexpr (!detail::all_taken<Module, Filters...>())
      diagnose(report<message::state_split, &detail::left_behind<Module, Filters...>>);
    return []<class... Each>(const Module& m, std::type_identity<std::tuple<Each...>>) {
      return std::tuple(graphdef<Module>{}, detail::taken<Each>(m)...);
    }(module, std::type_identity<typename detail::apart<std::tuple<>, Filters...>::type>{});
  }
}

/// Writes the variables of states into a module; the others keep what they have. Source: flax.nnx.update.
template <class Module, State... States>
constexpr void update(Module& module, const States&... states) {
  const graph::list<detail::own_slot> to = detail::slots_of<detail::own_slot>(module);
  const auto write = [&]<class One>(const One& one) {
    static_assert(std::same_as<typename One::module_type, Module>, "nn::update: the state is one of another module");
    const graph::list<detail::const_slot> from = detail::slots_of<detail::const_slot>(one.variables);
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (!selected<Module, typename One::filter>[i]) continue;
      to[i].handle->become(from[i].handle->owner, from[i].handle->id);
      *to[i].data = *from[i].data;
    }
  };
  (write(states), ...);
}

/// A module of this structure with the variables of these states, another object than the one that was split. States
/// that leave a variable out do not compile. Source: flax.nnx.merge.
template <class Module, State... States>
constexpr Module merge(graphdef<Module>, const States&... states) {
  if constexpr (!detail::all_taken<Module, typename States::filter...>())
    diagnose(report<message::state_merge, &detail::left_behind<Module, typename States::filter...>>);
  Module module;
  update(module, states...);
  return module;
}

/// Takes the variables that a filter lets through out of a module, which is left without them. Source: flax.nnx.pop.
template <class Filter, class Module>
constexpr state_of<Filter, Module> pop(Module& module) {
  auto result = detail::taken<Filter>(module);
  visit_selected<Filter>(module, [](auto& v) {
    v.handle.become(nullptr, -1);
    v.data = {};
  });
  return result;
}

/// A copy of an object in which f(variable), an array of its type, stands for each variable, within a step. Source:
/// jax.tree.map.
template <class F, class T>
constexpr T tree_map(F f, const T& tree) {
  T result = tree;
  visit_variables(result, [&](auto& v) {
    v.handle.home = nullptr;
    v = f(std::as_const(v));
  });
  return result;
}

/// The same with f(path, variable). Source: jax.tree_util.tree_map_with_path.
template <class F, class T>
constexpr T tree_map_with_path(F f, const T& tree) {
  T result = tree;
  graph::list<member_path> paths;
  visit_paths(tree, [&](const member_path& p, const auto&) { paths.push_back(p); });
  std::size_t next = 0;
  visit_variables(result, [&](auto& v) {
    v.handle.home = nullptr;
    v = f(paths[next++].view(), std::as_const(v));
  });
  return result;
}

}  // namespace tessera::nn
