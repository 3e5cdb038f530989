// SPDX-License-Identifier: Apache-2.0
// The memory of one array: each distinct block once, shared by those who hold it until one of them writes.
#pragma once

#include <tessera/core/alignment.hpp>
#include <tessera/core/compiled.hpp>
#include <tessera/core/error.hpp>
#include <tessera/core/shards.hpp>
#include <tessera/runtime/memory.hpp>

#include <atomic>
#include <cstring>
#include <utility>

namespace tessera::runtime {

/// The blocks of an array of type `type` over `mesh`, `stride` bytes apart.
struct storage {
  aval type;
  mesh_value mesh;
  axis_set varying;
  std::int64_t shards;
  std::int64_t block_bytes;
  std::int64_t stride;
  memory bytes;
  std::atomic<int> owners{0};

  storage(const aval& t, const mesh_value& m);

  std::byte* block(std::int64_t shard) const { return bytes.data() + shard * stride; }
};

/// A counted reference to storage; may be empty.
class storage_ptr {
 public:
  constexpr storage_ptr() {}  // not defaulted: g++ 12 evaluates constants before it has made that definition
  explicit storage_ptr(storage* target) : target_(target) { acquire(); }
  constexpr storage_ptr(const storage_ptr& other) : target_(other.target_) { acquire(); }
  constexpr storage_ptr(storage_ptr&& other) noexcept : target_(std::exchange(other.target_, nullptr)) {}
  constexpr storage_ptr& operator=(storage_ptr other) noexcept {
    std::swap(target_, other.target_);
    return *this;
  }
  constexpr ~storage_ptr() {
    if (target_ != nullptr) release(target_);
  }

  constexpr storage* get() const { return target_; }
  constexpr storage* operator->() const { return target_; }
  constexpr storage& operator*() const { return *target_; }
  constexpr explicit operator bool() const { return target_ != nullptr; }

  bool unique() const { return target_ != nullptr && target_->owners.load(std::memory_order_acquire) == 1; }

 private:
  constexpr void acquire() {
    if (target_ != nullptr) target_->owners.fetch_add(1, std::memory_order_relaxed);
  }

  static void release(storage* target);

  storage* target_ = nullptr;
};

/// New zeroed storage.
storage_ptr make_storage(const aval& type, const mesh_value& mesh);

/// New storage with the same content.
storage_ptr clone(const storage& from);

/// Fills all blocks from a whole row-major host array of the same element type.
void copy_from_host(storage& to, const void* host);

/// Puts all blocks together into a whole row-major host array.
void copy_to_host(const storage& from, void* host);

/// Calls f(block's byte offset in the host array, byte offset in the block, bytes) for each contiguous run of block
/// `shard` of an array of type `type`, the host array being whole and row-major.
template <class F>
void for_each_run(const aval& type, const mesh_value& mesh, axis_set varying, std::int64_t shard, F f) {
  const aval local = local_block(type, mesh);
  if (local.size() == 0) return;
  const std::int64_t device = device_of_shard(shard, varying, mesh);
  const std::int64_t element = info(type.type).size;
  int inner = type.rank;  // dimensions from here on lie in one piece in both arrays
  std::int64_t run = 1;
  while (inner > 0) {
    run *= local.dims[--inner].extent;
    if (local.dims[inner].extent != type.dims[inner].extent) break;
  }
  std::int64_t index[max_rank]{};
  for (std::int64_t done = 0; done < local.size(); done += run) {
    std::int64_t host = 0;
    for (int d = 0; d < type.rank; ++d)
      host =
          host * type.dims[d].extent + block_index(device, type.dims[d].axes, mesh) * local.dims[d].extent + index[d];
    f(host * element, done * element, run * element);
    for (int d = inner - 1; d >= 0; --d) {
      if (++index[d] < local.dims[d].extent) break;
      index[d] = 0;
    }
  }
}

#if defined(TESSERA_COMPILED)

TESSERA_COMPILED storage::storage(const aval& t, const mesh_value& m)
    : type(t),
      mesh(m),
      varying(static_cast<axis_set>(t.cut() | t.unreduced)),
      shards(devices_in(varying, m)),
      block_bytes(local_block(t, m).bytes()),
      stride(aligned(block_bytes)),
      bytes(stride * shards) {}

TESSERA_COMPILED void storage_ptr::release(storage* target) {
  if (target->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete target;
}

TESSERA_COMPILED storage_ptr make_storage(const aval& type, const mesh_value& mesh) {
  return storage_ptr(new storage(type, mesh));
}

TESSERA_COMPILED storage_ptr clone(const storage& from) {
  storage_ptr copy = make_storage(from.type, from.mesh);
  std::memcpy(copy->bytes.data(), from.bytes.data(), static_cast<std::size_t>(from.bytes.size()));
  return copy;
}

/// Whether a shard is the first of those that are added up (or whose extremum is taken) to the same elements.
inline bool is_first_part(const storage& of, std::int64_t shard) {
  const std::int64_t device = device_of_shard(shard, of.varying, of.mesh);
  for (int axis = 0; axis < of.mesh.rank; ++axis)
    if ((of.type.unreduced & bit_of(axis)) && coordinate(device, axis, of.mesh) != 0) return false;
  return true;
}

/// Fills all blocks from a whole row-major host array of the same element type. The first part of a pending sum gets
/// all of it, the others zeros; parts of a pending extremum are alike.
TESSERA_COMPILED void copy_from_host(storage& to, const void* host) {
  for (std::int64_t shard = 0; shard < to.shards; ++shard) {
    if (to.type.pending == combine::sum && !is_first_part(to, shard)) {
      std::memset(to.block(shard), 0, static_cast<std::size_t>(to.block_bytes));
      continue;
    }
    for_each_run(to.type, to.mesh, to.varying, shard, [&](std::int64_t from, std::int64_t at, std::int64_t bytes) {
      std::memcpy(to.block(shard) + at, static_cast<const std::byte*>(host) + from, static_cast<std::size_t>(bytes));
    });
  }
}

/// Adds a run of elements to another one, or takes the larger or smaller one of each pair; NaN stays.
template <class T>
void combine_run(combine kind, std::byte* into, const std::byte* from, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += static_cast<std::int64_t>(sizeof(T))) {
    T a;
    T b;
    std::memcpy(&a, into + at, sizeof(T));
    std::memcpy(&b, from + at, sizeof(T));
    if (kind == combine::sum) a = static_cast<T>(a + b);
    else if (b != b || (kind == combine::max ? a < b : b < a)) a = b;
    std::memcpy(into + at, &a, sizeof(T));
  }
}

inline void combine_run(dtype type, combine kind, std::byte* into, const std::byte* from, std::int64_t bytes) {
  switch (type) {
    case dtype::f32: return combine_run<float>(kind, into, from, bytes);
    case dtype::f64: return combine_run<double>(kind, into, from, bytes);
    case dtype::i32: return combine_run<std::int32_t>(kind, into, from, bytes);
    case dtype::u32: return combine_run<std::uint32_t>(kind, into, from, bytes);
    case dtype::bf16: return combine_run<bfloat16>(kind, into, from, bytes);
    case dtype::f16: return combine_run<float16>(kind, into, from, bytes);
    default: throw value_error("tensor: parts of this element type cannot be combined; reduce the array first");
  }
}

/// Puts all blocks together into a whole row-major host array; what is pending is combined, in the order of the shards.
TESSERA_COMPILED void copy_to_host(const storage& from, void* host) {
  for (std::int64_t shard = 0; shard < from.shards; ++shard) {
    const bool first = is_first_part(from, shard);
    for_each_run(from.type, from.mesh, from.varying, shard, [&](std::int64_t to, std::int64_t at, std::int64_t bytes) {
      std::byte* into = static_cast<std::byte*>(host) + to;
      const std::byte* part = from.block(shard) + at;
      if (first) std::memcpy(into, part, static_cast<std::size_t>(bytes));
      else combine_run(from.type.type, from.type.pending, into, part, bytes);
    });
  }
}

#endif

}  // namespace tessera::runtime
