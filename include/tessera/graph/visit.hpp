// SPDX-License-Identifier: Apache-2.0
// Walking over the variables of a module: members named by TESSERA_MODULE, arrays and tuples of them, and what walks
// itself.
#pragma once

#include <tessera/core/diagnose.hpp>
#include <tessera/graph/expr.hpp>

#include <boost/hana/at.hpp>
#include <boost/hana/core/when.hpp>
#include <boost/hana/fwd/accessors.hpp>
#include <boost/hana/pair.hpp>
#include <boost/hana/string.hpp>
#include <boost/hana/tuple.hpp>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <tuple>
#include <utility>

namespace tessera {

/// Members a module may have at most, the limit of Hana's own macros; nested modules are the way round.
inline constexpr int max_module_members = 39;

/// A type whose members TESSERA_MODULE names.
template <class T>
concept Module = requires {
  T::hana_accessors_impl::apply();
};

/// A type that walks over its own variables: `visit_variables(f)`.
template <class T>
concept SelfVisiting = requires(T& object) {
  object.visit_variables([](auto&) {});
};

/// Stops the build unless the type names its members.
template <class T>
constexpr bool check_module() {
  if constexpr (!Module<T> && !SelfVisiting<T>) diagnose(report<message::module_macro, no_details<T>>);
  return true;
}

template <class T>
inline constexpr bool is_sequence = false;
template <class T, std::size_t N>
inline constexpr bool is_sequence<std::array<T, N>> = true;
template <class... Ts>
inline constexpr bool is_sequence<std::tuple<Ts...>> = true;

/// Whether a type that is not walked over is a container of what is: a vector, an optional, a pointer.
template <class T>
constexpr bool holds_modules() {
  const auto walked = []<class Element>(std::type_identity<Element>) {
    return Variable<Element> || Module<Element> || SelfVisiting<Element>;
  };
  if constexpr (requires { typename T::value_type; }) return walked(std::type_identity<typename T::value_type>{});
  else if constexpr (requires { typename T::element_type; })
    return walked(std::type_identity<typename T::element_type>{});
  else return false;
}

/// Calls f(variable) for every variable in `object`, members in the order they are named, depth first.
template <class T, class F>
constexpr void visit_variables(T& object, F&& f) {
  using bare = std::remove_const_t<T>;
  if constexpr (Variable<bare>) {
    f(object);
  } else if constexpr (SelfVisiting<T>) {
    object.visit_variables(f);
  } else if constexpr (Module<bare>) {
    constexpr auto accessors = bare::hana_accessors_impl::apply();
    constexpr std::size_t count = decltype(boost::hana::length(accessors))::value;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (visit_variables(boost::hana::second(boost::hana::at_c<I>(accessors))(object), f), ...);
    }
    (std::make_index_sequence<count>{});
  } else if constexpr (is_sequence<bare>) {
    std::apply([&](auto&... elements) { (visit_variables(elements, f), ...); }, object);
  } else if constexpr (holds_modules<bare>()) {
    diagnose(report<message::module_container, no_details<bare>>);
  }
}

/// What is wrong with the first variable of an object that does not fit a mesh.
struct misfit {
  message failure = message::none;
  text_buffer details{};
};
template <class T, class Mesh>
constexpr misfit first_misfit() {
  misfit found;
  std::remove_const_t<T> object{};
  visit_variables(object, [&](auto& v) {
    using V = std::remove_cvref_t<decltype(v)>;
    if (found.failure != message::none) return;
    found.failure = resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().failure;
    if (found.failure == message::none) return;
    found.details << "variable ";
    write_spec_details<V::element, typename V::shape_type, typename V::spec_type, Mesh>(found.details);
  });
  return found;
}

/// Whether all variables of an object can be cut over a mesh; if not, the build stops with what is wrong with the
/// first.
template <class T, class Mesh>
constexpr bool fits() {
  constexpr message failure = first_misfit<T, Mesh>().failure;
  if constexpr (failure != message::none)
    return !diagnose(report<failure, [] { return first_misfit<T, Mesh>().details; }>);
  else return true;
}

namespace module_detail {

/// Reads a member of any object of a type derived from Struct.
template <class Member, Member Pointer>
struct member {
  template <class Object>
  constexpr auto& operator()(Object& object) const {
    return object.*Pointer;
  }
};

template <text Name>
constexpr auto hana_name() {
  return []<std::size_t... I>(std::index_sequence<I...>) { return boost::hana::string_c<Name.chars[I]...>; }
  (std::make_index_sequence<Name.length>{});
}

/// The place of the first name that stands before already, or -1.
constexpr int repeated(std::initializer_list<std::string_view> names) {
  for (const std::string_view* name = names.begin(); name != names.end(); ++name)
    for (const std::string_view* before = names.begin(); before != name; ++before)
      if (*before == *name) return static_cast<int>(name - names.begin());
  return -1;
}

template <class Self, text... Names>
constexpr bool check_members() {
  constexpr int count = sizeof...(Names);
  constexpr int twice = repeated({Names.view()...});
  if constexpr (count > max_module_members) {
    diagnose(report<message::module_members, [] { return text_buffer{} << count << " members"; }>);
  } else if constexpr (twice >= 0) {
    diagnose(report<message::module_twice, [] {
      const std::string_view names[] = {Names.view()...};
      return text_buffer{} << "member " << names[twice];
    }>);
  }
  return true;
}

}  // namespace module_detail
}  // namespace tessera

#define TESSERA_PARENS ()
#define TESSERA_EXPAND(...) TESSERA_EXPAND3(TESSERA_EXPAND3(TESSERA_EXPAND3(TESSERA_EXPAND3(__VA_ARGS__))))
#define TESSERA_EXPAND3(...) TESSERA_EXPAND2(TESSERA_EXPAND2(TESSERA_EXPAND2(TESSERA_EXPAND2(__VA_ARGS__))))
#define TESSERA_EXPAND2(...) TESSERA_EXPAND1(TESSERA_EXPAND1(TESSERA_EXPAND1(TESSERA_EXPAND1(__VA_ARGS__))))
#define TESSERA_EXPAND1(...) __VA_ARGS__
#define TESSERA_EACH(f, ...) __VA_OPT__(TESSERA_EXPAND(TESSERA_EACH_NEXT(f, __VA_ARGS__)))
#define TESSERA_EACH_NEXT(f, first, ...) f(first) __VA_OPT__(, TESSERA_EACH_AGAIN TESSERA_PARENS(f, __VA_ARGS__))
#define TESSERA_EACH_AGAIN() TESSERA_EACH_NEXT
#define TESSERA_NAME(name) #name
#define TESSERA_ACCESSOR(name)                                           \
  ::boost::hana::make_pair(::tessera::module_detail::hana_name<#name>(), \
                           ::tessera::module_detail::member<decltype(&Self::name), &Self::name>{})

/// Names the members of a module, inside its struct: `TESSERA_MODULE(mlp, up, down)`. It makes the struct one of
/// Boost.Hana's; members that are modules, variables, or arrays of them are walked over, others are configuration.
#define TESSERA_MODULE(type, ...)                                                                                  \
  struct hana_accessors_impl {                                                                                     \
    template <class Self = type>                                                                                   \
    static constexpr auto apply() {                                                                                \
      static_assert(                                                                                               \
          ::tessera::module_detail::check_members<Self __VA_OPT__(, ) TESSERA_EACH(TESSERA_NAME, __VA_ARGS__)>()); \
      return ::boost::hana::make_tuple(TESSERA_EACH(TESSERA_ACCESSOR, __VA_ARGS__));                               \
    }                                                                                                              \
  };
