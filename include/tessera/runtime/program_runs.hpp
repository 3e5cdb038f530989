// SPDX-License-Identifier: Apache-2.0
// Runs of a compiled program without its types: arguments' memory goes in, results' memory comes out.
#pragma once

#include <tessera/core/compiled.hpp>
#include <tessera/core/dtype.hpp>
#include <tessera/graph/program.hpp>
#include <tessera/kernels/fused_call.hpp>
#include <tessera/runtime/step_function.hpp>
#include <tessera/runtime/storage.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#if defined(TESSERA_COMPILED)
#include <tessera/core/error.hpp>
#include <tessera/graph/pack.hpp>
#include <tessera/runtime/executor.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>
#endif

namespace tessera::runtime {

/// A program as constants: its packed words, the mesh, a kernel for each instruction list, and where to find the
/// function of a kind of step on a type of elements.
struct compiled_program {
  std::span<const std::int64_t> words;
  mesh_value mesh;
  std::span<const kernels::fused_function> fused;
  step_function (*function)(graph::step_kind, dtype);
};

/// One argument of a program: the array of a tensor or variable, or a number. An array of one's own is replaced by a
/// copy before a step writes it while someone else holds it too.
struct argument {
  const storage_ptr* data = nullptr;
  storage_ptr* own = nullptr;
  const void* number = nullptr;
  dtype type = dtype::f32;  ///< of a number
};

/// One argument of a step function: a tensor of this type, an object with `count` variables, or a number.
struct step_argument {
  std::string_view names = {};  ///< the type of a tensor, or the paths of the variables, a line each
  const void* object = nullptr;
  std::size_t bytes = 0;
  std::size_t count = 0;
};

/// Raises value_error: a compiled step is passed a module for which nn::eval was called outside.
[[noreturn]] void report_evaluates();

/// Executors of one program. A run takes one that is not running and gives it back, so calls from several threads each
/// have an arena.
class program_runs {
 public:
  explicit program_runs(const compiled_program& program);
  ~program_runs();
  program_runs(const program_runs&) = delete;
  program_runs& operator=(const program_runs&) = delete;

  /// One run. `results` receive the memory of those results that take over no argument's. After the first runs nothing
  /// is allocated. An argument without an array raises value_error, and so does an object passed twice, or with a part
  /// of it, of which the step writes a variable.
  void run(std::span<const argument> arguments, std::span<const step_argument> objects, std::span<storage_ptr> results);

 private:
  struct pool;
  pool* pool_;
};

#if defined(TESSERA_COMPILED)

TESSERA_COMPILED void report_evaluates() {
  throw value_error(
      "jit: a module evaluates since nn::eval, which a compiled step cannot see; call nn::eval in the step, "
      "or pass nn::eval_mode(model)");
}

/// An executor with what its calls need.
struct program_slot {
  executor program;
  std::vector<char> written;  ///< by argument: whether a step writes it
  std::vector<storage*> arguments{};
  std::vector<storage*> results{};
  std::vector<storage_ptr> numbers{};            ///< memory for arguments that are plain numbers
  std::vector<std::vector<storage_ptr>> kept{};  ///< for each result, storages that were handed out

  explicit program_slot(const compiled_program& c) : program_slot(make(c)) {}
  explicit program_slot(executor of) : program(std::move(of)), written(written_arguments(program.program())) {
    arguments.resize(program.program().arguments.size());
    numbers.resize(arguments.size());
    results.resize(program.program().results.size());
    kept.resize(results.size());
  }

  static executor make(const compiled_program& c) {
    graph::program p = graph::unpack_program(c.words);
    std::vector<step_function> functions;
    for (const graph::step& s : p.steps) functions.push_back(c.function(s.kind, graph::kernel_type(p, s)));
    return executor(std::move(p), c.mesh, std::move(functions), {c.fused.begin(), c.fused.end()});
  }

  static std::vector<char> written_arguments(const graph::program& p) {
    std::vector<char> written(p.arguments.size(), 0);
    for (const graph::interface_value& r : p.results)
      if (r.alias >= 0) written[static_cast<std::size_t>(r.alias)] = 1;
    return written;
  }

  /// Storage for result `i`: one handed out earlier that nobody holds any more, or a new one.
  const storage_ptr& result_storage(std::size_t i, const aval& type, const mesh_value& mesh) {
    for (const storage_ptr& candidate : kept[i])
      if (candidate.unique()) return candidate;
    kept[i].push_back(make_storage(type, mesh));
    return kept[i].back();
  }

  bool writes(std::size_t first, std::size_t count) const {
    return std::find(written.begin() + static_cast<std::ptrdiff_t>(first),
                     written.begin() + static_cast<std::ptrdiff_t>(first + count),
                     1) != written.begin() + static_cast<std::ptrdiff_t>(first + count);
  }

  /// One object, or an object and a part of it, may be passed twice to a step that only reads it.
  void check_distinct(std::span<const step_argument> objects) const {
    std::size_t first_of_i = 0;
    for (std::size_t i = 0; i < objects.size(); first_of_i += objects[i++].count) {
      const auto* begin = static_cast<const std::byte*>(objects[i].object);
      std::size_t first_of_j = 0;
      for (std::size_t j = 0; j < i; first_of_j += objects[j++].count) {
        const auto* other = static_cast<const std::byte*>(objects[j].object);
        if (begin == nullptr || other == nullptr || !std::less<>{}(begin, other + objects[j].bytes) ||
            !std::less<>{}(other, begin + objects[i].bytes))
          continue;
        if (writes(first_of_i, objects[i].count) || writes(first_of_j, objects[j].count))
          throw value_error("jit: arguments " + std::to_string(j + 1) + " and " + std::to_string(i + 1) +
                            " of the step are one object, or one is part of the other, and the step writes it; pass it "
                            "once");
      }
    }
  }

  /// Storages that a step writes and someone else holds too are copied first, so that copies of a model keep their
  /// values.
  void separate(std::span<const argument> given) const {
    for (std::size_t i = 0; i < given.size(); ++i) {
      storage_ptr* own = given[i].own;
      if (written[i] && own != nullptr && *own && !own->unique()) *own = clone(**own);
    }
  }

  void collect(std::span<const argument> given, std::span<const step_argument> objects) {
    for (std::size_t i = 0; i < given.size(); ++i) {
      const argument& a = given[i];
      if (a.number != nullptr) {
        if (!numbers[i]) numbers[i] = make_storage(scalar_aval(a.type), mesh_value{});
        copy_from_host(*numbers[i], a.number);
      }
      const storage_ptr& data = a.number != nullptr ? numbers[i] : *a.data;
      if (!data) report_empty_argument(i, objects);
      arguments[i] = data.get();
    }
  }

  void run(std::span<const argument> given, std::span<const step_argument> objects, std::span<storage_ptr> made,
           const mesh_value& mesh) {
    check_distinct(objects);
    separate(given);
    collect(given, objects);
    const graph::program& p = program.program();
    std::size_t next = 0;
    for (std::size_t i = 0; i < p.results.size(); ++i) {
      if (p.results[i].alias >= 0) continue;
      made[next] = result_storage(i, p.results[i].type, mesh);
      results[i] = made[next++].get();
    }
    program.run(arguments, results);
  }

  /// `jit: argument 1 of the step, layers[2].kernel, holds no array`.
  [[noreturn]] static void report_empty_argument(std::size_t i, std::span<const step_argument> objects) {
    std::size_t place = 0;
    while (i >= objects[place].count) i -= objects[place++].count;
    std::string_view name = objects[place].names;
    for (; i > 0; --i) name.remove_prefix(name.find('\n') + 1);
    throw value_error("jit: argument " + std::to_string(place + 1) + " of the step, " +
                      std::string(name.substr(0, name.find('\n'))) + ", holds no array; initialise it first");
  }
};

struct program_runs::pool {
  compiled_program program;
  std::mutex mutex{};
  std::vector<std::unique_ptr<program_slot>> idle{};

  std::unique_ptr<program_slot> take() {
    {
      const std::lock_guard lock(mutex);
      if (!idle.empty()) {
        std::unique_ptr<program_slot> found = std::move(idle.back());
        idle.pop_back();
        return found;
      }
    }
    return std::make_unique<program_slot>(program);
  }
  void give_back(std::unique_ptr<program_slot> used) {
    const std::lock_guard lock(mutex);
    idle.push_back(std::move(used));
  }

  /// Gives the slot back when the call ends, whichever way.
  struct borrowed {
    pool& from;
    std::unique_ptr<program_slot> slot = from.take();
    ~borrowed() { from.give_back(std::move(slot)); }
  };
};

TESSERA_COMPILED program_runs::program_runs(const compiled_program& program) : pool_(new pool{program}) {}
TESSERA_COMPILED program_runs::~program_runs() { delete pool_; }

TESSERA_COMPILED void program_runs::run(std::span<const argument> arguments, std::span<const step_argument> objects,
                                        std::span<storage_ptr> results) {
  pool::borrowed borrowed{*pool_};
  borrowed.slot->run(arguments, objects, results, pool_->program.mesh);
}

#endif

}  // namespace tessera::runtime
