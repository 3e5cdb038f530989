// SPDX-License-Identifier: Apache-2.0
// What the generated tests of the sharding rules are written with: looking at results.
#pragma once

// A refused operation gives a type that names its message, and says nothing.
#define TESSERA_SILENT_REFUSALS

#include "sharding_rules/types.hpp"

#include <tessera/analysis/lowered.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <catch2/catch.hpp>

#include <string_view>

template <class T>
constexpr void write_result(ts::text_buffer& out, const T*) {
  if constexpr (ts::Expr<T>) ts::write_aval(out, T::type, T::mesh_type::value);
  else if constexpr (ts::Poison<T>) out << "refused";
}
template <template <class...> class Tuple, class First, class... Rest>
constexpr void write_result(ts::text_buffer& out, const Tuple<First, Rest...>*) {
  write_result(out, static_cast<const First*>(nullptr));
  ((out << "; ", write_result(out, static_cast<const Rest*>(nullptr))), ...);
}

/// Whether a result, or several of them, has this type in print.
template <class Result>
constexpr bool prints(std::string_view wanted) {
  ts::text_buffer out;
  write_result(out, static_cast<const Result*>(nullptr));
  return out.view() == wanted;
}

/// Whether a result stands for this message.
template <class Result>
constexpr bool refuses(ts::message wanted) {
  if constexpr (requires { Result::failure; }) return Result::failure == wanted;
  else return false;
}

/// The tensor that a traced array stands for.
template <class Array>
struct tensor_of;
template <ts::aval Type, class Mesh>
struct tensor_of<ts::expr<Type, Mesh>> {
  template <std::size_t... D>
  static auto deduce(std::index_sequence<D...>)
      -> ts::tensor<Type.type, ts::shape<Type.dims[D].extent...>, ts::spec_type<Type, Mesh>, Mesh>;
  using type = decltype(deduce(std::make_index_sequence<static_cast<std::size_t>(Type.rank)>{}));
};

/// What a function moves.
template <const auto& F, class... Arrays>
constexpr ts::analysis::collective_counts collectives() {
  return ts::lowered<F, typename tensor_of<Arrays>::type...>::collectives();
}
