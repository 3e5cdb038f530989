// SPDX-License-Identifier: Apache-2.0
// Runs one step of a row group on a block of rows.
#pragma once

#include <tessera/core/alignment.hpp>
#include <tessera/graph/lines.hpp>
#include <tessera/graph/program.hpp>
#include <tessera/kernels/gemm.hpp>
#include <tessera/kernels/interpreted.hpp>
#include <tessera/kernels/reduce.hpp>
#include <tessera/kernels/softmax.hpp>
#include <tessera/runtime/step_function.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tessera::runtime {

/// Bytes of memory for a product that sums a^T b over rows where b has few columns, so that packing a would cost much:
/// it sums b^T a instead, until the batch is done. 0 for other steps.
inline std::int64_t turned_sum_bytes(const graph::program& p, const graph::step& s) {
  constexpr std::int64_t few = 128, most = std::int64_t{1} << 20;
  if (s.kind != graph::step_kind::dot || !s.sums_rows || s.sizes[4] == 0 || s.sizes[5] != 0) return 0;
  if (s.sizes[1] > few || s.sizes[0] < s.sizes[1]) return 0;
  const dtype type = p.buffers[static_cast<std::size_t>(p.accesses[static_cast<std::size_t>(s.first)].buffer)].type;
  const std::int64_t bytes = s.sizes[1] * (aligned(s.sizes[0] * info(type).size) + block_alignment);
  return bytes <= most ? bytes : 0;
}

/// One step of an executor on one block.
template <class Executor>
struct row_runner {
  const Executor& run_on;
  const graph::step& s;
  row_block& rows;

  template <graph::step_kind Kind, class T>
  void run() const {
    using graph::step_kind;
    if constexpr (Kind == step_kind::fused) fused();
    else if constexpr (Kind == step_kind::dot) dot<T>();
    else if constexpr (Kind == step_kind::reduce) reduce<T>();
    else normalise<Kind, T>();
  }

  /// Asks for what a product reads scattered, of which too little lies side by side for the processor to see it coming.
  void ask_ahead() const {
    const std::int64_t batch = s.sums_rows ? s.sizes[2] : s.sizes[0];
    const std::int64_t group = rows.first / batch, first = rows.first % batch;
    for (int place = 0; place < 2; ++place) {
      const graph::access& way = run_on.program_.accesses[static_cast<std::size_t>(s.first + place)];
      if (!graph::lies_scattered(way)) continue;
      const bool turned = s.sizes[4 + place] != 0;
      const bool by_rows = s.sums_rows ? turned == (place == 0) : place == 0;
      const std::int64_t lines = s.sizes[place == 0 ? (turned ? 2 : 0) : (turned ? 1 : 2)];
      const std::int64_t columns = s.sizes[place == 0 ? (turned ? 0 : 2) : (turned ? 2 : 1)];
      const std::int64_t size = info(run_on.type_of(s.first + place)).size;
      const std::byte* at = run_on.block(s.first + place, rows.device) + graph::first_of_matrix(way, group) * size;
      const std::int64_t from = by_rows ? first : 0, to = by_rows ? first + count() : first == 0 ? lines : 0;
      for (std::int64_t line = from; line < to; ++line)
        for (std::int64_t byte = 0; byte < columns * size; byte += 64)
          __builtin_prefetch(at + line * way.strides[graph::row_distance] * size + byte, 0, 2);
    }
  }

  /// Writes zeros, up to column `to`, where what a sum over rows reads has been left out.
  void put_zeros(std::int64_t to) const {
    const graph::program& p = run_on.program_;
    for (int a = s.first; a < s.first + s.sources; ++a) {
      const graph::buffer& b = p.buffers[static_cast<std::size_t>(p.accesses[static_cast<std::size_t>(a)].buffer)];
      const std::int64_t bytes = b.bytes / rows.group.rows, size = info(b.type).size;
      if (b.where != graph::space::rows || bytes != rows.group.columns * size) continue;
      for (std::int64_t row = rows.first; row < rows.last; ++row)
        std::fill(start(a) + row * bytes + rows.seen * size, start(a) + row * bytes + to * size, std::byte{0});
    }
  }

 private:
  template <class>
  friend struct row_runner;

  std::int64_t count() const { return rows.last - rows.first; }

  /// Where the array of access `a` starts, or would start if more than the block's rows existed.
  std::byte* start(int a) const {
    const graph::program& p = run_on.program_;
    const graph::buffer& b = p.buffers[static_cast<std::size_t>(p.accesses[static_cast<std::size_t>(a)].buffer)];
    if (b.where != graph::space::rows) return run_on.block(a, rows.device);
    const std::int64_t before = rows.base * (b.bytes / rows.group.rows);
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(rows.memory + b.place * rows.room) -
                                        static_cast<std::uintptr_t>(before));
  }
  template <class T>
  T* array(int a) const {
    return reinterpret_cast<T*>(start(a));
  }

  void fused() const {
    kernels::fused_call call;
    run_on.prepare_call(s, rows.device, call);
    for (int i = 0; i < s.sources + s.results; ++i)
      if (const int a = s.first + i; run_on.program_.accesses[static_cast<std::size_t>(a)].buffer >= 0)
        call.data[i] = start(a) + call.base[i] * info(run_on.type_of(a)).size;
    const std::int64_t elements = call.rows() * call.columns() / rows.group.rows;
    const std::int64_t from = s.hides_only ? rows.clear : 0, to = rows.leaves_out(elements) ? rows.seen : elements;
    if ((from > 0 || to < elements) && call.columns() % elements == 0) run_columns(call, elements, from, to);
    else run_elements(call, rows.first * elements, rows.last * elements);
  }

  /// Elements [from, to) of each row of the block; a line of the step's domain is one row or several, of `elements`.
  void run_columns(const kernels::fused_call& call, std::int64_t elements, std::int64_t from, std::int64_t to) const {
    if (run_on.fused_.empty()) {
      for (std::int64_t row = rows.first; row < rows.last; ++row)
        run_elements(call, row * elements + from, row * elements + to);
      return;
    }
    const std::int64_t last = call.rank - 1;
    std::int64_t extents[max_rank + 1], strides[kernels::max_fused_arrays][max_rank + 1];
    kernels::fused_call cut = call;
    cut.rank = call.rank + 1;
    cut.extents = extents;
    std::copy_n(call.extents, last, extents);
    extents[last] = call.columns() / elements, extents[last + 1] = elements;
    for (int a = 0; a < s.sources + s.results; ++a) {
      std::copy_n(call.strides[a], call.rank, strides[a]);
      strides[a][last + 1] = strides[a][last];
      strides[a][last] *= elements;
      cut.strides[a] = strides[a];
    }
    if (from < to) run_on.fused_[static_cast<std::size_t>(s.code)](cut, {rows.first, rows.last, from, to});
  }

  /// Elements [first, last) of the step's domain: parts of one line, or whole lines.
  void run_elements(const kernels::fused_call& call, std::int64_t first, std::int64_t last) const {
    if (run_on.fused_.empty())
      return kernels::naive::fused<kernels::interpreted_functions>(run_on.words_of(s), call, first, last);
    const kernels::fused_function kernel = run_on.fused_[static_cast<std::size_t>(s.code)];
    const std::int64_t line = call.columns();
    if (first % line == 0 && last % line == 0) kernel(call, {first / line, last / line, 0, line});
    else kernel(call, {first / line, first / line + 1, first % line, first % line + last - first});
  }

  /// Elements [first, last), which may start and end within lines.
  void run_any_elements(const kernels::fused_call& call, std::int64_t first, std::int64_t last) const {
    const std::int64_t line = call.columns();
    const std::int64_t whole = std::min(last, kernels::detail::ceil_div(first, line) * line);
    if (first < whole) run_elements(call, first, whole);
    const std::int64_t rest = std::max(whole, last / line * line);
    if (whole < rest) run_elements(call, whole, rest);
    if (rest < last) run_elements(call, rest, last);
  }

  /// Where matrix number `group` of access `a` of a product starts, and how far apart its rows lie.
  template <class T>
  struct matrix {
    T* at;
    std::int64_t leading;
  };
  template <class T>
  matrix<T> matrix_of(int a, std::int64_t group, std::int64_t lines, std::int64_t columns) const {
    const graph::access& way = run_on.program_.accesses[static_cast<std::size_t>(a)];
    if (!graph::lies_scattered(way)) return {array<T>(a) + group * lines * columns, columns};
    return {array<T>(a) + graph::first_of_matrix(way, group), way.strides[graph::row_distance]};
  }

  /// The whole product of the matrices of one batch.
  template <class T>
  kernels::gemm_problem<T> product_of(std::int64_t group) const {
    kernels::gemm_problem<T> p;
    p.m = s.sizes[0], p.n = s.sizes[1], p.k = s.sizes[2];
    p.a_transposed = s.sizes[4] != 0, p.b_transposed = s.sizes[5] != 0, p.exchanged = s.sizes[6] != 0;
    const auto a = matrix_of<T>(s.first, group, p.a_transposed ? p.k : p.m, p.a_transposed ? p.m : p.k);
    const auto b = matrix_of<T>(s.first + 1, group, p.b_transposed ? p.n : p.k, p.b_transposed ? p.k : p.n);
    const auto c = matrix_of<T>(s.first + 2, group, p.m, p.n);
    p.a = a.at, p.b = b.at, p.c = c.at;
    p.lda = a.leading, p.ldb = b.leading, p.ldc = c.leading;
    return p;
  }

  template <class T>
  void dot() const {
    const std::int64_t rows_of_matrix = s.sums_rows ? s.sizes[2] : s.sizes[0];
    const kernels::gemm_problem<T> p = product_of<T>(rows.first / rows_of_matrix);
    if (s.sums_rows) sum_over_rows(p, rows.first % rows_of_matrix);
    else make_rows(p, rows.first % rows_of_matrix);
  }

  /// Where the group's memory for turned sums has those of this step: behind those of steps before it.
  std::byte* turned_sum() const {
    const graph::program& p = run_on.program_;
    std::byte* at = rows.memory + rows.room * rows.group.row_bytes;
    for (auto i = static_cast<std::size_t>(rows.group.first); &p.steps[i] != &s; ++i)
      at += turned_sum_bytes(p, p.steps[i]);
    return at;
  }

  /// The transposed sum of the batch is put in its place once all of its rows are in it.
  template <class T>
  void sum_turned(const kernels::gemm_problem<T>& p, std::int64_t done) const {
    using element = compute_t<T>;
    constexpr auto size = static_cast<std::int64_t>(sizeof(element));
    const std::int64_t all = p.m, seen = rows.leaves_out(all) ? rows.seen : all;
    kernels::gemm_problem<T> q = kernels::detail::with_sides_exchanged(p, {});
    q.n = seen;
    q.ldc = (aligned(all * size) + block_alignment) / size;
    q.c = reinterpret_cast<element*>(turned_sum());
    q.exchanged = !p.exchanged;
    for (std::int64_t i = 0; i < q.m && done == 0; ++i)
      std::fill(q.c + i * q.ldc + seen, q.c + i * q.ldc + all, element{0});
    kernels::gemm(q, false);
    if (done + count() == s.sizes[2]) kernels::detail::copy_transposed(q.c, q.ldc, q.m, all, p.c, p.ldc);
  }

  /// c += a^T b over the rows of the block, `done` of which are summed already, into the array of the block's batch.
  template <class T>
  void sum_over_rows(kernels::gemm_problem<T> p, std::int64_t done) const {
    p.a += p.a_transposed ? done * p.lda : done;
    p.b += p.b_transposed ? done : done * p.ldb;
    p.k = count();
    p.accumulate = done > 0;
    if (turned_sum_bytes(run_on.program_, s) > 0) return sum_turned(p, done);
    const std::int64_t m = p.m, n = p.n;
    if (p.a_transposed && rows.leaves_out(p.m)) p.m = rows.seen;
    if (!p.b_transposed && rows.leaves_out(p.n)) p.n = rows.seen;
    for (std::int64_t i = 0; i < m && done == 0; ++i)
      if (const std::int64_t from = i < p.m ? p.n : 0; from < n)
        std::fill(p.c + i * p.ldc + from, p.c + i * p.ldc + n, T(0));
    kernels::gemm(p, false);
  }

  /// c = a b for the rows of the block, from row `first` of the batch on.
  template <class T>
  void make_rows(kernels::gemm_problem<T> p, std::int64_t first) const {
    p.a += first * p.lda;
    p.c += first * p.ldc;
    p.m = count();
    if (rows.leaves_out(p.n)) p.n = rows.seen;
    if (rows.leaves_out(p.k)) p.read = rows.seen;
    kernels::gemm(p, false);
  }

  template <class T>
  void reduce() const {
    if constexpr (sizeof(T) > 1)
      if (rows.group.line) return reduce_lines<T>();
    if (s.sums_rows) return fold_rows<T>();
    kernels::reduce(static_cast<kernels::reduce_kind>(s.sizes[0]), array<T>(s.first) + rows.first * s.sizes[2],
                    array<compute_t<T>>(s.first + 1) + rows.first, count(), s.sizes[2], 1, false);
  }

  /// Each leaf of rows to one; at last all leaves.
  template <class T>
  void fold_rows() const {
    constexpr std::int64_t leaf = graph::rows_in_leaf;
    const auto kind = static_cast<kernels::reduce_kind>(s.sizes[0]);
    const std::int64_t inner = s.sizes[3], all = s.sizes[2];
    auto* const leaves = array<compute_t<T>>(s.first + 2);
    if (rows.finish)
      return kernels::combine_leaves<T>(kind, leaves, array<compute_t<T>>(s.first + 1),
                                        kernels::detail::ceil_div(all, leaf), inner);
    const T* const from = array<T>(s.first);
    for (std::int64_t row = rows.first; row < rows.last; row += leaf)
      kernels::reduce(kind, from + row * inner, leaves + row / leaf * inner, 1, std::min(leaf, rows.last - row), inner,
                      false);
  }

  /// The lines of a group of two steps, whose elements the first one makes.
  template <class T>
  void reduce_lines() const {
    const graph::step& maker = run_on.program_.steps[static_cast<std::size_t>(rows.group.first)];
    const graph::program& p = run_on.program_;
    kernels::fused_call call;
    run_on.prepare_call(maker, rows.device, call);
    int line = 0;
    const int made = p.accesses[static_cast<std::size_t>(s.first)].buffer;
    while (p.accesses[static_cast<std::size_t>(maker.first + line)].buffer != made) ++line;
    const bool neighbours = call.rows() == 1 && !run_on.fused_.empty();
    const auto one_row = neighbours ? run_on.fused_[static_cast<std::size_t>(maker.code)] : nullptr;
    const bool combines = neighbours && graph::kind_in_registers(p, rows.group) == static_cast<int>(s.sizes[0]) &&
                          graph::combined_kind(p, maker.code) == static_cast<int>(s.sizes[0]);
    auto* const out = array<compute_t<T>>(s.first + 1);
    for (std::int64_t o = 0; o < s.sizes[1]; ++o)
      kernels::reduce_made<T>(static_cast<kernels::reduce_kind>(s.sizes[0]),
                              line_maker<T>{{run_on, maker, rows}, call, line, one_row, combines, o * s.sizes[2]},
                              out + o, s.sizes[2], true);
  }

  /// What reduce_made calls.
  template <class T>
  struct line_maker {
    row_runner<Executor> elements;
    kernels::fused_call call;
    int line;
    kernels::fused_function one_row;  ///< what makes elements if all are neighbours, or null
    bool in_registers;                ///< and can combine them
    std::int64_t before;

    void operator()(std::int64_t first, std::int64_t count, T* to) {
      call.data[line] = reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(to) -
                                             static_cast<std::uintptr_t>(before + first) * sizeof(T));
      const std::int64_t from = before + first;
      if (one_row != nullptr) one_row(call, {0, 1, from, from + count});
      else elements.run_any_elements(call, from, from + count);
    }
    bool combines() const { return in_registers; }
    void combine(std::int64_t first, std::int64_t count, T* lanes) const {
      one_row(call, {0, 1, before + first, before + first + count, lanes});
    }
  };

  template <graph::step_kind Kind, class T>
  void normalise() const {
    using graph::step_kind;
    const std::int64_t columns = s.sizes[1], before = rows.first * columns;
    const T* const x = array<T>(s.first) + before;
    T* const out = array<T>(s.first + s.sources) + before;
    if constexpr (Kind == step_kind::softmax) {
      if (rows.leaves_out(columns))
        rows.again = !kernels::softmax_of_seen(x, out, count(), columns, rows.seen, *array<const T>(rows.group.hidden));
      else kernels::softmax(x, out, count(), columns, false);
    } else if constexpr (Kind == step_kind::log_softmax) {
      kernels::log_softmax(x, out, count(), columns, false);
    } else if constexpr (Kind == step_kind::softmax_grad) {
      const T* const gradient = array<T>(s.first + 1) + before;
      if (rows.leaves_out(columns)) kernels::softmax_backward_of_seen(x, gradient, out, count(), columns, rows.seen);
      else kernels::softmax_backward(x, gradient, out, count(), columns, false);
    } else {
      kernels::log_softmax_backward(x, array<T>(s.first + 1) + before, out, count(), columns, false);
    }
  }
};

}  // namespace tessera::runtime
