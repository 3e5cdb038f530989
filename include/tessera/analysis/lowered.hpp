// SPDX-License-Identifier: Apache-2.0
// A step function lowered for given argument types: its program, and what is known of it before it runs.
#pragma once

#include <tessera/analysis/print.hpp>
#include <tessera/analysis/refused.hpp>
#include <tessera/analysis/summary.hpp>
#include <tessera/analysis/timeline.hpp>
#include <tessera/graph/pack.hpp>
#include <tessera/transform/plan.hpp>
#include <tessera/transform/trace.hpp>

namespace tessera {

namespace analysis {

/// The program of a traced step, and its figures.
template <class Traced>
struct lowering {
  using mesh_type = typename Traced::mesh_type;
  static constexpr bool refused = false;

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

  /// Bytes of the arena in use, step by step, and the largest buffers at the peak: as text, and as the text of an SVG
  /// file.
  static std::string timeline() { return analysis::timeline_text(program()); }
  static std::string timeline_svg() { return analysis::timeline_svg(program()); }

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

/// What the trace of a step found wrong.
template <class Traced>
constexpr graph::trace_fault fault_of_trace() {
  constexpr graph::trace_fault fault = graph::unpack_fault(lowering<Traced>::trace_words::words);
  if constexpr (fault.what == message::step_copy)
    return Traced::template takes_copies<fault.argument>() ? fault : graph::trace_fault{};
  else return fault;
}
constexpr text_buffer fault_text(const graph::trace_fault& fault, const mesh_value& mesh) {
  text_buffer out;
  if (fault.what == message::vmap_operation) out << graph::user_name(fault.code) << " to ";
  const bool shown = fault.what == message::module_unnamed || fault.what == message::scan_escape;
  if (shown || !(fault.type == aval{})) write_aval(out, fault.type, mesh);
  out << graph::value_name(fault.name).view();
  if (!(fault.beside == aval{})) out << " and ", write_aval(out, fault.beside, mesh);
  if (fault.argument >= 0) out << (out.size > 0 ? ", " : "") << "argument " << fault.argument + 1 << " of the step";
  return out;
}
template <class Traced>
constexpr text_buffer trace_fault_details() {
  return fault_text(fault_of_trace<Traced>(), Traced::mesh_type::value);
}

/// Calling it is what the compiler warns of.
template <text Name>
[[deprecated(
    "tessera: checkpoint: no value in the function carries a name that the policy lists; call checkpoint_name with it or "
    "drop it")]] constexpr void
no_value_is_called() {}

/// Warns once of a name that a policy lists and no value carries.
template <text Name>
constexpr bool warn_of_missing_name() {
  if constexpr (Name.length > 0) no_value_is_called<Name>();
  return true;
}
template <class Traced>
constexpr text_buffer missing_name_of_trace() {
  return text_buffer{} << graph::unpack_missing_name(lowering<Traced>::trace_words::words).view();
}

/// What stands for a program that cannot be made.
template <bool Refused, class Traced>
struct program_of : std::type_identity<refused_lowering> {
  static constexpr bool refused = true;
};
template <class Traced>
struct program_of<false, Traced> {
  static constexpr message fault = fault_of_trace<Traced>().what;
  static constexpr bool refused = fault != message::none;

  static constexpr auto choose() {
    if constexpr (refused) {
      diagnose(report<fault, &trace_fault_details<Traced>>);
      return std::type_identity<refused_lowering>{};
    } else {
      warn_of_missing_name<exact_text<&missing_name_of_trace<Traced>>()>();
      return std::type_identity<lowering<Traced>>{};
    }
  }
  using type = typename decltype(choose())::type;
};

/// Of a step whose result has been asked for.
template <class Result, const auto& F, class... Args>
using lowering_of = program_of<transform::traced<F, Args...>::refused, transform::traced<F, Args...>>;

}  // namespace analysis

/// `lowered<step, decltype(model), decltype(optimizer), decltype(x)>`: everything is a constant and comes from the list
/// of steps that the executor walks. Figures are those of one device of the mesh. Of a step in which an error was
/// reported nothing is known. Source: jax.stages.Lowered, Compiled.
template <const auto& F, class... Args>
struct lowered : analysis::refused_lowering {
  using traced = transform::traced<F, std::remove_reference_t<Args>...>;
  static constexpr bool refused = true;
};
template <const auto& F, class... Args>
requires(transform::arguments_fit<std::remove_reference_t<Args>...>()) struct lowered<F, Args...>
    : analysis::lowering_of<
          decltype(F(
              std::declval<transform::argument_of_step<
                  std::remove_reference_t<Args>, transform::program_mesh<std::remove_reference_t<Args>...>>>()...)),
          F, std::remove_reference_t<Args>...>::type {
  using traced = transform::traced<F, std::remove_reference_t<Args>...>;
  static constexpr bool refused = analysis::program_of<traced::refused, traced>::refused;
};

}  // namespace tessera
