// SPDX-License-Identifier: Apache-2.0
// Calling functions and models on arrays outside a compiled step: traced, planned and run when called.
#pragma once

#include <tessera/core/compiled.hpp>
#include <tessera/nn/mode.hpp>
#include <tessera/nn/module.hpp>
#include <tessera/runtime/jit.hpp>
#include <tessera/transform/trace.hpp>

#include <array>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(TESSERA_COMPILED)
#include <tessera/runtime/evaluate.hpp>

#include <memory>
#include <mutex>
#include <string>
#endif

namespace tessera {

namespace runtime {

/// Runs traces that are made at run time. A template, so that only programs that do so compile it.
template <class>
struct basic_trace_runner {
  /// Lowers a trace, or finds a program of the same trace that was run before, and runs it on these arguments as jit
  /// would.
  static void run(const graph::graph& trace, std::span<const argument> arguments,
                  std::span<const step_argument> objects, std::span<storage_ptr> results);
};

/// An argument as a function has it in a trace that is made now: a handle, or a copy of the module.
template <class Mesh, class Arg>
typename transform::traced_argument<Arg, Mesh>::type live_argument(Arg& arg) {
  if constexpr (transform::Viewed<Arg>) {
    auto copy = arg.model();
    if constexpr (std::remove_cvref_t<Arg>::evaluates) nn::eval(copy);
    else nn::train(copy);
    return copy;
  } else if constexpr (transform::Stateful<Arg>) {
    return arg;
  } else {
    return {};
  }
}

/// A call whose arguments fit.
template <class Mesh, class F, class... Args>
auto call_live(F& f, Args&... args) {
  graph::graph g;
  g.mesh = Mesh::value;
  std::tuple<typename transform::traced_argument<Args, Mesh>::type...> handles{live_argument<Mesh>(args)...};
  std::apply([&](auto&... each) { (transform::bind_argument<Mesh>(g, each), ...); }, handles);
  const auto run = [&]<std::size_t... I>(std::index_sequence<I...>)->decltype(auto) {
    return f(static_cast<transform::argument_of_step<Args, Mesh>>(std::get<I>(handles))...);
  };
  using result = std::remove_cvref_t<decltype(run(std::index_sequence_for<Args...>{}))>;
  const auto finish = [&](std::span<storage_ptr> results) {
    const std::size_t count = g.parameters.size();
    transform::collect_all_changes(g, handles);
    std::vector<argument> arguments(count);
    std::array<step_argument, sizeof...(Args)> objects;
    argument_list list{arguments.data(), objects.data(), true};
    (list.collect(args), ...);
    basic_trace_runner<std::void_t<Mesh>>::run(g, arguments, objects, results);
  };
  if constexpr (std::is_void_v<result>) {
    run(std::index_sequence_for<Args...>{});
    finish({});
  } else if constexpr (transform::result_refused<result>()) {
    return refused_tensor{};
  } else {
    transform::put_results(g, run(std::index_sequence_for<Args...>{}));
    using form = runtime_form<result, Mesh>;
    std::array<storage_ptr, form::count> results;
    finish(results);
    storage_ptr* next = results.data();
    return form::make(next);
  }
}

/// What `model(x)` of a bound module on arrays is.
template <class Bound, class... Args>
auto call_module(Bound& model, Args&... args);

}  // namespace runtime

/// `call(f, model, x)`: what `jit<f>(model, x)` gives, the same bits, of a function that need not be a constant: it is
/// traced, lowered and run now; elementwise steps are interpreted and programs kept for equal traces. For a look at
/// values, for tests and tools: a compiled step is the fast way. Arguments and results as of jit, but what f captures
/// is not seen. What f changes in a module is changed; a module that evaluates (nn::eval) does so. `call([](auto a) {
/// return ts::relu(a); }, x)` is how one operation is applied to an array. Errors: those of jit; what jit says while
/// compiling of a trace is a value_error here.
template <class F, class... Args>
auto call(F&& f, Args&&... args) {
  if constexpr (!transform::arguments_fit<std::remove_reference_t<Args>...>()) return runtime::refused_tensor{};
  else return runtime::call_live<transform::program_mesh<std::remove_reference_t<Args>...>>(f, args...);
}

template <class Bound, class... Args>
auto runtime::call_module(Bound& model, Args&... args) {
  return tessera::call([](auto& m, auto&... each) { return m(each...); }, model, args...);
}

#if defined(TESSERA_COMPILED)

namespace runtime {

/// Whether two traces are of one program.
inline bool same_trace(const graph::graph& a, const graph::graph& b) {
  const auto same_lists = [](const auto& x, const auto& y, auto same) {
    if (x.size() != y.size()) return false;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (!same(x[i], y[i])) return false;
    return true;
  };
  const auto equal = [](const auto& x, const auto& y) { return x == y; };
  const auto same_output = [](const graph::output& x, const graph::output& y) {
    return x.node == y.node && x.alias == y.alias;
  };
  text_buffer mesh_a, mesh_b;
  write_mesh(mesh_a, a.mesh);
  write_mesh(mesh_b, b.mesh);
  return mesh_a.view() == mesh_b.view() && same_lists(a.nodes, b.nodes, equal) &&
         same_lists(a.parameters, b.parameters, equal) && same_lists(a.outputs, b.outputs, same_output) &&
         same_lists(a.bodies, b.bodies, same_trace);
}

/// Programs of traces that were run.
template <class>
class basic_kept_programs {
 public:
  struct entry {
    graph::graph trace;
    std::unique_ptr<program_slot> slot;
  };

  /// A program of this trace that nobody runs, or a new one.
  entry take(const graph::graph& trace) {
    {
      const std::lock_guard lock(mutex_);
      for (entry& one : entries_) {
        if (!same_trace(one.trace, trace)) continue;
        entry found = std::move(one);
        one = std::move(entries_.back());
        entries_.pop_back();
        return found;
      }
    }
    return {trace, std::make_unique<program_slot>(interpreter(trace))};
  }
  void give_back(entry used) {
    const std::lock_guard lock(mutex_);
    if (entries_.size() < most) entries_.push_back(std::move(used));
  }

 private:
  static constexpr std::size_t most = 64;

  std::mutex mutex_{};
  std::vector<entry> entries_{};
};

template <class T>
void basic_trace_runner<T>::run(const graph::graph& trace, std::span<const argument> arguments,
                                std::span<const step_argument> objects, std::span<storage_ptr> results) {
  if (trace.fault.what != message::none) throw value_error(std::string(sentence(trace.fault.what)));
  static basic_kept_programs<T> kept;
  typename basic_kept_programs<T>::entry used = kept.take(trace);
  used.slot->run(arguments, objects, results, trace.mesh);
  kept.give_back(std::move(used));
}

#if defined(TESSERA_INSTANTIATE_KERNELS)
template struct basic_trace_runner<void>;
#endif

}  // namespace runtime

#endif

}  // namespace tessera
