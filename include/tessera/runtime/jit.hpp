// SPDX-License-Identifier: Apache-2.0
// Calling a step function: its arguments' memory goes in, its program runs, tensors come out.
#pragma once

#include <tessera/analysis/lowered.hpp>
#include <tessera/graph/paths.hpp>
#include <tessera/runtime/executor.hpp>
#include <tessera/runtime/instances.hpp>
#include <tessera/runtime/tensor.hpp>

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tessera {

namespace runtime {

/// A program from its words. Not constexpr: compilers would run it once more while they compile.
inline graph::program decode(std::span<const std::int64_t> words) { return graph::unpack_program(words); }

/// Instruction list number I of a program.
template <class Program, std::size_t I>
constexpr auto code_words() {
  constexpr graph::code_span span = Program::kernels().codes[I];
  std::array<int, static_cast<std::size_t>(span.count)> words{};
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = Program::instruction_word(static_cast<std::size_t>(span.first) + i);
  return words;
}

/// One kernel an instruction list.
template <class Program>
std::vector<kernels::fused_function> fused_functions() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return std::vector<kernels::fused_function>{&kernels::fused_kernel<code_words<Program, I>()>::run...};
  }
  (std::make_index_sequence<Program::kernels().code_count>{});
}

/// The function of each step; only those that some step needs are compiled.
template <class Program>
std::vector<executor::step_function> step_functions(const graph::program& p) {
  using needs = analysis::kernel_needs;
  executor::step_function table[needs::kinds * needs::types]{};
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto fill = [&]<std::size_t Place>(std::integral_constant<std::size_t, Place>) {
      constexpr auto kind = static_cast<graph::step_kind>(Place / needs::types);
      constexpr auto type = static_cast<dtype>(Place % needs::types);
      if constexpr (Program::kernels().needed[Place]) table[Place] = executor::function_for<kind, storage_t<type>>();
    };
    (fill(std::integral_constant<std::size_t, I>{}), ...);
  }
  (std::make_index_sequence<needs::kinds * needs::types>{});
  std::vector<executor::step_function> functions;
  for (const graph::step& s : p.steps)
    functions.push_back(table[analysis::kernel_place(s.kind, analysis::kernel_type(p, s))]);
  return functions;
}

/// Which arguments a program writes.
inline std::vector<char> written_arguments(const graph::program& p) {
  std::vector<char> written(p.arguments.size(), 0);
  for (const graph::interface_value& r : p.results)
    if (r.alias >= 0) written[static_cast<std::size_t>(r.alias)] = 1;
  return written;
}

/// Executors of one program that are not running; a run takes one and gives it back, so calls from several threads each
/// have an arena.
template <class Program>
class executor_pool {
 public:
  struct slot {
    executor program;
    std::vector<char> written;  ///< by argument
    std::vector<storage*> arguments{};
    std::vector<storage*> results{};
    std::vector<storage_ptr> numbers{};            ///< memory for arguments that are plain numbers
    std::vector<std::vector<storage_ptr>> kept{};  ///< for each result, storages that were handed out
    std::vector<storage_ptr> held{};               ///< of the running call
  };

  std::unique_ptr<slot> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<slot> found = std::move(idle_.back());
        idle_.pop_back();
        return found;
      }
    }
    const graph::program p = decode(Program::program_words::words);
    auto made = std::make_unique<slot>(
        slot{executor(p, Program::mesh_type::value, step_functions<Program>(p), fused_functions<Program>()),
             written_arguments(p)});
    made->arguments.resize(made->program.program().arguments.size());
    made->numbers.resize(made->arguments.size());
    made->results.resize(made->program.program().results.size());
    made->kept.resize(made->results.size());
    return made;
  }

  void give_back(std::unique_ptr<slot> used) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(used));
  }

  static executor_pool& instance() {
    static executor_pool pool;
    return pool;
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<slot>> idle_;
};

/// Storage for a result: one handed out earlier that nobody holds any more, or a new one.
inline storage_ptr result_storage(std::vector<storage_ptr>& kept, const aval& type, const mesh_value& mesh) {
  for (const storage_ptr& candidate : kept)
    if (candidate.unique()) return candidate;
  kept.push_back(make_storage(type, mesh));
  return kept.back();
}

/// Gathers the memory of arguments in the order of the trace; keeps temporaries for numbers alive.
struct argument_collector {
  std::vector<storage*>& into;
  std::vector<storage_ptr>& numbers;
  std::size_t next = 0;
  int argument = 0;  ///< of the step, from 1

  template <class Arg>
  void add(const storage_ptr& data, const Arg& arg) {
    if (!data) missing(arg);
    into[next++] = data.get();
  }

  /// `jit: argument 1 of the step, layers[2].kernel, holds no array`.
  template <class Arg>
  [[noreturn]] void missing(const Arg& arg) const {
    std::string what;
    if constexpr (Tensor<Arg>) {
      what = type_text<Arg>();
    } else {
      visit_paths(arg, [&](const member_path& path, const auto& v) {
        if (what.empty() && !v.data) what = path.view();
      });
    }
    throw value_error("jit: argument " + std::to_string(argument) + " of the step, " + what +
                      ", holds no array; initialise it first");
  }

  template <class Arg>
  void collect(Arg& arg) {
    ++argument;
    if constexpr (Tensor<Arg>) {
      add(arg.data(), arg);
    } else if constexpr (Number<Arg>) {
      storage_ptr& data = numbers[next];
      if (!data) data = make_storage(scalar_aval(dtype_of<std::remove_const_t<Arg>>), mesh_value{});
      copy_from_host(*data, &arg);
      into[next++] = data.get();
    } else {
      visit_variables(arg, [&](auto& v) { add(v.data, arg); });
    }
  }
};

/// Where an argument with variables lies, and whether the step writes one of them.
struct object_place {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
  bool written = false;
};
template <class Arg>
object_place place_of(const Arg& arg, const std::vector<char>& written, std::size_t& next) {
  if constexpr (Tensor<Arg> || Number<Arg>) {
    ++next;
    return {};
  } else {
    const auto* begin = reinterpret_cast<const std::byte*>(&arg);
    object_place place{begin, begin + sizeof(Arg)};
    visit_variables(arg, [&](const auto&) { place.written = place.written || written[next++] != 0; });
    return place;
  }
}

/// One object, or an object and a part of it, may be passed twice to a step that only reads it.
template <class... Args>
void check_distinct(const std::vector<char>& written, const Args&... args) {
  if constexpr ((0 + ... + (!Tensor<Args> && !Number<Args> ? 1 : 0)) > 1) {
    std::size_t next = 0;
    const object_place places[] = {place_of(args, written, next)...};
    for (std::size_t i = 0; i < sizeof...(Args); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if ((places[i].written || places[j].written) && std::less<>{}(places[i].begin, places[j].end) &&
            std::less<>{}(places[j].begin, places[i].end))
          throw value_error("jit: arguments " + std::to_string(j + 1) + " and " + std::to_string(i + 1) +
                            " of the step are one object, or one is part of the other, and the step writes it; pass it "
                            "once");
  }
}

/// Storages that a step writes and someone else holds too are copied first, so that copies of a model keep their values.
template <class Arg>
void separate(Arg& arg, const std::vector<char>& written, std::size_t& next) {
  if constexpr (Tensor<Arg> || Number<Arg>) {
    ++next;
  } else {
    visit_variables(arg, [&](auto& v) {
      if constexpr (!std::is_const_v<std::remove_reference_t<decltype(v)>>) {
        if (written[next] && v.data && !v.data.unique()) v.data = clone(*v.data);
      }
      ++next;
    });
  }
}

/// The run-time form of a traced result: a tensor for an array, a tuple of forms for a tuple or pair.
template <class Result, class Mesh>
struct runtime_form;
template <aval Type, class Own, class Mesh>
struct runtime_form<expr<Type, Own>, Mesh> {
  static constexpr aval type = rebind(Type, Own::value, Mesh::value);

  template <std::size_t... D>
  static auto deduce(std::index_sequence<D...>)
      -> tensor<Type.type, shape<Type.dims[D].extent...>, spec_type<type, Mesh>, Mesh>;
  using tensor_type = decltype(deduce(std::make_index_sequence<static_cast<std::size_t>(Type.rank)>{}));

  static tensor_type make(const std::vector<storage_ptr>& results, std::size_t& next) {
    return tensor_type(results[next++]);
  }
};
template <class... Parts, class Mesh>
struct runtime_form<std::tuple<Parts...>, Mesh> {
  static auto make(const std::vector<storage_ptr>& results, std::size_t& next) {
    return std::tuple{runtime_form<std::remove_cvref_t<Parts>, Mesh>::make(results, next)...};
  }
};
template <class First, class Second, class Mesh>
struct runtime_form<std::pair<First, Second>, Mesh> {
  static auto make(const std::vector<storage_ptr>& results, std::size_t& next) {
    auto first = runtime_form<std::remove_cvref_t<First>, Mesh>::make(results, next);
    return std::pair{std::move(first), runtime_form<std::remove_cvref_t<Second>, Mesh>::make(results, next)};
  }
};

/// Gives the slot back when the call ends, whichever way.
template <class Program>
struct borrowed_slot {
  std::unique_ptr<typename executor_pool<Program>::slot> slot = executor_pool<Program>::instance().take();
  ~borrowed_slot() { executor_pool<Program>::instance().give_back(std::move(slot)); }
};

/// A part of a result that an error was reported about; it silences what a program asks of it.
struct refused_tensor {
  double item() const { return 0; }
  std::vector<double> to_vector() const { return {}; }
};
template <Poison Refused, class Mesh>
struct runtime_form<Refused, Mesh> {
  static refused_tensor make(const std::vector<storage_ptr>&, std::size_t&) { return {}; }
};

/// What stands for the result of a step in which an error was reported.
template <class Program>
auto refused_call() {
  using result = std::remove_cvref_t<typename Program::traced::result_type>;
  std::size_t next = 0;
  if constexpr (requires(std::vector<storage_ptr> none) {
                  runtime_form<result, typename Program::mesh_type>::make(none, next);
                })
    return runtime_form<result, typename Program::mesh_type>::make({}, next);
  else return refused_tensor{};
}

/// One call of a lowered program.
template <class Program, class... Args>
auto call(Args&... args) {
  borrowed_slot<Program> borrowed;
  auto& slot = *borrowed.slot;
  const graph::program& p = slot.program.program();
  check_distinct(slot.written, args...);
  std::size_t next_argument = 0;
  (separate(args, slot.written, next_argument), ...);
  argument_collector collector{slot.arguments, slot.numbers};
  (collector.collect(args), ...);
  slot.held.clear();
  for (std::size_t i = 0; i < p.results.size(); ++i) {
    const graph::interface_value& r = p.results[i];
    if (r.alias >= 0) continue;
    slot.held.push_back(result_storage(slot.kept[i], r.type, Program::mesh_type::value));
    slot.results[i] = slot.held.back().get();
  }
  slot.program.run(slot.arguments, slot.results);
  using result = std::remove_cvref_t<typename Program::traced::result_type>;
  if constexpr (!std::is_void_v<result>) {
    std::size_t next = 0;
    auto made = runtime_form<result, typename Program::mesh_type>::make(slot.held, next);
    slot.held.clear();
    return made;
  }
}

}  // namespace runtime

/// Converts from everything, less well than anything else does.
struct any_argument {
  template <class T>
  any_argument(T&&) {}
};

/// `jit<train_step>(model, optimizer, x, y)`: runs the step compiled for these types. Tensors and numbers are only
/// read; modules and optimizers are changed in place where the step assigns their variables. Returns what the step
/// returns, a tensor for each traced array. After the first calls nothing is allocated. An empty argument, or one
/// object passed twice of which the step writes a variable, raises value_error. Source: jax.jit with donated state.
template <const auto& F, class... Args>
auto jit(Args&&... args) {
  if constexpr (transform::arguments_fit<std::remove_reference_t<Args>...>()) {
    using mesh_type = transform::program_mesh<std::remove_reference_t<Args>...>;
    [[maybe_unused]] constexpr std::type_identity<decltype(F(
        std::declval<transform::argument_of_step<std::remove_reference_t<Args>, mesh_type>>()...))>
        result{};
  }
  using program = lowered<F, std::remove_reference_t<Args>...>;
  if constexpr (program::refused) return runtime::refused_call<program>();
  else return runtime::call<program>(args...);
}

/// A step that is a local variable is refused: C++ has no references to it as template arguments.
template <auto F>
auto jit(any_argument, any_argument = 0, any_argument = 0, any_argument = 0, any_argument = 0, any_argument = 0,
         any_argument = 0, any_argument = 0) {
  diagnose(report<message::jit_local, no_details<decltype(F)>>);
  return runtime::refused_tensor{};
}

}  // namespace tessera
