// SPDX-License-Identifier: Apache-2.0
// Runs of a compiled program without its types: arguments' memory goes in, results' memory comes out.
#pragma once

#include <tessera/core/compiled.hpp>
#include <tessera/core/dtype.hpp>
#include <tessera/graph/program.hpp>
#include <tessera/kernels/fused_call.hpp>
#include <tessera/runtime/storage.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#if defined(TESSERA_COMPILED)
#include <tessera/core/error.hpp>
#include <tessera/graph/pack.hpp>
#include <tessera/runtime/executor.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>
#endif

namespace tessera::runtime {

template <class>
class basic_executor;

/// What runs one step of a program.
using step_function = void (basic_executor<void>::*)(const graph::step&);

/// A program as constants: its packed words, the mesh, a kernel for each instruction list, and where to find the
/// function of a kind of step on a type of elements.
struct compiled_program {
  std::span<const std::int64_t> words;
  mesh_value mesh;
  std::span<const kernels::fused_function> fused;
  step_function (*function)(graph::step_kind, dtype);
};

/// One argument of a call: the array of a tensor or variable, or a number. An array of one's own is replaced by a copy
/// before a step writes it while someone else holds it too.
struct argument {
  const storage_ptr* data = nullptr;
  storage_ptr* own = nullptr;
  const void* number = nullptr;
  dtype type = dtype::f32;      ///< of a number
  std::string_view what = {};  ///< for messages
};

/// Executors of one program. A run takes one that is not running and gives it back, so calls from several threads each
/// have an arena.
class program_runs {
 public:
  explicit program_runs(const compiled_program& program);
  ~program_runs();
  program_runs(const program_runs&) = delete;
  program_runs& operator=(const program_runs&) = delete;

  /// One run. `results` receive the memory of those results that take over no argument's. After the first runs nothing
  /// is allocated. An argument without an array raises value_error.
  void run(std::span<const argument> arguments, std::span<storage_ptr> results);

 private:
  struct pool;
  pool* pool_;
};

#if defined(TESSERA_COMPILED)

/// An executor with what its calls need.
struct program_slot {
  executor program;
  std::vector<char> written;  ///< by argument: whether a step writes it
  std::vector<storage*> arguments{};
  std::vector<storage*> results{};
  std::vector<storage_ptr> numbers{};            ///< memory for arguments that are plain numbers
  std::vector<std::vector<storage_ptr>> kept{};  ///< for each result, storages that were handed out

  explicit program_slot(const compiled_program& c) : program(make(c)), written(written_arguments(program.program())) {
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

  /// Storages that a step writes and someone else holds too are copied first, so that copies of a model keep their
  /// values.
  void separate(std::span<const argument> given) const {
    for (std::size_t i = 0; i < given.size(); ++i) {
      storage_ptr* own = given[i].own;
      if (written[i] && own != nullptr && *own && !own->unique()) *own = clone(**own);
    }
  }

  void collect(std::span<const argument> given) {
    for (std::size_t i = 0; i < given.size(); ++i) {
      const argument& a = given[i];
      if (a.number != nullptr) {
        if (!numbers[i]) numbers[i] = make_storage(scalar_aval(a.type), mesh_value{});
        copy_from_host(*numbers[i], a.number);
      }
      const storage_ptr& data = a.number != nullptr ? numbers[i] : *a.data;
      if (!data)
        throw value_error("jit: argument " + std::to_string(i) + " (" + std::string(a.what) +
                          ") holds no array; initialise it first");
      arguments[i] = data.get();
    }
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

TESSERA_COMPILED void program_runs::run(std::span<const argument> arguments, std::span<storage_ptr> results) {
  pool::borrowed borrowed{*pool_};
  program_slot& slot = *borrowed.slot;
  slot.separate(arguments);
  slot.collect(arguments);
  const graph::program& p = slot.program.program();
  std::size_t next = 0;
  for (std::size_t i = 0; i < p.results.size(); ++i) {
    if (p.results[i].alias >= 0) continue;
    results[next] = slot.result_storage(i, p.results[i].type, pool_->program.mesh);
    slot.results[i] = results[next++].get();
  }
  slot.program.run(slot.arguments, slot.results);
}

#endif

}  // namespace tessera::runtime
