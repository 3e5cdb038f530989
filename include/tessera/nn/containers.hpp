// SPDX-License-Identifier: Apache-2.0
// Layers in a row, in a list and by name.
#pragma once

#include <tessera/graph/visit.hpp>
#include <tessera/nn/input.hpp>

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tessera::nn {

/// Layers of one type, one by one: `list<8, block>`. Each is traced on its own; a `stack` is traced once. Layers of
/// several types are a std::tuple. Source: flax.nnx.List.
template <std::size_t Count, class Layer>
using list = std::array<Layer, Count>;

/// A function as a layer without variables: `fn<relu>`, `fn<[](auto x) { return max_pool<shape<2, 2>>(x); }>`.
template <auto F>
struct fn {
  constexpr auto operator()(const auto& x) const { return F(x); }
};

/// Layers that say what goes in and what comes out.
template <class T>
concept TakesFeatures = requires {
  typename T::name;
  T::in_features;
};
template <class T>
concept GivesFeatures = requires {
  typename T::name;
  T::out_features;
};

/// One layer behind the other: `sequential<linear<64, 256>, fn<relu>, linear<256, 10>>`, called as the first of them. A
/// layer whose features are not those of the layer before it does not compile, with the names and numbers of both. What
/// layers change of their own (running statistics) is changed here. Source: flax.nnx.Sequential.
template <class... Layers>
struct sequential {
  std::tuple<Layers...> layers;
  TESSERA_MODULE(sequential, layers)

  template <std::size_t I>
  constexpr auto& get() {
    return std::get<I>(layers);
  }
  template <std::size_t I>
  constexpr const auto& get() const {
    return std::get<I>(layers);
  }

  constexpr auto operator()(const auto& x) { return from<0, void>(layers, x); }
  constexpr auto operator()(const auto& x) const { return from<0, void>(layers, x); }

 private:
  /// `linear<64, 256>, then linear<128, 10> of float32[32,256]`
  template <class Before, class Next, class X>
  static constexpr text_buffer chain_details() {
    text_buffer out;
    Before::name::write(out);
    out << ", then " << Next::name::template of<X>().view();
    return out;
  }

  /// The layers from I on; Before is the last one that said how many features it gives.
  template <std::size_t I, class Before, class X>
  static constexpr auto from(auto& layers, const X& x) {
    if constexpr (I == sizeof...(Layers) || Poison<X>) {
      return x;
    } else {
      using next = std::tuple_element_t<I, std::tuple<Layers...>>;
      if constexpr (TakesFeatures<next> && Expr<X> && GivesFeatures<Before>) {
        if constexpr (!features_fit<next, X>()) {
          diagnose(report<message::layer_chain, &chain_details<Before, next, X>>);
          return poison{};
        } else {
          return call<I, Before, next>(layers, x);
        }
      } else {
        return call<I, Before, next>(layers, x);
      }
    }
  }
  template <std::size_t I, class Before, class Next, class X>
  static constexpr auto call(auto& layers, const X& x) {
    return from<I + 1, std::conditional_t<GivesFeatures<Next>, Next, Before>>(layers, std::get<I>(layers)(x));
  }
};

/// A module under a name in a dict.
template <text Name, class Part>
struct entry {};

template <class... Entries>
struct dict;

/// Modules by name: `dict<entry<"image", encoder>, entry<"words", embed<1000, 64>>> towers;`,
/// `towers.at<"words">()(ids)`. Paths name the entries, as those of a struct with TESSERA_MODULE do. A name that is not
/// there does not compile. Source: flax.nnx.Dict.
template <text... Names, class... Parts>
struct dict<entry<Names, Parts>...> {
  std::tuple<Parts...> parts;

  template <text Name>
  constexpr auto& at() {
    return std::get<place_of<Name>()>(parts);
  }
  template <text Name>
  constexpr const auto& at() const {
    return std::get<place_of<Name>()>(parts);
  }

  template <std::size_t I>
  struct part_at {
    constexpr auto& operator()(auto& object) const { return std::get<I>(object.parts); }
  };
  struct hana_accessors_impl {
    template <class Self = dict>
    static constexpr auto apply() {
      static_assert(module_detail::check_members<Self, Names...>());
      return []<std::size_t... I>(std::index_sequence<I...>) {
        return boost::hana::make_tuple(boost::hana::make_pair(module_detail::hana_name<Names>(), part_at<I>{})...);
      }
      (std::make_index_sequence<sizeof...(Names)>{});
    }
  };

 private:
  template <text Name>
  static constexpr std::size_t place_of() {
    constexpr bool here[] = {Names.view() == Name.view()..., true};
    std::size_t i = 0;
    while (!here[i]) ++i;
    static_assert((false || ... || (Names.view() == Name.view())), "nn::dict: there is no entry of this name");
    return i;
  }
};

}  // namespace tessera::nn
