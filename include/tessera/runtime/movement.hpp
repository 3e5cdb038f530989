// SPDX-License-Identifier: Apache-2.0
// Runs steps that take parts of arrays and put arrays together.
#pragma once

#include <tessera/graph/gather.hpp>
#include <tessera/graph/program.hpp>
#include <tessera/kernels/gather.hpp>
#include <tessera/kernels/move.hpp>
#include <tessera/kernels/overlap_add.hpp>

#include <algorithm>
#include <cstring>

namespace tessera::runtime {

/// One such step of an executor, on elements of type T.
template <class Executor, class T>
struct mover {
  Executor& run_on;
  const graph::step& s;

  template <graph::step_kind Kind>
  void run() const {
    using graph::step_kind;
    if constexpr (Kind == step_kind::update_slice) update_slice();
    else if constexpr (Kind == step_kind::overlap_add) overlap_add();
    else if constexpr (Kind == step_kind::dynamic_slice) dynamic_slice();
    else if constexpr (Kind == step_kind::dynamic_update) dynamic_update();
    else if constexpr (Kind == step_kind::gather) gather();
    else scatter();
  }

 private:
  /// The block of an update's result, with the elements of its base.
  T* based_result(std::int64_t d) const {
    const int result = s.first + s.sources;
    std::byte* to = run_on.block(result, d);
    const std::byte* base = run_on.block(s.first, d);
    const auto& buffer =
        run_on.program_
            .buffers[static_cast<std::size_t>(run_on.program_.accesses[static_cast<std::size_t>(result)].buffer)];
    if (to != base) std::memcpy(to, base, static_cast<std::size_t>(buffer.bytes));
    return reinterpret_cast<T*>(to);
  }

  void update_slice() const {
    const int piece = s.first + s.sources - 1;
    const graph::access& from = run_on.program_.accesses[static_cast<std::size_t>(piece)];
    const graph::access& to = run_on.program_.accesses[static_cast<std::size_t>(piece + 1)];
    kernels::move_problem p{s.rank};
    std::int64_t size = 1;
    for (int d = 0; d < s.rank; ++d) {
      size *= p.extents[d] = s.sizes[d];
      p.from_strides[d] = from.strides[d];
      p.to_strides[d] = to.strides[d];
    }
    run_on.for_each_shard(s, run_on.shards_of(s) * size > Executor::small, [&](std::int64_t d) {
      T* target = s.sources > 1 ? based_result(d) : reinterpret_cast<T*>(run_on.block(piece + 1, d));
      kernels::move(reinterpret_cast<const T*>(run_on.block(piece, d)) + run_on.first_element(from, d),
                    target + to.offset, p, size > Executor::small);
    });
  }

  void overlap_add() const {
    const auto low = [&](int i) { return s.sizes[i] & 0xffffffff; };
    const auto high = [&](int i) { return s.sizes[i] >> 32; };
    const kernels::overlap_problem p{
        s.sizes[0],
        s.sizes[3],
        {{s.sizes[1], low(4), high(4), low(6), high(6)}, {s.sizes[2], low(5), high(5), low(7), high(7)}}};
    const bool big = p.size() > Executor::small;
    run_on.for_each_shard(s, run_on.shards_of(s) * p.size() > Executor::small, [&](std::int64_t d) {
      kernels::overlap_add(p, reinterpret_cast<const T*>(run_on.block(s.first, d)),
                           reinterpret_cast<T*>(run_on.block(s.first + 1, d)), big);
    });
  }

  /// Where a dynamic part begins, in elements: a negative start counts from the end, the part stays inside.
  std::int64_t dynamic_start(int a, std::int64_t d) const {
    const std::byte* scalar = run_on.block(a, d);
    const bool has_sign = run_on.type_of(a) == dtype::i32;
    std::int64_t start = has_sign ? std::int64_t{*reinterpret_cast<const std::int32_t*>(scalar)}
                                  : std::int64_t{*reinterpret_cast<const std::uint32_t*>(scalar)};
    if (start < 0) start += s.sizes[1];
    return std::clamp<std::int64_t>(start, 0, s.sizes[1] - s.sizes[2]) * s.sizes[3];
  }

  /// Rows of a part that lie one after another in the one array, at distances in the other.
  kernels::move_problem part_of(bool into_whole) const {
    const std::int64_t row = s.sizes[2] * s.sizes[3];
    const std::int64_t whole = s.sizes[1] * s.sizes[3];
    return {2, {s.sizes[0], row}, {into_whole ? row : whole, 1}, {into_whole ? whole : row, 1}};
  }

  void dynamic_slice() const {
    const std::int64_t size = s.sizes[0] * s.sizes[2] * s.sizes[3];
    run_on.for_each_shard(s, run_on.shards_of(s) * size > Executor::small, [&](std::int64_t d) {
      kernels::move(reinterpret_cast<const T*>(run_on.block(s.first, d)) + dynamic_start(s.first + 1, d),
                    reinterpret_cast<T*>(run_on.block(s.first + 2, d)), part_of(false), size > Executor::small);
    });
  }

  void dynamic_update() const {
    const std::int64_t size = s.sizes[0] * s.sizes[2] * s.sizes[3];
    run_on.for_each_shard(s, run_on.shards_of(s) * size > Executor::small, [&](std::int64_t d) {
      kernels::move(reinterpret_cast<const T*>(run_on.block(s.first + 1, d)),
                    based_result(d) + dynamic_start(s.first + 2, d), part_of(true), size > Executor::small);
    });
  }

  /// A gather's or scatter's sizes, and a device's indices.
  kernels::gather_problem choice(std::int64_t d) const {
    graph::node packed;
    packed.attribute[0] = static_cast<std::uint64_t>(s.sizes[5]);
    const sharding::indexing how = graph::indexing_of(packed);
    kernels::gather_problem p{s.sizes[0], s.sizes[1], s.sizes[2], s.sizes[3], s.sizes[4], s.sizes[6]};
    p.first = s.axes == 0 ? 0 : block_index(d, s.axes, run_on.mesh_) * p.n;
    p.pointwise = how.pointwise, p.mode = how.mode, p.kind = how.kind;
    p.indices = run_on.block(s.first + 1, d);
    p.has_sign = run_on.type_of(s.first + 1) == dtype::i32;
    return p;
  }

  void gather() const {
    const std::int64_t size = choice(0).chosen_size();
    run_on.for_each_shard(s, run_on.shards_of(s) * size > Executor::small, [&](std::int64_t d) {
      kernels::gather(choice(d), reinterpret_cast<const T*>(run_on.block(s.first, d)),
                      reinterpret_cast<T*>(run_on.block(s.first + 2, d)), size > Executor::small);
    });
  }

  void scatter() const {
    const std::int64_t size = choice(0).chosen_size();
    run_on.for_each_shard(s, run_on.shards_of(s) * size > Executor::small, [&](std::int64_t d) {
      kernels::scatter(choice(d), based_result(d), reinterpret_cast<const T*>(run_on.block(s.first + 2, d)),
                       size > Executor::small);
    });
  }
};

}  // namespace tessera::runtime
