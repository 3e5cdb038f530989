// SPDX-License-Identifier: Apache-2.0
// Whether a program has room on a device, as an assertion that names what is largest.
#pragma once

#include <tessera/analysis/lowered.hpp>
#include <tessera/analysis/timeline.hpp>
#include <tessera/core/diagnose.hpp>
#include <tessera/core/units.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace tessera {

namespace analysis {

/// Bytes that a program needs on a device at once: arguments, results that have memory of their own, temporaries.
constexpr std::int64_t needed_bytes(const memory_figures& m) {
  return m.argument_size_in_bytes + m.output_size_in_bytes - m.alias_size_in_bytes + m.temp_size_in_bytes;
}

/// One of the things that take room: an argument, a result or a temporary.
struct occupant {
  graph::space where = graph::space::temporary;
  int number = 0;  ///< of the argument, the result or the buffer
  std::int64_t bytes = 0;
};

/// What takes room on a device, largest first; of temporaries those that are there at the peak.
constexpr graph::list<occupant> occupants(const graph::program& p, const mesh_value& mesh) {
  graph::list<occupant> all;
  for (std::size_t i = 0; i < p.arguments.size(); ++i)
    all.push_back({graph::space::argument, static_cast<int>(i), local_block(p.arguments[i].type, mesh).bytes()});
  for (std::size_t i = 0; i < p.results.size(); ++i)
    if (p.results[i].alias < 0)
      all.push_back({graph::space::result, static_cast<int>(i), local_block(p.results[i].type, mesh).bytes()});
  for (int b : live_bytes(p, transform::lifetimes(p)).at_peak)
    all.push_back({graph::space::temporary, b, live_bytes::buffer(p, b).bytes});
  std::sort(all.begin(), all.end(), [](const occupant& a, const occupant& b) {
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    return a.where != b.where ? a.where < b.where : a.number < b.number;
  });
  return all;
}

/// `needs 83886080 bytes, has 67108864; largest 32 MiB arg0 float32[8388608], ...`.
template <class Program, std::int64_t Budget>
constexpr text_buffer room_details() {
  constexpr std::size_t shown = 4;
  const graph::program p = Program::program();
  const mesh_value mesh = Program::mesh_type::value;
  text_buffer out;
  out << "needs " << needed_bytes(Program::memory_analysis()) << " bytes, has " << Budget << "; largest ";
  std::size_t count = 0;
  for (const occupant& each : occupants(p, mesh)) {
    if (count++ == shown) break;
    out << (count > 1 ? ", " : "") << size_text(each.bytes).view() << " ";
    const auto at = static_cast<std::size_t>(each.number);
    switch (each.where) {
      case graph::space::argument: write_aval(out << "arg" << each.number << " ", p.arguments[at].type, mesh); break;
      case graph::space::result: write_aval(out << "result" << each.number << " ", p.results[at].type, mesh); break;
      default: out << "temporary " << buffer_text(p, each.number).view(); break;
    }
  }
  return out;
}

}  // namespace analysis

/// Whether a lowered program has room in `bytes` on each device: its arguments, results that do not take over an
/// argument's memory, and its arena. True of a step in which an error was reported.
template <class Program>
constexpr bool fits(std::int64_t bytes) {
  if constexpr (Program::refused) return true;
  else return analysis::needed_bytes(Program::memory_analysis()) <= bytes;
}

/// `static_assert(fits<lowered<step, ...>>(80_GB))`: the same of a constant; a program that does not fit stops the
/// build with a sentence that names its largest arrays.
template <class Program, std::int64_t Bytes>
constexpr bool fits(std::integral_constant<std::int64_t, Bytes>) {
  if constexpr (fits<Program>(Bytes)) return true;
  else return diagnose(report<message::program_fits, &analysis::room_details<Program, Bytes>>);
}

}  // namespace tessera
