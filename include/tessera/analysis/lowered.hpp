// SPDX-License-Identifier: Apache-2.0
// A step function lowered for given argument types: its program, and what is known of it before it runs.
#pragma once

#include <tessera/analysis/print.hpp>
#include <tessera/analysis/summary.hpp>
#include <tessera/graph/pack.hpp>
#include <tessera/transform/plan.hpp>
#include <tessera/transform/trace.hpp>

namespace tessera {

/// `lowered<step, decltype(model), decltype(optimizer), decltype(x)>`: everything is a constant and comes from the list of
/// steps that the executor walks. Figures are those of one device of the mesh. Source: jax.stages.Lowered, Compiled.
template <const auto& F, class... Args>
struct lowered {
  using traced = transform::traced<F, std::remove_reference_t<Args>...>;
  using mesh_type = typename traced::mesh_type;

  using trace_words = graph::packed_constant<traced>;

  struct lowering_of_trace {
    static constexpr graph::program run() { return transform::lower(trace()); }
  };
  using program_words = graph::packed_constant<lowering_of_trace>;

  /// The trace: one node an operation, over global arrays.
  static constexpr graph::graph trace() { return graph::unpack_graph(trace_words::words, mesh_type::value); }

  /// The steps.
  static constexpr graph::program program() { return graph::unpack_program(program_words::words); }

  static constexpr analysis::collective_counts collectives() { return summary.collectives; }
  static constexpr analysis::memory_figures memory_analysis() { return summary.memory; }
  static constexpr analysis::cost_figures cost_analysis() { return summary.cost; }

  /// The program in print: arguments, one line a step, results.
  static constexpr std::string_view text() { return {printed.chars.data(), printed.size}; }

 private:
  static constexpr analysis::summary summary = analysis::summarise(program(), mesh_type::value);
  static constexpr auto printed = analysis::print<8192>(program(), mesh_type::value);
};

}  // namespace tessera
