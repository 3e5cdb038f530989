// SPDX-License-Identifier: Apache-2.0
// What runs one step of a program: on all of its arrays, or on a block of rows.
#pragma once

#include <tessera/graph/program.hpp>

#include <cstddef>
#include <cstdint>

namespace tessera::runtime {

template <class>
class basic_executor;

/// Rows [first, last) of a row group on one device, and the thread's memory for what exists for a block only: `room`
/// rows of it. Of arrays as wide as the group's masked scores, columns from `seen` on are left out; a step that finds
/// that they count asks to start the block `again` with all of them. In columns before `clear` the mask hides nothing.
struct row_block {
  const graph::row_group& group;
  std::int64_t device;
  std::int64_t room;
  std::byte* memory;
  std::int64_t base = 0;  ///< the row whose memory comes first
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t clear = 0;
  std::int64_t seen = 0;
  bool again = false;
  bool finish = false;  ///< all blocks are done: what they left is combined

  bool leaves_out(std::int64_t columns) const { return columns == group.columns && seen < columns; }
};

struct step_function {
  void (basic_executor<void>::*whole)(const graph::step&) = nullptr;
  void (basic_executor<void>::*rows)(const graph::step&, row_block&) const = nullptr;  ///< of steps in row groups
};

}  // namespace tessera::runtime
