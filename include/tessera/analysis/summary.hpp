// SPDX-License-Identifier: Apache-2.0
// Figures of a program, summed over the list of its steps: collectives, memory, cost.
#pragma once

#include <tessera/graph/lines.hpp>
#include <tessera/graph/program.hpp>

namespace tessera::analysis {

/// Collectives of one run, and the bytes of their operands on one device: of its block before an all-gather, an
/// all-to-all or a permutation, of the whole partial result before an all-reduce or a reduce-scatter. (What goes over
/// the wires depends on the algorithm; plan/budget.hpp counts that of rings.)
struct collective_counts {
  int all_reduce = 0;
  int all_gather = 0;
  int reduce_scatter = 0;
  int all_to_all = 0;
  int collective_permute = 0;
  std::int64_t all_reduce_bytes = 0;
  std::int64_t all_gather_bytes = 0;
  std::int64_t reduce_scatter_bytes = 0;
  std::int64_t all_to_all_bytes = 0;
  std::int64_t collective_permute_bytes = 0;
};

/// Bytes on one device. Results that take over an argument's memory count as alias and as output; temp is what the
/// program needs beside arguments and results, host_temp what it needs of the host's memory. The bytes moved between
/// the two in one run are those of the steps that do it, as often as loops run them.
/// Source: XLA's CompiledMemoryStats.
struct memory_figures {
  std::int64_t argument_size_in_bytes = 0;
  std::int64_t output_size_in_bytes = 0;
  std::int64_t alias_size_in_bytes = 0;
  std::int64_t temp_size_in_bytes = 0;
  std::int64_t host_temp_size_in_bytes = 0;
  std::int64_t bytes_to_host = 0;
  std::int64_t bytes_from_host = 0;
};

/// Work of one device. A contraction counts 2 m n k, an elementwise operation or a reduction 1 an element;
/// transcendental functions are counted apart.
struct cost_figures {
  std::int64_t flops = 0;
  std::int64_t transcendentals = 0;
  std::int64_t bytes_accessed = 0;
};

struct summary {
  collective_counts collectives{};
  memory_figures memory{};
  cost_figures cost{};
};

constexpr void count(collective_counts& counts, const graph::step& s, std::int64_t times) {
  const auto add = [&](int& count, std::int64_t& bytes) {
    count += static_cast<int>(times);
    bytes += times * s.bytes;
  };
  switch (s.kind) {
    case graph::step_kind::all_reduce: return add(counts.all_reduce, counts.all_reduce_bytes);
    case graph::step_kind::all_gather: return add(counts.all_gather, counts.all_gather_bytes);
    case graph::step_kind::reduce_scatter: return add(counts.reduce_scatter, counts.reduce_scatter_bytes);
    case graph::step_kind::all_to_all: return add(counts.all_to_all, counts.all_to_all_bytes);
    case graph::step_kind::collective_permute: return add(counts.collective_permute, counts.collective_permute_bytes);
    default: return;
  }
}

/// Adds what a step moves between device and host: what it reads, which is half of what it reads and writes.
constexpr void count(memory_figures& memory, const graph::step& s, std::int64_t times) {
  if (s.kind == graph::step_kind::to_host) memory.bytes_to_host += times * s.bytes / 2;
  if (s.kind == graph::step_kind::from_host) memory.bytes_from_host += times * s.bytes / 2;
}

/// How often each step runs: as often as the loops around it say, while loops counted as one trip, and both bodies of a
/// branch as if taken.
constexpr graph::list<std::int64_t> runs_of_steps(const graph::program& p) {
  graph::list<std::int64_t> runs(p.steps.size(), 1);
  for (std::size_t i = 0; i < p.steps.size(); ++i)
    if (p.steps[i].kind == graph::step_kind::scan)
      for (std::size_t k = 1; k <= static_cast<std::size_t>(graph::steps_inside(p.steps[i])); ++k)
        runs[i + k] *= p.steps[i].sizes[graph::trips];
  return runs;
}

constexpr summary summarise(const graph::program& p, const mesh_value& mesh) {
  summary result;
  const graph::list<std::int64_t> runs = runs_of_steps(p);
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const graph::step& s = p.steps[i];
    count(result.collectives, s, runs[i]);
    count(result.memory, s, runs[i]);
    result.cost.flops += runs[i] * s.flops;
    result.cost.transcendentals += runs[i] * s.transcendentals;
    if (!graph::is_collective(s.kind)) result.cost.bytes_accessed += runs[i] * s.bytes;
  }
  for (const graph::interface_value& a : p.arguments)
    result.memory.argument_size_in_bytes += local_block(a.type, mesh).bytes();
  for (const graph::interface_value& r : p.results) {
    const std::int64_t bytes = local_block(r.type, mesh).bytes();
    result.memory.output_size_in_bytes += bytes;
    if (r.alias >= 0) result.memory.alias_size_in_bytes += bytes;
  }
  result.memory.temp_size_in_bytes = p.temporary_bytes;
  result.memory.host_temp_size_in_bytes = p.host_bytes;
  return result;
}

/// Which kernels a program needs: kinds of steps by element type, and the places of its instruction lists.
struct kernel_needs {
  static constexpr std::size_t kinds = graph::step_kinds;
  static constexpr std::size_t types = 7;
  static constexpr std::size_t max_codes = 256;

  bool needed[kinds * types]{};
  std::size_t code_count = 0;
  std::size_t word_count = 0;
  graph::code_span codes[max_codes]{};
  signed char combines[max_codes]{};  ///< by list: see graph::combined_kind
};

constexpr std::size_t kernel_place(graph::step_kind kind, dtype type) {
  return static_cast<std::size_t>(kind) * kernel_needs::types + static_cast<std::size_t>(type);
}

constexpr kernel_needs needs_of(const graph::program& p) {
  kernel_needs needs;
  for (const graph::step& s : p.steps)
    if (!graph::is_control(s.kind)) needs.needed[kernel_place(s.kind, graph::kernel_type(p, s))] = true;
  needs.code_count = p.codes.size();
  needs.word_count = p.words.size();
  for (std::size_t i = 0; i < p.codes.size(); ++i) {
    needs.codes[i] = p.codes[i];
    needs.combines[i] = static_cast<signed char>(graph::combined_kind(p, static_cast<int>(i)));
  }
  return needs;
}

/// All that is asked of a program as a constant, from one look at it.
struct program_facts {
  analysis::summary summary{};
  kernel_needs kernels{};
  std::size_t argument_count = 0;
};

constexpr program_facts facts_of(const graph::program& p, const mesh_value& mesh) {
  return {summarise(p, mesh), needs_of(p), p.arguments.size()};
}

}  // namespace tessera::analysis
