// SPDX-License-Identifier: Apache-2.0
// Memory for arrays and arenas: aligned, zeroed, on huge pages where it is large.
#pragma once

#include <tessera/core/alignment.hpp>
#include <tessera/core/compiled.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#if defined(TESSERA_COMPILED)
#include <cstring>
#include <new>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#endif

namespace tessera::runtime {

/// A block of bytes, aligned to 64 (to 2 MiB from that size on), all zero at first. Huge pages matter: fresh memory on
/// 4 KiB pages costs milliseconds a MiB. No memory raises std::bad_alloc.
class memory {
 public:
  constexpr memory() = default;
  explicit memory(std::int64_t bytes);
  memory(memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  memory& operator=(memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~memory() { std::free(data_); }

  std::byte* data() const { return data_; }
  std::int64_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

#if defined(TESSERA_COMPILED)

TESSERA_COMPILED memory::memory(std::int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  constexpr std::size_t huge = std::size_t{2} << 20;
  constexpr auto small = static_cast<std::size_t>(block_alignment);
  const std::size_t alignment = static_cast<std::size_t>(bytes) >= huge ? huge : small;
  const std::size_t rounded = (static_cast<std::size_t>(bytes) + alignment - 1) / alignment * alignment;
  data_ = static_cast<std::byte*>(std::aligned_alloc(alignment, rounded));
  if (data_ == nullptr) throw std::bad_alloc();
#if defined(__linux__)
  if (alignment == huge) madvise(data_, rounded, MADV_HUGEPAGE);
#endif
  std::memset(data_, 0, rounded);
}

#endif

}  // namespace tessera::runtime
