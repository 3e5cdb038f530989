// SPDX-License-Identifier: Apache-2.0
// A step function lowered for given argument types: its program, and what is known of it before it runs.
#pragma once

#include <tessera/analysis/print.hpp>
#include <tessera/analysis/refused.hpp>
#include <tessera/analysis/summary.hpp>
#include <tessera/graph/pack.hpp>
#include <tessera/transform/plan.hpp>
#include <tessera/transform/trace.hpp>

namespace tessera {

namespace analysis {

/// The program of a traced step, and its figures.
template <class Traced>
struct lowering {
  using mesh_type = typename Traced::mesh_type;

  using trace_words = graph::packed_constant<Traced>;

  struct lowering_of_trace {
    static constexpr graph::program run() { return transform::lower(trace()); }
  };
  using program_words = graph::packed_constant<lowering_of_trace>;

  /// The trace: one node an operation, over global arrays.
  static constexpr graph::graph trace() { return graph::unpack_graph(trace_words::words, mesh_type::value); }

  /// The steps.
  static constexpr graph::program program() { return graph::unpack_program(program_words::words); }

  static constexpr analysis::collective_counts collectives() { return facts.summary.collectives; }
  static constexpr analysis::memory_figures memory_analysis() { return facts.summary.memory; }
  static constexpr analysis::cost_figures cost_analysis() { return facts.summary.cost; }

  /// Which kernels the program needs.
  static constexpr const analysis::kernel_needs& kernels() { return facts.kernels; }

  static constexpr std::size_t argument_count() { return facts.argument_count; }

  /// Word `i` of the program's instruction lists, which end the packed program.
  static constexpr int instruction_word(std::size_t i) {
    return static_cast<int>(program_words::words[program_words::size - facts.kernels.word_count + i]);
  }

  /// The program in print: arguments, one line a step, results.
  static constexpr std::string_view text() { return {printing::text.chars.data(), printing::text.size}; }

 private:
  static constexpr analysis::program_facts facts = analysis::facts_of(program(), mesh_type::value);

  /// A type of its own, so that only those who ask for the text pay for it. It is printed once, or twice if it needs
  /// more room than a guess.
  struct printing {
    static constexpr std::size_t guess = 8192;
    static constexpr analysis::printed_text<guess> roomy = analysis::print<guess>(program(), mesh_type::value);

    static constexpr analysis::printed_text<roomy.size> shrink() {
      if constexpr (roomy.size > guess) {
        return analysis::print<roomy.size>(program(), mesh_type::value);
      } else {
        analysis::printed_text<roomy.size> exact;
        return exact << std::string_view(roomy.chars.data(), roomy.size);
      }
    }
    static constexpr analysis::printed_text<roomy.size> text = shrink();
  };
};

}  // namespace analysis

/// `lowered<step, decltype(model), decltype(optimizer), decltype(x)>`: everything is a constant and comes from the list of
/// steps that the executor walks. Figures are those of one device of the mesh. Of a step in which an error was reported
/// nothing is known. Source: jax.stages.Lowered, Compiled.
template <const auto& F, class... Args>
struct lowered
    : std::conditional_t<transform::traced<F, std::remove_reference_t<Args>...>::refused, analysis::refused_lowering,
                         analysis::lowering<transform::traced<F, std::remove_reference_t<Args>...>>> {
  using traced = transform::traced<F, std::remove_reference_t<Args>...>;
};

}  // namespace tessera
