// SPDX-License-Identifier: Apache-2.0
// The function of a step of any kind on any element type.
#pragma once

#include <tessera/core/compiled.hpp>
#include <tessera/runtime/program_runs.hpp>

#include <type_traits>

namespace tessera::runtime {

/// What runs steps of a kind on elements of a type; nullptr where there are none.
step_function any_step_function(graph::step_kind kind, dtype type);

#if defined(TESSERA_COMPILED)

template <class T, graph::step_kind... Kinds>
step_function function_of_kind(graph::step_kind kind) {
  step_function found = nullptr;
  const auto look = [&]<graph::step_kind Kind>() {
    using graph::step_kind;
    constexpr bool rows = Kind >= step_kind::softmax && Kind <= step_kind::log_softmax_grad;
    constexpr bool product = Kind == step_kind::dot;
    if constexpr (!(rows && !std::is_floating_point_v<T>)&&!(product && sizeof(T) == 1))
      if (kind == Kind) found = executor::function_for<Kind, T>();
  };
  (look.template operator()<Kinds>(), ...);
  return found;
}

TESSERA_COMPILED step_function any_step_function(graph::step_kind kind, dtype type) {
  using graph::step_kind;
  const auto pick = [&]<class T>(T) {
    return function_of_kind<T, step_kind::fused, step_kind::dot, step_kind::reduce, step_kind::softmax,
                            step_kind::log_softmax, step_kind::softmax_grad, step_kind::log_softmax_grad,
                            step_kind::update_slice, step_kind::dynamic_slice, step_kind::dynamic_update,
                            step_kind::gather, step_kind::scatter, step_kind::check_range, step_kind::copy_out,
                            step_kind::all_reduce, step_kind::all_gather, step_kind::reduce_scatter,
                            step_kind::all_to_all, step_kind::collective_permute>(kind);
  };
  switch (type) {
    case dtype::f32: return pick(float{});
    case dtype::f64: return pick(double{});
    case dtype::i32: return pick(std::int32_t{});
    case dtype::u32: return pick(std::uint32_t{});
    default: return pick(bool{});
  }
}

#endif

}  // namespace tessera::runtime
