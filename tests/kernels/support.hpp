// SPDX-License-Identifier: Apache-2.0
// What the kernel tests share: arrays between guard pages, runs on a given number of threads, comparison with a bound.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <tessera/core/sixteen_bits.hpp>

namespace kernel_test {

enum class edge { front, back };
inline constexpr edge edges[] = {edge::front, edge::back};

/// n elements that touch an unreadable page: with edge::back the last one ends where it begins, with edge::front the
/// first one begins where it ends. An access beyond that end stops the program.
template <class T>
class guarded {
 public:
  guarded(std::int64_t n, edge side) : n_(n) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
    const std::size_t inner = (bytes + page - 1) / page * page;
    size_ = inner + 2 * page;
    base_ = static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED || mprotect(base_, page, PROT_NONE) != 0 ||
        mprotect(base_ + page + inner, page, PROT_NONE) != 0)
      throw std::bad_alloc();
    data_ = reinterpret_cast<T*>(base_ + page + (side == edge::back ? inner - bytes : 0));
  }
  guarded(const std::vector<T>& values, edge side) : guarded(static_cast<std::int64_t>(values.size()), side) {
    std::copy(values.begin(), values.end(), data_);
  }
  guarded(const guarded&) = delete;
  guarded& operator=(const guarded&) = delete;
  ~guarded() { munmap(base_, size_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + n_; }
  std::int64_t size() const { return n_; }
  T& operator[](std::int64_t i) { return data_[i]; }
  const T& operator[](std::int64_t i) const { return data_[i]; }
  std::vector<T> values() const { return {data_, data_ + n_}; }

 private:
  std::int64_t n_;
  std::size_t size_;
  char* base_;
  T* data_;
};

/// Runs f with exactly this many threads at its disposal, whatever the number of cores.
template <class F>
void on_threads(int threads, F&& f) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  arena.execute(std::forward<F>(f));
}

template <class Array>
void fill_random(Array& values, unsigned seed) {
  using T = std::remove_cvref_t<decltype(*values.begin())>;
  std::mt19937 bits(seed);
  for (T& value : values) {
    if constexpr (std::is_same_v<T, bool>) value = bits() % 3 == 0;
    else if constexpr (std::is_integral_v<T>) value = static_cast<T>(bits());
    else value = static_cast<T>(std::uniform_real_distribution<tessera::compute_t<T>>(-1, 1)(bits));
  }
}

/// Zeros, ones, ends of the range, numbers that no integer or float32 holds, and for floating-point types what is not
/// finite or not normal.
template <class T>
std::vector<T> special_numbers() {
  using limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>) return {true, false};
  else if constexpr (std::is_integral_v<T>)
    return {0, 1, static_cast<T>(-1), limits::min(), limits::max(), 65536, 46341, 7};
  else
    return {T{0},
            -T{0},
            T{1},
            T{-1},
            limits::infinity(),
            -limits::infinity(),
            limits::quiet_NaN(),
            limits::denorm_min(),
            -limits::denorm_min(),
            limits::min(),
            limits::max(),
            limits::lowest(),
            T{0.5},
            T{2147483648.0},
            T{-2147483904.0},
            T{4294967296.0},
            T{1.5},
            T{-2.5}};
}

template <class T>
bool same_bits(const T* a, const T* b, std::int64_t n) {
  return n == 0 || std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(T)) == 0;
}

/// Equal, both NaN, or finite and at most `bound` apart.
template <class T>
bool close(T value, T expected, T bound) {
  if (std::isnan(expected)) return std::isnan(value);
  return value == expected || (std::isfinite(expected) && std::abs(value - expected) <= bound);
}

template <class T>
inline constexpr T epsilon = std::numeric_limits<T>::epsilon();

}  // namespace kernel_test
