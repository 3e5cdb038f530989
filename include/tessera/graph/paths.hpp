// SPDX-License-Identifier: Apache-2.0
// Walking over the variables of a module with the path of each: `layers[2].kernel`.
#pragma once

#include <tessera/core/text.hpp>
#include <tessera/graph/visit.hpp>

#include <string_view>

namespace tessera {

/// Where a variable stands in its module.
class member_path {
 public:
  constexpr std::string_view view() const { return text_.view(); }

  constexpr std::size_t size() const { return text_.size; }
  constexpr void enter(std::string_view name) { text_ << (text_.size > 0 ? "." : "") << name; }
  constexpr void enter(int index) { text_ << "[" << index << "]"; }
  constexpr void leave_to(std::size_t size) { text_.size = size; }

 private:
  text_buffer text_{};
};

/// A type that walks over its own variables and says where they are: `visit_paths(path, f)`.
template <class T>
concept PathVisiting = requires(T& object, member_path& path) {
  object.visit_paths(path, [](const member_path&, auto&) {});
};

template <class T, class F>
constexpr void visit_paths(T& object, member_path& path, F&& f);

/// Visits a part of an object whose path is one name or number longer.
template <class Name, class T, class F>
constexpr void visit_part(Name name, T& part, member_path& path, F&& f) {
  const std::size_t here = path.size();
  path.enter(name);
  visit_paths(part, path, f);
  path.leave_to(here);
}

/// Calls f(path, variable) for every variable in `object`, in the order of visit_variables. Parts of what walks itself
/// without telling paths are numbered.
template <class T, class F>
constexpr void visit_paths(T& object, member_path& path, F&& f) {
  using bare = std::remove_const_t<T>;
  if constexpr (Variable<bare>) {
    f(path, object);
  } else if constexpr (PathVisiting<T>) {
    object.visit_paths(path, f);
  } else if constexpr (SelfVisiting<T>) {
    int next = 0;
    object.visit_variables([&](auto& v) { visit_part(next++, v, path, f); });
  } else if constexpr (Module<bare>) {
    constexpr auto accessors = bare::hana_accessors_impl::apply();
    constexpr std::size_t count = decltype(boost::hana::length(accessors))::value;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (visit_part(std::string_view(boost::hana::first(boost::hana::at_c<I>(accessors)).c_str()),
                  boost::hana::second(boost::hana::at_c<I>(accessors))(object), path, f),
       ...);
    }
    (std::make_index_sequence<count>{});
  } else if constexpr (is_sequence<bare>) {
    int next = 0;
    std::apply([&](auto&... elements) { (visit_part(next++, elements, path, f), ...); }, object);
  }
}
template <class T, class F>
constexpr void visit_paths(T& object, F&& f) {
  member_path path;
  visit_paths(object, path, f);
}

}  // namespace tessera
