// SPDX-License-Identifier: Apache-2.0
// Lowering and running graphs that are built at run time, by the same passes and the same executor; elementwise steps
// are interpreted. For tests and tools: a step function compiled by `jit` is the fast way.
#pragma once

#include <tessera/runtime/executor.hpp>
#include <tessera/runtime/step_functions.hpp>
#include <tessera/transform/plan.hpp>

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace tessera::runtime {

/// An executor for a graph built at run time, with its elementwise steps interpreted.
inline executor interpreter(const graph::graph& trace, transform::grouping groups = transform::grouping::by_rows,
                            const transform::product_limits& limits = {}) {
  graph::program p = transform::lower(trace, groups, limits);
  std::vector<step_function> functions;
  for (const graph::step& s : p.steps) functions.push_back(any_step_function(s.kind, graph::kernel_type(p, s)));
  return executor(std::move(p), trace.mesh, std::move(functions), {});
}

/// Runs a trace with host arrays of each parameter's element type, row-major and whole; returns the results likewise.
/// Results that take over an argument come out like others.
inline std::vector<std::vector<std::byte>> evaluate(const graph::graph& trace,
                                                    std::span<const std::vector<std::byte>> inputs,
                                                    transform::grouping groups = transform::grouping::by_rows,
                                                    const transform::product_limits& limits = {}) {
  if (trace.fault.what != message::none) throw value_error(std::string(sentence(trace.fault.what)));
  executor run = interpreter(trace, groups, limits);
  const graph::program& p = run.program();
  std::vector<storage_ptr> held;
  std::vector<storage*> arguments;
  std::vector<storage*> results;
  for (std::size_t i = 0; i < p.arguments.size(); ++i) {
    const std::int64_t wanted = p.arguments[i].type.bytes();
    if (static_cast<std::int64_t>(inputs[i].size()) != wanted)
      throw shape_error("evaluate: input " + std::to_string(i) + " has " + std::to_string(inputs[i].size()) +
                        " bytes; its type has " + std::to_string(wanted));
    held.push_back(make_storage(p.arguments[i].type, trace.mesh));
    copy_from_host(*held.back(), inputs[i].data());
    arguments.push_back(held.back().get());
  }
  for (const graph::interface_value& r : p.results) {
    if (r.alias < 0) held.push_back(make_storage(r.type, trace.mesh));
    results.push_back(r.alias < 0 ? held.back().get() : arguments[static_cast<std::size_t>(r.alias)]);
  }
  run.run(arguments, results);
  std::vector<std::vector<std::byte>> outputs;
  for (storage* r : results) {
    outputs.emplace_back(static_cast<std::size_t>(r->type.bytes()));
    copy_to_host(*r, outputs.back().data());
  }
  return outputs;
}

}  // namespace tessera::runtime
