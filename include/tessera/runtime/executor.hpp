// SPDX-License-Identifier: Apache-2.0
// Runs a program: one kernel call for each distinct shard of each step, over one arena, without allocating.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/graph/step_text.hpp>
#include <tessera/kernels/fused.hpp>
#include <tessera/kernels/gemm.hpp>
#include <tessera/kernels/gemm_rounded.hpp>
#include <tessera/kernels/instances.hpp>
#include <tessera/kernels/naive.hpp>
#include <tessera/kernels/interpreted.hpp>
#include <tessera/kernels/parallel.hpp>
#include <tessera/kernels/reduce.hpp>
#include <tessera/runtime/axis_steps.hpp>
#include <tessera/runtime/collectives.hpp>
#include <tessera/runtime/custom_steps.hpp>
#include <tessera/runtime/movement.hpp>
#include <tessera/runtime/products.hpp>
#include <tessera/runtime/program_memory.hpp>
#include <tessera/runtime/range_check.hpp>
#include <tessera/runtime/row_blocks.hpp>
#include <tessera/runtime/step_function.hpp>
#include <tessera/runtime/storage.hpp>
#include <tessera/runtime/trace.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace tessera::runtime {

/// A program with its kernels, arena and constants; everything a run needs is here from the start. One run at a time.
/// Written as a template, so that it can be compiled once for many files (see instances.hpp); `executor` is its only
/// use.
template <class>
class basic_executor {
 public:
  /// `functions` has one function a step, `fused` one kernel an instruction list of the program, or nothing: then fused
  /// steps are interpreted.
  basic_executor(graph::program p, const mesh_value& mesh, std::vector<step_function> functions,
                 std::vector<kernels::fused_function> fused)
      : program_(std::move(p)),
        mesh_(mesh),
        functions_(std::move(functions)),
        fused_(std::move(fused)),
        memory_(program_, mesh) {
    std::int64_t most = 1;
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const graph::step_range range = graph::joined_steps(program_, static_cast<int>(i));
      most = std::max(most, devices_in(program_.steps[i].varying, mesh_) * (1 + range.last - range.first));
    }
    calls_.resize(static_cast<std::size_t>(most));
    kernel_runs_.assign(program_.steps.size(), 0);
    group_at_.resize(program_.steps.size(), -1);
    for (std::size_t g = 0; g < program_.groups.size(); ++g)
      group_at_[static_cast<std::size_t>(program_.groups[g].first)] = static_cast<int>(g);
    name_steps();
  }

  const graph::program& program() const { return program_; }

  /// All bytes of the arena: that of device 0, of device 1, ...
  std::span<std::byte> arena() { return memory_.arena(); }
  std::int64_t arena_stride() const { return memory_.arena_stride(); }

  /// All bytes that wait in host memory: those of device 0, of device 1, ...
  std::span<std::byte> host_arena() { return memory_.host_arena(); }
  std::int64_t host_stride() const { return memory_.host_stride(); }

  /// Kernel calls of each step in the last run: one a distinct shard and trip, or one a collective and trip.
  std::span<const std::int64_t> kernel_runs() const { return kernel_runs_; }

  /// Runs all steps. `arguments` and `results` hold the memory in the program's order. A label out of range raises
  /// index_error before anything of an argument is overwritten.
  void run(std::span<storage* const> arguments, std::span<storage* const> results) {
    memory_.set_bases(program_, arguments, results);
    std::fill(kernel_runs_.begin(), kernel_runs_.end(), 0);
    run_steps(0, program_.steps.size());
  }

  /// The function that runs steps of a kind on elements of type T. Naming it is what compiles the kernel, so a program
  /// compiles only the kernels it uses.
  template <graph::step_kind Kind, class T>
  static constexpr step_function function_for() {
    using graph::step_kind;
    if constexpr (Kind == step_kind::fused) return {&basic_executor::run_fused, &basic_executor::run_fused_block};
    else if constexpr (graph::is_copy(Kind)) return {&basic_executor::run_copy};
    else if constexpr (Kind == step_kind::dot) return {&basic_executor::template run_dot<T>, dot_on_rows<T>()};
    else if constexpr (Kind == step_kind::reduce)
      return {&basic_executor::template run_reduce<T>, &basic_executor::template run_block<Kind, T>};
    else if constexpr (Kind == step_kind::cumulative) return {&basic_executor::template run_cumulative<T>};
    else if constexpr (Kind == step_kind::recurrence) return {&basic_executor::template run_recurrence<T>};
    else if constexpr (Kind == step_kind::custom) return {&basic_executor::run_custom};
    else if constexpr (Kind == step_kind::argsort) return {&basic_executor::template run_argsort<T>};
    else if constexpr (Kind == step_kind::check_range) return {&basic_executor::template run_check<T>};
    else if constexpr (graph::is_movement(Kind)) return {&basic_executor::template run_movement<Kind, T>};
    else if constexpr (graph::is_collective(Kind)) return {&basic_executor::template run_collective<T>};
    else return {&basic_executor::template run_rows<Kind, T>, &basic_executor::template run_block<Kind, T>};
  }

 private:
  template <class, class>
  friend struct mover;
  template <class>
  friend struct row_runner;
  template <class>
  friend struct seen_columns;
  template <class, class>
  friend struct multiplier;
  template <class>
  friend struct group_runner;
  template <class, class>
  friend struct axis_runner;
  template <class, class>
  friend struct range_checker;
  template <class>
  friend struct custom_runner;
  template <class, class>
  friend struct collective_runner;

  void run_steps(std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const graph::step& s = program_.steps[i];
      if (graph::is_control(s.kind)) {
        run_control(s, i + 1);
        i += static_cast<std::size_t>(graph::steps_inside(s));
        continue;
      }
      if (group_at_[i] >= 0) {
        const graph::row_group& group = program_.groups[static_cast<std::size_t>(group_at_[i])];
        if (trace_ != nullptr) run_traced(i, [&] { run_group(group); });
        else run_group(group);
        i += static_cast<std::size_t>(group.count - 1);
        continue;
      }
      if (s.part != graph::product_part::none) {
        kernel_runs_[i] += shards_of(s);
        continue;
      }
      runs_of_step_ = 0;
      if (trace_ != nullptr) run_traced(i, [&] { (this->*functions_[i].whole)(s); });
      else (this->*functions_[i].whole)(s);
      kernel_runs_[i] += runs_of_step_;
    }
  }

  /// Runs a step or the group that starts with it, and notes when on the rows of the devices and threads that take
  /// part.
  template <class F>
  void run_traced(std::size_t i, const F& run) {
    const graph::step& s = program_.steps[i];
    const std::int64_t begin = trace_->now();
    {
      const traced_work watch(*trace_, trace_names_[i]);
      run();
    }
    const std::int64_t end = trace_->now();
    const axis_set taking_part = graph::is_collective(s.kind) ? set_of(s.axes) : axis_set{0};
    for (std::int64_t shard = 0; shard < devices_in(s.varying | taking_part, mesh_); ++shard)
      trace_->add(trace_names_[i], tracer::row::device, device_of_shard(shard, s.varying | taking_part, mesh_), begin,
                  end);
  }

  /// What runs as one, a row group or a product with its parts, has the names of all its steps.
  void name_steps() {
    if (trace_ == nullptr) return;
    for (int i = 0; i < static_cast<int>(program_.steps.size()); ++i) {
      graph::step_range range = graph::joined_steps(program_, i);
      if (const int group = group_at_[static_cast<std::size_t>(i)]; group >= 0)
        range = {i, i + program_.groups[static_cast<std::size_t>(group)].count - 1};
      text_buffer name;
      for (int k = range.first; k <= range.last; ++k) {
        if (k > range.first) name << " + ";
        graph::write_step(name, program_, k);
      }
      trace_names_.push_back(trace_->number_of(name.view()));
    }
  }

  void run_group(const graph::row_group& group) {
    const std::int64_t shards = shards_of(program_.steps[static_cast<std::size_t>(group.first)]);
    for (int i = group.first; i < group.first + group.count; ++i) kernel_runs_[static_cast<std::size_t>(i)] += shards;
    group_runner<basic_executor>{*this, group, shards}();
  }

  template <graph::step_kind Kind, class T>
  void run_block(const graph::step& s, row_block& rows) const {
    row_runner<basic_executor>{*this, s, rows}.template run<Kind, T>();
  }
  void run_fused_block(const graph::step& s, row_block& rows) const {
    run_block<graph::step_kind::fused, float>(s, rows);
  }
  template <class T>
  static constexpr auto dot_on_rows() {
    if constexpr (std::is_floating_point_v<T>) return &basic_executor::template run_block<graph::step_kind::dot, T>;
    else return nullptr;
  }

  /// Runs the steps of a control step, which start at `first`, as often as it says.
  void run_control(const graph::step& s, std::size_t first) {
    const std::size_t second = first + static_cast<std::size_t>(s.sizes[graph::first_steps]);
    const std::size_t last = second + static_cast<std::size_t>(s.sizes[graph::second_steps]);
    switch (s.kind) {
      case graph::step_kind::scan:
        for (std::int64_t i = 0; i < s.sizes[graph::trips]; ++i) {
          start_trip(s, s.sizes[graph::backwards] != 0 ? s.sizes[graph::trips] - 1 - i : i);
          run_steps(first, last);
        }
        return;
      case graph::step_kind::while_loop:
        for (std::int64_t i = 0;; ++i) {
          start_trip(s, i);
          run_steps(first, second);
          if (!chosen(s)) return;
          run_steps(second, last);
        }
      default:
        if (chosen(s)) run_steps(first, second);
        else run_steps(second, last);
    }
  }

  void start_trip(const graph::step& s, std::int64_t trip) {
    memory_.set_windows(program_, s.sizes[graph::loop_number], trip);
    if (const std::int64_t b = s.sizes[graph::trip_buffer]; b >= 0) {
      const auto number = static_cast<std::int32_t>(trip);
      std::memcpy(memory_.block_of(static_cast<int>(b), 0), &number, sizeof number);
    }
  }

  bool chosen(const graph::step& s) const {
    bool choice = false;
    std::memcpy(&choice, memory_.block_of(static_cast<int>(s.sizes[graph::choice_buffer]), 0), sizeof choice);
    return choice;
  }

  /// Elements up to which a step is not worth a second thread.
  static constexpr std::int64_t small = 16384;
  static constexpr std::int64_t fused_chunk = 16384;

  /// The block of the buffer behind access `a` on a device.
  std::byte* block(int a, std::int64_t device) const {
    return memory_.block_of(program_.accesses[static_cast<std::size_t>(a)].buffer, device);
  }
  dtype type_of(int a) const {
    return program_.buffers[static_cast<std::size_t>(program_.accesses[static_cast<std::size_t>(a)].buffer)].type;
  }

  std::int64_t shards_of(const graph::step& s) const { return devices_in(s.varying, mesh_); }
  std::int64_t device(const graph::step& s, std::int64_t shard) const {
    return device_of_shard(shard, s.varying, mesh_);
  }

  /// Calls f(device) once for every distinct shard of a step, and counts the calls.
  template <class F>
  void for_each_shard(const graph::step& s, bool parallel, F&& f) {
    const std::int64_t shards = shards_of(s);
    runs_of_step_ += shards;
    kernels::parallel_for(shards, parallel, [&](std::int64_t i) { f(device(s, i)); });
  }

  /// Where a device starts to read or write, in elements, behind the start of its block.
  std::int64_t first_element(const graph::access& a, std::int64_t device) const {
    return a.offset + (a.slice_axes == 0 ? 0 : block_index(device, a.slice_axes, mesh_) * a.slice_stride);
  }

  void prepare_call(const graph::step& s, std::int64_t device, kernels::fused_call& call) const {
    call.rank = s.rank;
    call.extents = s.sizes;
    for (int i = 0; i < s.sources + s.results; ++i) {
      const graph::access& a = program_.accesses[static_cast<std::size_t>(s.first + i)];
      call.strides[i] = a.strides;
      call.base[i] = first_element(a, device);
      if (a.buffer >= 0) call.data[i] = block(s.first + i, device) + call.base[i] * info(type_of(s.first + i)).size;
    }
  }

  void run_fused(const graph::step& s) {
    const std::int64_t shards = shards_of(s);
    std::size_t call = 0;
    for_each_shard(s, false, [&](std::int64_t d) { prepare_call(s, d, calls_[call++]); });
    const std::int64_t rows = calls_[0].rows();
    const std::int64_t columns = calls_[0].columns();
    if (rows == 0 || columns == 0) return;
    if (fused_.empty()) return interpret(s, shards);
    const kernels::fused_function kernel = fused_[static_cast<std::size_t>(s.code)];
    const bool wide = columns >= fused_chunk;
    const std::int64_t rows_a_task = wide ? 1 : std::min(rows, (fused_chunk + columns - 1) / columns);
    const std::int64_t columns_a_task = wide ? fused_chunk : columns;
    const std::int64_t row_tasks = (rows + rows_a_task - 1) / rows_a_task;
    const std::int64_t column_tasks = (columns + columns_a_task - 1) / columns_a_task;
    kernels::parallel_for(shards * row_tasks * column_tasks, shards * rows * columns > small, [&](std::int64_t task) {
      const std::int64_t column = task % column_tasks * columns_a_task;
      const std::int64_t row = task / column_tasks % row_tasks * rows_a_task;
      kernel(calls_[static_cast<std::size_t>(task / column_tasks / row_tasks)],
             {row, std::min(row + rows_a_task, rows), column, std::min(column + columns_a_task, columns)});
    });
  }

  std::span<const graph::word> words_of(const graph::step& s) const {
    const graph::code_span span = program_.codes[static_cast<std::size_t>(s.code)];
    return {program_.words.data() + span.first, static_cast<std::size_t>(span.count)};
  }

  void interpret(const graph::step& s, std::int64_t shards) {
    const std::span<const graph::word> words = words_of(s);
    for (std::int64_t i = 0; i < shards; ++i)
      kernels::naive::fused<kernels::interpreted_functions>(words, calls_[static_cast<std::size_t>(i)]);
  }

  template <class T>
  void run_dot(const graph::step& s) {
    multiplier<basic_executor, T>(*this, s).run();
  }

  template <class T>
  void run_reduce(const graph::step& s) {
    const std::int64_t size = s.sizes[1] * s.sizes[2] * s.sizes[3];
    for_each_shard(s, shards_of(s) * size > small, [&](std::int64_t d) {
      kernels::reduce(static_cast<kernels::reduce_kind>(s.sizes[0]), reinterpret_cast<const T*>(block(s.first, d)),
                      reinterpret_cast<compute_t<T>*>(block(s.first + 1, d)), s.sizes[1], s.sizes[2], s.sizes[3],
                      size > small);
    });
  }

  template <class T>
  void run_cumulative(const graph::step& s) {
    axis_runner<basic_executor, T>{*this, s}.cumulative();
  }

  template <class T>
  void run_recurrence(const graph::step& s) {
    axis_runner<basic_executor, T>{*this, s}.recurrence();
  }

  template <class T>
  void run_argsort(const graph::step& s) {
    axis_runner<basic_executor, T>{*this, s}.argsort();
  }

  template <graph::step_kind Kind, class T>
  void run_rows(const graph::step& s) {
    axis_runner<basic_executor, T>{*this, s}.template rows<Kind>();
  }

  void run_custom(const graph::step& s) { custom_runner<basic_executor>{*this, s}(); }

  template <graph::step_kind Kind, class T>
  void run_movement(const graph::step& s) {
    mover<basic_executor, T>{*this, s}.template run<Kind>();
  }

  template <class T>
  void run_check(const graph::step& s) {
    range_checker<basic_executor, T>{*this, s}();
  }

  void run_copy(const graph::step& s) {
    const std::int64_t bytes =
        program_.buffers[static_cast<std::size_t>(program_.accesses[static_cast<std::size_t>(s.first)].buffer)].bytes;
    for_each_shard(s, false, [&](std::int64_t d) {
      std::memcpy(block(s.first + 1, d), block(s.first, d), static_cast<std::size_t>(bytes));
    });
  }

  template <class T>
  void run_collective(const graph::step& s) {
    collective_runner<basic_executor, T>{*this, s}();
  }

  graph::program program_;
  mesh_value mesh_;
  std::vector<step_function> functions_;
  std::vector<kernels::fused_function> fused_;
  program_memory memory_;
  std::vector<int> group_at_;  ///< by step: the row group that starts with it, or -1
  std::vector<kernels::fused_call> calls_;
  std::vector<std::int64_t> kernel_runs_;
  std::int64_t runs_of_step_ = 0;  ///< of the step that is running
  tracer* trace_ = tracer::asked();
  std::vector<int> trace_names_;  ///< by step
};

using executor = basic_executor<void>;

}  // namespace tessera::runtime
