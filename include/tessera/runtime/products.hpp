// SPDX-License-Identifier: Apache-2.0
// Runs products: shards together where they can be one, sums over devices, and the fused steps that are parts of a
// product.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/kernels/fused.hpp>
#include <tessera/kernels/gemm.hpp>
#include <tessera/kernels/gemm_rounded.hpp>
#include <tessera/kernels/interpreted.hpp>
#include <tessera/kernels/naive.hpp>

#include <cstdint>
#include <numeric>
#include <span>

namespace tessera::runtime {

/// A fused step that runs block by block with a product.
struct part_of_product {
  kernels::fused_function kernel = nullptr;  ///< or null: the words are interpreted
  std::span<const graph::word> words{};
  const kernels::fused_call* calls = nullptr;  ///< one a shard
  int sources = 0;
  std::int64_t rows_a_group = 0;  ///< where groups are parts of one shard; else each is a shard

  const kernels::fused_call& call(std::int64_t group) const { return calls[rows_a_group > 0 ? 0 : group]; }

  void operator()(const kernels::fused_call& call, const kernels::fused_range& range) const {
    if (kernel != nullptr) return kernel(call, range);
    const std::int64_t columns = call.columns();
    for (std::int64_t row = range.first_row; row < range.last_row; ++row)
      kernels::naive::fused<kernels::interpreted_functions>(words, call, row * columns + range.first_column,
                                                            row * columns + range.last_column);
  }

  /// Writes a rectangle of the step's result to `to`; see gemm_source.
  template <class T>
  static void make(const void* context, std::int64_t group, std::int64_t row, std::int64_t rows, std::int64_t column,
                   std::int64_t columns, T* to, std::int64_t leading) {
    const auto& part = *static_cast<const part_of_product*>(context);
    const kernels::fused_call& whole = part.call(group);
    row += group * part.rows_a_group;
    kernels::fused_call block;
    block.rank = whole.rank;
    block.extents = whole.extents;
    for (int a = 0; a < part.sources; ++a) {
      block.data[a] = whole.data[a];
      block.strides[a] = whole.strides[a];
      block.base[a] = whole.base[a];
    }
    std::int64_t strides[max_rank];
    std::int64_t stride = leading;
    strides[whole.rank - 1] = 1;
    for (int d = whole.rank - 2; d >= 0; stride *= whole.extents[d--]) strides[d] = stride;
    // Where the result's first element would lie, of which only the rectangle is there.
    const std::int64_t before = ((whole.rank > 1 ? row * leading : 0) + column) * static_cast<std::int64_t>(sizeof(T));
    block.data[part.sources] =
        reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(to) - static_cast<std::uintptr_t>(before));
    block.strides[part.sources] = strides;
    block.base[part.sources] = 0;
    part(block, {row, row + rows, column, column + columns});
  }
};

/// What finishes a product, in order.
struct finishing_parts {
  part_of_product parts[graph::max_finishing];
  int count = 0;

  static void run(const void* context, std::int64_t group, std::int64_t row, std::int64_t rows, std::int64_t column,
                  std::int64_t columns) {
    const auto& all = *static_cast<const finishing_parts*>(context);
    for (int i = 0; i < all.count; ++i) {
      const part_of_product& part = all.parts[i];
      const std::int64_t first = row + group * part.rows_a_group;
      part(part.call(group), {first, first + rows, column, column + columns});
    }
  }
};

/// One such step of an executor, on elements of type T.
template <class Executor, class T>
struct multiplier {
  Executor& run_on;
  const graph::step& s;
  part_of_product lhs{}, rhs{};
  finishing_parts finishing{};

  multiplier(Executor& executor, const graph::step& step) : run_on(executor), s(step) {
    const auto here = static_cast<int>(&s - run_on.program_.steps.begin());
    const graph::step_range range = graph::joined_steps(run_on.program_, here);
    std::size_t calls = 0;
    for (int i = range.first; i <= range.last; ++i) {
      if (i == here) continue;
      const graph::step& part = run_on.program_.steps[static_cast<std::size_t>(i)];
      prepare(part, calls);
      calls += static_cast<std::size_t>(run_on.shards_of(s));
    }
  }

  /// Shards whose blocks lie at equal distances are one product of many groups, so a shared right side is packed once;
  /// products that are summed over axes anyway go into one block.
  void run() {
    if (s.axes != 0) return run_summed();
    const std::int64_t shards = run_on.shards_of(s);
    if (lies_scattered()) return run_scattered(shards);
    for (std::int64_t i = 0; i < shards;) {
      kernels::gemm_problem<T> p = product(run_on.device(s, i));
      std::int64_t together = 1;
      while (p.groups == together && i + together < shards &&
             extends(p, product(run_on.device(s, i + together)), together))
        p.groups = ++together;
      multiply(p, shards);
      i += together;
      advance(together);
      run_on.runs_of_step_ += together;
    }
  }

 private:
  const graph::access& access(int place) const {
    return run_on.program_.accesses[static_cast<std::size_t>(s.first + place)];
  }
  bool lies_scattered() const {
    return graph::lies_scattered(access(0)) || graph::lies_scattered(access(1)) || graph::lies_scattered(access(2));
  }

  /// As many matrices at a time as lie evenly apart in all three arrays.
  void run_scattered(std::int64_t shards) {
    const std::int64_t groups = s.sizes[3];
    std::int64_t evenly = groups;
    for (int place = 0; place < 3; ++place)
      if (graph::lies_scattered(access(place)))
        evenly = std::gcd(evenly, access(place).strides[graph::matrices_in_line]);
    for (std::int64_t shard = 0; shard < shards; ++shard) {
      const kernels::gemm_problem<T> whole = product(run_on.device(s, shard));
      for (std::int64_t first = 0; first < groups; first += evenly) {
        kernels::gemm_problem<T> p = whole;
        p.groups = evenly;
        scatter(0, first, p.a, p.lda, p.a_stride);
        scatter(1, first, p.b, p.ldb, p.b_stride);
        scatter(2, first, p.c, p.ldc, p.c_stride);
        multiply(p, shards);
      }
      ++run_on.runs_of_step_;
    }
  }
  /// Goes to matrix number `first` of an operand or the result.
  template <class P>
  void scatter(int place, std::int64_t first, P*& at, std::int64_t& leading, std::int64_t& stride) const {
    const graph::access& way = access(place);
    if (!graph::lies_scattered(way)) {
      at += first * stride;
      return;
    }
    at += graph::first_of_matrix(way, first);
    leading = way.strides[graph::row_distance];
    stride = way.strides[graph::matrix_distance];
  }

  void prepare(const graph::step& part, std::size_t first_call) {
    part_of_product made;
    made.kernel = run_on.fused_.empty() ? nullptr : run_on.fused_[static_cast<std::size_t>(part.code)];
    made.words = run_on.words_of(part);
    made.calls = &run_on.calls_[first_call];
    made.sources = part.sources;
    for (std::int64_t i = 0; i < run_on.shards_of(s); ++i)
      run_on.prepare_call(part, run_on.device(s, i), run_on.calls_[first_call + static_cast<std::size_t>(i)]);
    const bool grouped = s.sizes[3] > 1;
    switch (part.part) {
      case graph::product_part::makes_lhs:
        made.rows_a_group = grouped ? (s.sizes[4] != 0 ? s.sizes[2] : s.sizes[0]) : 0;
        lhs = made;
        break;
      case graph::product_part::makes_rhs:
        made.rows_a_group = grouped ? (s.sizes[5] != 0 ? s.sizes[1] : s.sizes[2]) : 0;
        rhs = made;
        break;
      default: made.rows_a_group = grouped ? s.sizes[0] : 0; finishing.parts[finishing.count++] = made;
    }
  }

  /// Goes on to the calls of the shards behind the next `shards`.
  void advance(std::int64_t shards) {
    lhs.calls += lhs.calls != nullptr ? shards : 0;
    rhs.calls += rhs.calls != nullptr ? shards : 0;
    for (int i = 0; i < finishing.count; ++i) finishing.parts[i].calls += shards;
  }

  kernels::gemm_problem<T> product(std::int64_t device) const {
    kernels::gemm_problem<T> p;
    p.m = s.sizes[0], p.n = s.sizes[1], p.k = s.sizes[2];
    p.a_transposed = s.sizes[4] != 0, p.b_transposed = s.sizes[5] != 0, p.exchanged = s.sizes[6] != 0;
    if (lhs.calls == nullptr) p.a = reinterpret_cast<const T*>(run_on.block(s.first, device));
    else p.a_source = {&part_of_product::make<T>, &lhs};
    if (rhs.calls == nullptr) p.b = reinterpret_cast<const T*>(run_on.block(s.first + 1, device));
    else p.b_source = {&part_of_product::make<T>, &rhs};
    if (finishing.count > 0) p.finish = {&finishing_parts::run, &finishing};
    if (is_small_float<T> && is_sixteen_bit(run_on.type_of(s.first + 2)))
      p.rounded = reinterpret_cast<T*>(run_on.block(s.first + 2, device));
    else p.c = reinterpret_cast<compute_t<T>*>(run_on.block(s.first + 2, device));
    p.lda = p.a_transposed ? p.m : p.k, p.ldb = p.b_transposed ? p.k : p.n, p.ldc = p.n;
    p.groups = s.sizes[3];
    p.a_stride = p.m * p.k, p.b_stride = p.k * p.n, p.c_stride = p.m * p.n;
    return p;
  }

  /// Blocks of the devices along `s.axes` are summed in the order of the axes: one run a sum.
  void run_summed() {
    const auto kept = static_cast<axis_set>(s.varying & ~set_of(s.axes));
    const std::int64_t members = devices_along(s.axes, run_on.mesh_);
    for (std::int64_t i = 0; i < devices_in(kept, run_on.mesh_); ++i) {
      const std::int64_t home = device_of_shard(i, kept, run_on.mesh_);
      const auto member = [&](std::int64_t m) {
        kernels::gemm_problem<T> p = product(device_at(home, s.axes, m, run_on.mesh_));
        p.c = reinterpret_cast<compute_t<T>*>(run_on.block(s.first + 2, home));
        return p;
      };
      for (std::int64_t m = 0; m < members;) {
        kernels::gemm_problem<T> p = member(m);
        p.accumulate = m > 0;
        std::int64_t together = 1;
        while (m + together < members && extends(p, member(m + together), together)) p.groups = ++together;
        multiply(p, members);
        m += together;
      }
      ++run_on.runs_of_step_;
    }
  }

  /// Whether `next` is group number `groups` of `p`: its blocks lie as far from the last ones as those did from theirs.
  /// Operands that are made do not lie anywhere.
  static bool extends(kernels::gemm_problem<T>& p, const kernels::gemm_problem<T>& next, std::int64_t groups) {
    const std::int64_t apart = p.rounded != nullptr ? next.rounded - p.rounded : next.c - p.c;
    if (groups == 1) {
      p.a_stride = p.a_source ? p.a_stride : next.a - p.a;
      p.b_stride = p.b_source ? p.b_stride : next.b - p.b;
      p.c_stride = apart;
    }
    return (p.a_source || next.a - p.a == groups * p.a_stride) && (p.b_source || next.b - p.b == groups * p.b_stride) &&
           apart == groups * p.c_stride;
  }

  void multiply(const kernels::gemm_problem<T>& p, std::int64_t shards) const {
    const bool parallel = 2 * s.sizes[0] * s.sizes[1] * s.sizes[2] * s.sizes[3] * shards > 64 * Executor::small;
    if constexpr (is_small_float<T>)
      if (p.rounded != nullptr) return kernels::gemm_rounded(p, parallel);
    if constexpr (std::is_floating_point_v<compute_t<T>>) kernels::gemm(p, parallel);
    else kernels::naive::gemm(p, parallel);
  }
};

}  // namespace tessera::runtime
