// SPDX-License-Identifier: Apache-2.0
// One cache-sized block of scratch memory a thread, made at its first use and kept until the thread ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tessera::kernels::detail {

/// One huge page: packed operands then cost one TLB entry, and first touch costs a fortieth of what small pages cost.
inline constexpr std::size_t workspace_bytes = std::size_t{2} << 20;

/// The last part of the workspace, where operands of products that are made on the fly lie before they are packed, or,
/// where there are none, a result that is yet to be transposed.
inline constexpr std::size_t staging_bytes = std::size_t{1} << 18;

struct free_memory {
  void operator()(void* p) const { std::free(p); }
};
using scratch_memory = std::unique_ptr<void, free_memory>;

/// Memory in huge pages; `bytes` is a multiple of workspace_bytes.
inline scratch_memory make_scratch(std::size_t bytes) {
  scratch_memory made(std::aligned_alloc(workspace_bytes, bytes));
  if (made == nullptr) throw std::bad_alloc();
#if defined(__linux__)
  madvise(made.get(), bytes, MADV_HUGEPAGE);
#endif
  return made;
}

/// Which of a thread's blocks workspace() is.
inline thread_local constinit int workspace_in_use = 0;

/// While it lives, workspace() is another block on this thread, for a kernel within a kernel.
struct second_workspace {
  second_workspace() { ++workspace_in_use; }
  second_workspace(const second_workspace&) = delete;
  second_workspace& operator=(const second_workspace&) = delete;
  ~second_workspace() { --workspace_in_use; }
};

/// This thread's scratch memory: workspace_bytes long and so aligned. Its contents last only until the next kernel runs
/// on this thread, so nobody may wait for other tasks while using it.
inline std::byte* workspace() {
  thread_local const scratch_memory first = make_scratch(workspace_bytes);
  if (workspace_in_use == 0) return static_cast<std::byte*>(first.get());
  thread_local const scratch_memory second = make_scratch(workspace_bytes);
  return static_cast<std::byte*>(second.get());
}

template <class T>
T* staging() {
  return reinterpret_cast<T*>(workspace() + workspace_bytes - staging_bytes);
}

/// How many lines of `length` elements fit there.
template <class T>
constexpr std::int64_t staged_lines(std::int64_t length) {
  return static_cast<std::int64_t>(staging_bytes / sizeof(T)) / length;
}

}  // namespace tessera::kernels::detail
