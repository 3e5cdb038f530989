// SPDX-License-Identifier: Apache-2.0
// Calling a step function: its arguments' memory goes in, its program runs, tensors come out.
#pragma once

#include <tessera/analysis/lowered.hpp>
#include <tessera/graph/paths.hpp>
#include <tessera/kernels/fused_line.hpp>
#include <tessera/runtime/program_runs.hpp>
#include <tessera/runtime/step_functions.hpp>
#include <tessera/runtime/tensor.hpp>

#include <array>
#include <span>
#include <string>
#include <tuple>
#include <utility>

namespace tessera {

namespace runtime {

/// Instruction list number I of a program.
template <class Program, std::size_t I>
constexpr auto code_words() {
  constexpr graph::code_span span = Program::kernels().codes[I];
  std::array<int, static_cast<std::size_t>(span.count)> words{};
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = Program::instruction_word(static_cast<std::size_t>(span.first) + i);
  return words;
}

/// The kernel of instruction list number I.
template <class Program, std::size_t I>
constexpr kernels::fused_function fused_function_of() {
  constexpr int combines = Program::kernels().combines[I];
  if constexpr (combines < 0) return &kernels::fused_kernel<code_words<Program, I>()>::run;
  else return &kernels::fused_line<code_words<Program, I>(), static_cast<kernels::reduce_kind>(combines)>::run;
}

/// One kernel an instruction list.
template <class Program>
std::span<const kernels::fused_function> fused_functions() {
  if constexpr (constexpr std::size_t count = Program::kernels().code_count; count == 0) {
    return {};
  } else {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      static constexpr kernels::fused_function functions[] = {fused_function_of<Program, I>()...};
      return std::span<const kernels::fused_function>(functions);
    }
    (std::make_index_sequence<count>{});
  }
}

#if defined(TESSERA_PRECOMPILED_KERNELS)

/// The function of any kind of step, from the library of kernels.
template <class Program>
inline constexpr auto step_function_of = &any_step_function;

#else

/// The function of a kind of step; only those that some step of the program needs are compiled.
template <class Program>
step_function step_function_of(graph::step_kind kind, dtype type) {
  using needs = analysis::kernel_needs;
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    step_function found;
    const auto look = [&]<std::size_t Place>(std::integral_constant<std::size_t, Place>) {
      constexpr auto of_kind = static_cast<graph::step_kind>(Place / needs::types);
      constexpr auto of_type = static_cast<dtype>(Place % needs::types);
      if constexpr (Program::kernels().needed[Place])
        if (kind == of_kind && type == of_type) found = executor::function_for<of_kind, storage_t<of_type>>();
    };
    (look(std::integral_constant<std::size_t, I>{}), ...);
    return found;
  }
  (std::make_index_sequence<needs::kinds * needs::types>{});
}

#endif

/// The executors of one program.
template <class Program>
program_runs& runs_of() {
  static program_runs runs({Program::program_words::words, Program::mesh_type::value, fused_functions<Program>(),
                            step_function_of<Program>});
  return runs;
}

/// The paths of an object's variables, `layers[2].kernel`, a line each, written while compiling: a program only looks
/// one up.
template <class Arg>
struct variable_paths {
  static constexpr std::size_t size = [] {
    std::size_t count = 0;
    const Arg object{};
    visit_paths(object, [&](const member_path& path, const auto&) { count += path.size() + 1; });
    return count;
  }();
  static constexpr std::array<char, size> chars = [] {
    std::array<char, size> text{};
    char* next = text.data();
    const Arg object{};
    visit_paths(object, [&](const member_path& path, const auto&) {
      for (const char c : path.view()) *next++ = c;
      *next++ = '\n';
    });
    return text;
  }();
};

/// Lists the arguments of a step, and the memory of their arrays in the order of the trace.
struct argument_list {
  argument* next;
  step_argument* object;
  bool sees_modes = false;  ///< whether the function that is called is told what nn::eval said

  void variable(storage_ptr& data) { *next++ = {.data = &data, .own = &data}; }
  void variable(const storage_ptr& data) { *next++ = {.data = &data}; }

  template <class Arg>
  void collect(Arg& arg) {
    const argument* first = next;
    if constexpr (transform::Viewed<Arg>) {
      const bool seen = std::exchange(sees_modes, true);
      collect(arg.model());
      sees_modes = seen;
      return;
    } else if constexpr (Tensor<Arg>) {
      *next++ = {.data = &arg.data()};
      *object = {.names = type_text<std::remove_const_t<Arg>>()};
    } else if constexpr (Number<Arg>) {
      *next++ = {.number = &arg, .type = dtype_of<std::remove_const_t<Arg>>};
    } else {
      visit_variables(arg, [this](auto& v) {
        if (v.handle.evaluates && !sees_modes) report_evaluates();
        variable(v.data);
      });
      constexpr auto& names = variable_paths<std::remove_const_t<Arg>>::chars;
      *object = {.names = {names.data(), names.size()}, .object = &arg, .bytes = sizeof(Arg)};
    }
    object->count = static_cast<std::size_t>(next - first);
    ++object;
  }
};

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

  static constexpr std::size_t count = 1;
  static tensor_type make(storage_ptr*& next) { return tensor_type(std::move(*next++)); }
};
template <class... Parts, class Mesh>
struct runtime_form<std::tuple<Parts...>, Mesh> {
  static constexpr std::size_t count = (std::size_t{0} + ... + runtime_form<std::remove_cvref_t<Parts>, Mesh>::count);
  static auto make(storage_ptr*& next) {
    return std::tuple{runtime_form<std::remove_cvref_t<Parts>, Mesh>::make(next)...};
  }
};
template <class First, class Second, class Mesh>
struct runtime_form<std::pair<First, Second>, Mesh> {
  using first_form = runtime_form<std::remove_cvref_t<First>, Mesh>;
  using second_form = runtime_form<std::remove_cvref_t<Second>, Mesh>;

  static constexpr std::size_t count = first_form::count + second_form::count;
  static auto make(storage_ptr*& next) {
    auto first = first_form::make(next);
    return std::pair{std::move(first), second_form::make(next)};
  }
};

/// A part of a result that an error was reported about; it silences what a program asks of it.
struct refused_tensor {
  double item() const { return 0; }
  std::vector<double> to_vector() const { return {}; }
};
template <Poison Refused, class Mesh>
struct runtime_form<Refused, Mesh> {
  static constexpr std::size_t count = 1;
  static refused_tensor make(storage_ptr*&) { return {}; }
};

/// What stands for the result of a step in which an error was reported.
template <class Program>
auto refused_call() {
  using result = std::remove_cvref_t<typename Program::traced::result_type>;
  if constexpr (requires(storage_ptr * next) { runtime_form<result, typename Program::mesh_type>::make(next); }) {
    using form = runtime_form<result, typename Program::mesh_type>;
    std::array<storage_ptr, form::count> none;
    storage_ptr* next = none.data();
    return form::make(next);
  } else {
    return refused_tensor{};
  }
}

/// One call of a lowered program.
template <class Program, class... Args>
auto call(Args&... args) {
  std::array<argument, Program::argument_count()> arguments;
  std::array<step_argument, sizeof...(Args)> objects;
  argument_list list{arguments.data(), objects.data()};
  (list.collect(args), ...);
  using result = std::remove_cvref_t<typename Program::traced::result_type>;
  if constexpr (std::is_void_v<result>) {
    runs_of<Program>().run(arguments, objects, {});
  } else {
    using form = runtime_form<result, typename Program::mesh_type>;
    std::array<storage_ptr, form::count> results;
    runs_of<Program>().run(arguments, objects, results);
    storage_ptr* next = results.data();
    return form::make(next);
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
