// SPDX-License-Identifier: Apache-2.0
// The function of a step of any kind on any element type.
#pragma once

#include <tessera/core/compiled.hpp>
#include <tessera/runtime/program_runs.hpp>

#include <type_traits>
#include <utility>

namespace tessera::runtime {

/// What runs steps of a kind on elements of a type; none where there are none.
step_function any_step_function(graph::step_kind kind, dtype type);

#if defined(TESSERA_COMPILED)

/// Whether steps of a kind exist for elements of type T; uint8 stands for bool. What is not done to 16-bit numbers is
/// done to float32, see transform/widen.hpp.
template <graph::step_kind Kind, class T>
constexpr bool runs_on() {
  using graph::step_kind;
  if (is_small_float<T>)
    return Kind == step_kind::dot || Kind == step_kind::reduce || graph::is_collective(Kind) ||
           (graph::is_movement(Kind) && Kind != step_kind::overlap_add && Kind != step_kind::scatter);
  switch (Kind) {
    case step_kind::softmax:
    case step_kind::log_softmax:
    case step_kind::softmax_grad:
    case step_kind::log_softmax_grad:
    case step_kind::recurrence: return std::is_floating_point_v<T>;
    case step_kind::dot:
    case step_kind::cumulative:
    case step_kind::argsort: return sizeof(T) > 1;
    default: return !graph::is_control(Kind);
  }
}

/// What elements are where they are combined: of nothing, uint8 would give 255 for the least of bool.
template <graph::step_kind Kind, class T>
using combined_as = std::conditional_t<
    std::is_same_v<T, std::uint8_t> && (Kind == graph::step_kind::reduce || graph::is_collective(Kind)), bool, T>;

template <class T>
step_function function_of_kind(graph::step_kind kind) {
  step_function found;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto look = [&]<graph::step_kind Kind>() {
      if constexpr (runs_on<Kind, T>())
        if (kind == Kind) found = executor::function_for<Kind, combined_as<Kind, T>>();
    };
    (look.template operator()<static_cast<graph::step_kind>(I)>(), ...);
  }
  (std::make_index_sequence<graph::step_kinds>{});
  return found;
}

TESSERA_COMPILED step_function any_step_function(graph::step_kind kind, dtype type) {
  const auto pick = [&]<class T>(T) { return function_of_kind<T>(kind); };
  switch (type) {
    case dtype::f32: return pick(float{});
    case dtype::f64: return pick(double{});
    case dtype::i32: return pick(std::int32_t{});
    case dtype::u32: return pick(std::uint32_t{});
    case dtype::bf16: return pick(bfloat16{});
    case dtype::f16: return pick(float16{});
    default: return pick(std::uint8_t{});
  }
}

#endif

}  // namespace tessera::runtime
