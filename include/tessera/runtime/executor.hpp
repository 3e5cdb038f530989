// SPDX-License-Identifier: Apache-2.0
// Runs a program: one kernel call for each distinct shard of each step, over one arena, without allocating.
#pragma once

#include <tessera/core/alignment.hpp>
#include <tessera/core/error.hpp>
#include <tessera/graph/program.hpp>
#include <tessera/graph/step_text.hpp>
#include <tessera/kernels/argsort.hpp>
#include <tessera/kernels/cumulative.hpp>
#include <tessera/kernels/custom.hpp>
#include <tessera/kernels/fused.hpp>
#include <tessera/kernels/gemm.hpp>
#include <tessera/kernels/gemm_rounded.hpp>
#include <tessera/kernels/instances.hpp>
#include <tessera/kernels/naive.hpp>
#include <tessera/kernels/interpreted.hpp>
#include <tessera/kernels/parallel.hpp>
#include <tessera/kernels/reduce.hpp>
#include <tessera/kernels/softmax.hpp>
#include <tessera/runtime/collectives.hpp>
#include <tessera/runtime/movement.hpp>
#include <tessera/runtime/products.hpp>
#include <tessera/runtime/row_blocks.hpp>
#include <tessera/runtime/step_function.hpp>
#include <tessera/runtime/storage.hpp>
#include <tessera/runtime/trace.hpp>

#include <algorithm>
#include <span>
#include <string>
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
        devices_(mesh.devices()) {
    stride_ = aligned(program_.temporary_bytes);
    arena_ = memory(stride_ * devices_);
    host_stride_ = aligned(program_.host_bytes);
    host_ = memory(host_stride_ * devices_);
    fill_constants();
    make_offsets();
    std::int64_t most = 1;
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const graph::step_range range = graph::joined_steps(program_, static_cast<int>(i));
      most = std::max(most, devices_in(program_.steps[i].varying, mesh_) * (1 + range.last - range.first));
    }
    calls_.resize(static_cast<std::size_t>(most));
    kernel_runs_.assign(program_.steps.size(), 0);
    bases_.resize(program_.buffers.size());
    group_at_.resize(program_.steps.size(), -1);
    for (std::size_t g = 0; g < program_.groups.size(); ++g)
      group_at_[static_cast<std::size_t>(program_.groups[g].first)] = static_cast<int>(g);
    make_windows();
    name_steps();
  }

  const graph::program& program() const { return program_; }

  /// All bytes of the arena: that of device 0, of device 1, ...
  std::span<std::byte> arena() { return {arena_.data(), static_cast<std::size_t>(arena_.size())}; }
  std::int64_t arena_stride() const { return stride_; }

  /// All bytes that wait in host memory: those of device 0, of device 1, ...
  std::span<std::byte> host_arena() { return {host_.data(), static_cast<std::size_t>(host_.size())}; }
  std::int64_t host_stride() const { return host_stride_; }

  /// Kernel calls of each step in the last run: one a distinct shard and trip, or one a collective and trip.
  std::span<const std::int64_t> kernel_runs() const { return kernel_runs_; }

  /// Runs all steps. `arguments` and `results` hold the memory in the program's order. A label out of range raises
  /// index_error before anything of an argument is overwritten.
  void run(std::span<storage* const> arguments, std::span<storage* const> results) {
    set_bases(arguments, results);
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
    for (int w : windows_[static_cast<std::size_t>(s.sizes[graph::loop_number])]) set_window(w, trip);
    if (const std::int64_t b = s.sizes[graph::trip_buffer]; b >= 0)
      store(block_of(static_cast<int>(b), 0), static_cast<std::int32_t>(trip));
  }

  bool chosen(const graph::step& s) const {
    bool choice = false;
    std::memcpy(&choice, block_of(static_cast<int>(s.sizes[graph::choice_buffer]), 0), sizeof choice);
    return choice;
  }

  /// Elements up to which a step is not worth a second thread.
  static constexpr std::int64_t small = 16384;
  static constexpr std::int64_t fused_chunk = 16384;

  void fill_constants() {
    constants_ = memory(static_cast<std::int64_t>(8 * std::max<std::size_t>(program_.constants.size(), 1)));
    for (const graph::buffer& b : program_.buffers) {
      if (b.where != graph::space::constant) continue;
      const double value = program_.constants[static_cast<std::size_t>(b.place)].value;
      std::byte* to = constants_.data() + 8 * b.place;
      switch (b.type) {
        case dtype::f32: store(to, static_cast<float>(value)); break;
        case dtype::f64: store(to, value); break;
        case dtype::i32: store(to, static_cast<std::int32_t>(value)); break;
        case dtype::u32: store(to, static_cast<std::uint32_t>(value)); break;
        case dtype::bf16: store(to, bfloat16(value)); break;
        case dtype::f16: store(to, float16(value)); break;
        default: store(to, value != 0); break;
      }
    }
  }
  template <class T>
  static void store(std::byte* to, T value) {
    std::memcpy(to, &value, sizeof value);
  }

  /// For each buffer and device, where its block lies behind the buffer's base: in shards of a storage, in the arena of
  /// the first device that has the block, or nowhere else than at the base.
  void make_offsets() {
    offsets_.resize(program_.buffers.size() * static_cast<std::size_t>(devices_));
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const graph::buffer& buffer = program_.buffers[b];
      for (std::int64_t d = 0; d < devices_; ++d) {
        const std::int64_t shard = shard_of_device(d, buffer.varying, mesh_);
        const graph::buffer& whole =
            program_.buffers[static_cast<std::size_t>(program_.whole_buffer(static_cast<int>(b)))];
        std::int64_t offset = 0;
        const bool on_host = whole.where == graph::space::host;
        if (on_host || whole.where == graph::space::temporary)
          offset = device_of_shard(shard, buffer.varying, mesh_) * (on_host ? host_stride_ : stride_) + whole.place;
        else if (whole.where != graph::space::constant) offset = shard * aligned(whole.bytes);
        offsets_[b * static_cast<std::size_t>(devices_) + static_cast<std::size_t>(d)] = offset;
      }
    }
  }

  void set_bases(std::span<storage* const> arguments, std::span<storage* const> results) {
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const graph::buffer& buffer = program_.buffers[b];
      const auto place = static_cast<std::size_t>(buffer.place);
      switch (buffer.where) {
        case graph::space::temporary: bases_[b] = arena_.data(); break;
        case graph::space::host: bases_[b] = host_.data(); break;
        case graph::space::constant: bases_[b] = constants_.data() + 8 * place; break;
        case graph::space::argument: bases_[b] = arguments[place]->bytes.data(); break;
        case graph::space::result: bases_[b] = results[place]->bytes.data(); break;
        case graph::space::rows:
        case graph::space::window:
        case graph::space::blocks: break;
      }
    }
    for (int w : still_) set_window(w, 0);
  }

  /// Windows by the loop whose trips move them, themselves or what they are part of; outer ones first.
  void make_windows() {
    const auto number = [&](int b) -> const graph::buffer& { return program_.buffers[static_cast<std::size_t>(b)]; };
    const auto depth = [&](int b) {
      int count = 0;
      for (; number(b).where == graph::space::window; b = static_cast<int>(number(b).place)) ++count;
      return count;
    };
    windows_.resize(static_cast<std::size_t>(program_.loops));
    for (int b = 0; b < static_cast<int>(program_.buffers.size()); ++b) {
      if (number(b).where != graph::space::window) continue;
      int moving = b;
      while (number(moving).where == graph::space::window && number(moving).loop < 0)
        moving = static_cast<int>(number(moving).place);
      const bool moves = number(moving).where == graph::space::window;
      (moves ? windows_[static_cast<std::size_t>(number(moving).loop)] : still_).push_back(b);
    }
    const auto outer_first = [&](std::vector<int>& list) {
      std::sort(list.begin(), list.end(),
                [&](int a, int b) { return std::pair(depth(a), a) < std::pair(depth(b), b); });
    };
    outer_first(still_);
    for (std::vector<int>& list : windows_) outer_first(list);
  }

  void set_window(int w, std::int64_t trip) {
    const graph::buffer& window = program_.buffers[static_cast<std::size_t>(w)];
    bases_[static_cast<std::size_t>(w)] =
        bases_[static_cast<std::size_t>(window.place)] + window.offset + (window.loop < 0 ? 0 : trip * window.stride);
  }

  /// The block of the buffer behind access `a` on a device.
  std::byte* block(int a, std::int64_t device) const {
    return block_of(program_.accesses[static_cast<std::size_t>(a)].buffer, device);
  }
  std::byte* block_of(int b, std::int64_t device) const {
    return bases_[static_cast<std::size_t>(b)] +
           offsets_[static_cast<std::size_t>(b) * static_cast<std::size_t>(devices_) +
                    static_cast<std::size_t>(device)];
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

  static kernels::axis_walk walk_of(const graph::step& s) {
    return {s.sizes[0], s.sizes[1], s.sizes[2], s.sizes[4] != 0};
  }

  /// Calls f(device, parallel) for every shard of a step along an axis.
  template <class F>
  void for_each_walk(const graph::step& s, F&& f) {
    const std::int64_t size = s.sizes[0] * s.sizes[1] * s.sizes[2];
    for_each_shard(s, shards_of(s) * size > small, [&](std::int64_t d) { f(d, size > small); });
  }

  template <class T>
  void run_cumulative(const graph::step& s) {
    for_each_walk(s, [&](std::int64_t d, bool parallel) {
      kernels::cumulative(static_cast<kernels::cumulative_kind>(s.sizes[3]), walk_of(s),
                          reinterpret_cast<const T*>(block(s.first, d)), reinterpret_cast<T*>(block(s.first + 1, d)),
                          parallel);
    });
  }

  template <class T>
  void run_recurrence(const graph::step& s) {
    for_each_walk(s, [&](std::int64_t d, bool parallel) {
      kernels::recurrence(walk_of(s), s.sizes[3] != 0, reinterpret_cast<const T*>(block(s.first, d)),
                          reinterpret_cast<const T*>(block(s.first + 1, d)),
                          reinterpret_cast<T*>(block(s.first + 2, d)), parallel);
    });
  }

  /// An operation from outside the library, on the blocks of each distinct shard.
  void run_custom(const graph::step& s) {
    const custom_function kernel = kernels::find_custom_operation(std::bit_cast<std::uint64_t>(s.sizes[0]));
    const auto block_of_access = [&](int a, std::int64_t device) {
      const graph::access& access = program_.accesses[static_cast<std::size_t>(a)];
      custom_block made{block(a, device), type_of(a), 0, access.strides};
      while (made.rank < max_rank && access.strides[made.rank] >= 0) ++made.rank;
      return made;
    };
    for_each_shard(s, shards_of(s) * s.flops > small, [&](std::int64_t d) {
      custom_block inputs[3];
      for (int i = 0; i < s.sources; ++i) inputs[i] = block_of_access(s.first + i, d);
      kernel({std::span(inputs, static_cast<std::size_t>(s.sources)), block_of_access(s.first + s.sources, d),
              s.flops > small});
    });
  }

  template <class T>
  void run_argsort(const graph::step& s) {
    for_each_walk(s, [&](std::int64_t d, bool parallel) {
      kernels::argsort({s.sizes[0], s.sizes[1], s.sizes[2], s.sizes[3], s.sizes[4] != 0},
                       reinterpret_cast<const T*>(block(s.first, d)),
                       reinterpret_cast<std::int32_t*>(block(s.first + 1, d)), parallel);
    });
  }

  template <graph::step_kind Kind, class T>
  void rows_kernel(const graph::step& s, std::int64_t d, bool parallel) const {
    using graph::step_kind;
    const auto* x = reinterpret_cast<const T*>(block(s.first, d));
    const auto* y = reinterpret_cast<const T*>(block(s.first + 1, d));
    auto* out = reinterpret_cast<T*>(block(s.first + s.sources, d));
    if constexpr (Kind == step_kind::softmax) kernels::softmax(x, out, s.sizes[0], s.sizes[1], parallel);
    else if constexpr (Kind == step_kind::log_softmax) kernels::log_softmax(x, out, s.sizes[0], s.sizes[1], parallel);
    else if constexpr (Kind == step_kind::softmax_grad)
      kernels::softmax_backward(x, y, out, s.sizes[0], s.sizes[1], parallel);
    else kernels::log_softmax_backward(x, y, out, s.sizes[0], s.sizes[1], parallel);
  }

  template <graph::step_kind Kind, class T>
  void run_rows(const graph::step& s) {
    const std::int64_t size = s.sizes[0] * s.sizes[1];
    for_each_shard(s, shards_of(s) * size > small, [&](std::int64_t d) { rows_kernel<Kind, T>(s, d, size > small); });
  }

  template <graph::step_kind Kind, class T>
  void run_movement(const graph::step& s) {
    mover<basic_executor, T>{*this, s}.template run<Kind>();
  }

  template <class T>
  void run_check(const graph::step& s) {
    for_each_shard(s, false, [&](std::int64_t d) {
      const auto* labels = reinterpret_cast<const T*>(block(s.first, d));
      const bool from_end = s.sizes[0] < 0;
      const std::int64_t bound = from_end ? -s.sizes[0] : s.sizes[0];
      const std::int64_t lowest = from_end && std::is_signed_v<T> ? -bound : 0;
      for (std::int64_t j = 0; j < s.sizes[1]; ++j)
        if (static_cast<std::int64_t>(labels[j]) < lowest || static_cast<std::int64_t>(labels[j]) >= bound)
          throw index_error((from_end ? "take or at: index " : "softmax_cross_entropy: label ") +
                            std::to_string(labels[j]) + " at position " + position(s, d, j) + " is outside [" +
                            std::to_string(lowest) + ", " + std::to_string(bound) + ")");
    });
  }

  /// The global position of element `j` of a device's block: `3` or `(3, 1)`.
  std::string position(const graph::step& s, std::int64_t device, std::int64_t j) const {
    const graph::access& a = program_.accesses[static_cast<std::size_t>(s.first)];
    std::string text;
    for (int d = s.rank - 1; d >= 0; --d) {
      const auto axes = static_cast<axis_list>(s.sizes[2 + d]);
      const std::int64_t at = block_index(device, axes, mesh_) * a.strides[d] + j % a.strides[d];
      j /= a.strides[d];
      text = std::to_string(at) + (text.empty() ? "" : ", ") + text;
    }
    return s.rank == 1 ? text : "(" + text + ")";
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
    ++runs_of_step_;
    for (int pair = 0; pair < s.results; ++pair) {
      const int from = s.first + pair;
      const int to = s.first + s.sources + pair;
      const auto& target =
          program_.buffers[static_cast<std::size_t>(program_.accesses[static_cast<std::size_t>(to)].buffer)];
      const auto source_block = [&](std::int64_t d) { return static_cast<const std::byte*>(block(from, d)); };
      const auto target_block = [&](std::int64_t d) { return block(to, d); };
      if (program_.buffers[static_cast<std::size_t>(program_.accesses[static_cast<std::size_t>(from)].buffer)].summed !=
          0) {
        copy_sums(from, to, target);
        continue;
      }
      const collective<T, decltype(source_block), decltype(target_block)> run{s, mesh_, target, source_block,
                                                                              target_block};
      run();
    }
  }

  /// An all-reduce whose operands were summed as they were made has only to be where its result belongs.
  void copy_sums(int from, int to, const graph::buffer& target) const {
    for (std::int64_t i = 0; i < devices_in(target.varying, mesh_); ++i) {
      const std::int64_t home = device_of_shard(i, target.varying, mesh_);
      if (block(to, home) != block(from, home))
        std::memcpy(block(to, home), block(from, home), static_cast<std::size_t>(target.bytes));
    }
  }

  graph::program program_;
  mesh_value mesh_;
  std::vector<step_function> functions_;
  std::vector<kernels::fused_function> fused_;
  std::int64_t devices_;
  std::int64_t stride_ = 0;
  std::int64_t host_stride_ = 0;
  memory arena_;
  memory host_;
  memory constants_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::byte*> bases_;
  std::vector<std::vector<int>> windows_;  ///< by loop
  std::vector<int> group_at_;              ///< by step: the row group that starts with it, or -1
  std::vector<int> still_;                 ///< windows that do not move
  std::vector<kernels::fused_call> calls_;
  std::vector<std::int64_t> kernel_runs_;
  std::int64_t runs_of_step_ = 0;  ///< of the step that is running
  tracer* trace_ = tracer::asked();
  std::vector<int> trace_names_;  ///< by step
};

using executor = basic_executor<void>;

}  // namespace tessera::runtime
