// SPDX-License-Identifier: Apache-2.0
// Arguments of an operation that are no operands: the `out_sharding<...>` that may stand last.
#pragma once

#include <tessera/ops/apply.hpp>

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tessera {

template <class T>
inline constexpr bool is_out_sharding = false;
template <class Spec>
inline constexpr bool is_out_sharding<out_sharding_t<Spec>> = true;

/// What may stand last in a call.
template <class T>
concept OutSharding = is_out_sharding<std::remove_cvref_t<T>>;

namespace ops {

/// The spec that one of a call's arguments asks for, or void.
template <class... Arguments>
struct spec_among : std::type_identity<void> {};
template <class First, class... Rest>
struct spec_among<First, Rest...> : spec_among<Rest...> {};
template <class Spec, class... Rest>
struct spec_among<out_sharding_t<Spec>, Rest...> : std::type_identity<Spec> {};

/// Calls f(operands...), without an `out_sharding<...>` at the end.
template <class F, class... Arguments>
constexpr auto with_operands(F f, const Arguments&... arguments) {
  constexpr std::size_t operands = sizeof...(Arguments) - (OutSharding<Arguments> + ... + 0);
  const auto all = std::tie(arguments...);
  return [&]<std::size_t... I>(std::index_sequence<I...>) { return f(std::get<I>(all)...); }
  (std::make_index_sequence<operands>{});
}

/// `type` with dimension `d` uncut.
constexpr aval uncut(aval type, int d) {
  type.dims[d].axes = 0;
  return type;
}

}  // namespace ops
}  // namespace tessera
