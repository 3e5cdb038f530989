// SPDX-License-Identifier: Apache-2.0
// Operations from outside the library: what their kernels get, and where a program finds them.
#pragma once

#include <tessera/core/dtype.hpp>
#include <tessera/core/error.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tessera {

/// A block of an array, row-major.
struct custom_block {
  void* data = nullptr;
  dtype type = dtype::f32;
  int rank = 0;
  const std::int64_t* extents = nullptr;

  std::int64_t size() const {
    std::int64_t n = 1;
    for (int d = 0; d < rank; ++d) n *= extents[d];
    return n;
  }
  /// The extent of a dimension, counted from 0 or from -1 backwards.
  std::int64_t extent(int d) const {
    if (d < -rank || d >= rank)
      throw index_error("custom_block: there is no dimension " + std::to_string(d) + " in rank " +
                        std::to_string(rank));
    return extents[d < 0 ? d + rank : d];
  }
  /// The elements; T is their type.
  template <class T>
  std::span<T> elements() const {
    if (dtype_of<T> != type)
      throw value_error("custom_block: elements are " + std::string(info(type).name) + ", not " +
                        std::string(info(dtype_of<T>).name));
    return {static_cast<T*>(data), static_cast<std::size_t>(size())};
  }
};

/// One run of a custom operation on one device's blocks. The output overlaps no input. `parallel` says whether the work
/// is worth several threads: see kernels::parallel_for.
struct custom_call {
  std::span<const custom_block> inputs;
  custom_block output;
  bool parallel = false;

  template <class T>
  std::span<const T> input(std::size_t i) const {
    return inputs[i].elements<T>();
  }
  template <class T>
  std::span<T> result() const {
    return output.elements<T>();
  }
};

using custom_function = void (*)(const custom_call&);

namespace kernels {

/// The kernels of custom operations by number.
struct custom_entry {
  std::string_view name{};
  custom_function run = nullptr;
  bool twice = false;  ///< two operations have one type name
};
inline std::unordered_map<std::uint64_t, custom_entry>& custom_operations() {
  static std::unordered_map<std::uint64_t, custom_entry> all;
  return all;
}

inline bool add_custom_operation(std::uint64_t number, std::string_view name, custom_function run) {
  custom_entry& entry = custom_operations()[number];
  entry = {name, run, entry.twice || (entry.run != nullptr && entry.run != run)};
  return true;
}

/// The kernel of operation `number`.
inline custom_function find_custom_operation(std::uint64_t number) {
  const auto found = custom_operations().find(number);
  if (found == custom_operations().end())
    throw value_error("custom_op: the program runs an operation that this process does not have");
  if (found->second.twice)
    throw value_error("custom_op: two operations are called " + std::string(found->second.name) +
                      "; give their types different names");
  return found->second.run;
}

}  // namespace kernels

}  // namespace tessera
