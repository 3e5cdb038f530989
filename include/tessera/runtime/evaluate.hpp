// SPDX-License-Identifier: Apache-2.0
// Lowering and running graphs that are built at run time, by the same passes and the same executor; elementwise steps
// are interpreted. For tests and tools: a step function compiled by `jit` is the fast way.
#pragma once

#include <tessera/analysis/summary.hpp>
#include <tessera/kernels/naive_fused.hpp>
#include <tessera/runtime/executor.hpp>
#include <tessera/transform/plan.hpp>

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace tessera::runtime {

/// Whether steps of a kind exist for elements of type T; uint8 stands for bool.
template <graph::step_kind Kind, class T>
constexpr bool runs_on() {
  using graph::step_kind;
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

template <class T>
executor::step_function function_of_kind(graph::step_kind kind) {
  executor::step_function found = nullptr;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto look = [&]<graph::step_kind Kind>() {
      if constexpr (runs_on<Kind, T>())
        if (kind == Kind) found = executor::function_for<Kind, T>();
    };
    (look.template operator()<static_cast<graph::step_kind>(I)>(), ...);
  }
  (std::make_index_sequence<graph::step_kinds>{});
  return found;
}

/// The function for a step of any kind and element type.
inline executor::step_function any_function(graph::step_kind kind, dtype type) {
  const auto pick = [&]<class T>(T) { return function_of_kind<T>(kind); };
  switch (type) {
    case dtype::f32: return pick(float{});
    case dtype::f64: return pick(double{});
    case dtype::i32: return pick(std::int32_t{});
    case dtype::u32: return pick(std::uint32_t{});
    default: return pick(std::uint8_t{});
  }
}

/// An executor for a graph built at run time, with its elementwise steps interpreted.
inline executor interpreter(const graph::graph& trace) {
  graph::program p = transform::lower(trace);
  std::vector<executor::step_function> functions;
  for (const graph::step& s : p.steps) {
    functions.push_back(any_function(s.kind, analysis::kernel_type(p, s)));
  }
  return executor(std::move(p), trace.mesh, std::move(functions), {});
}

/// Runs a trace with host arrays of each parameter's element type, row-major and whole; returns the results likewise.
/// Results that take over an argument come out like others.
inline std::vector<std::vector<std::byte>> evaluate(const graph::graph& trace,
                                                    std::span<const std::vector<std::byte>> inputs) {
  if (trace.fault.what != message::none) throw value_error(std::string(sentence(trace.fault.what)));
  executor run = interpreter(trace);
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
