// SPDX-License-Identifier: Apache-2.0
// What is known of a step in which an error was reported: nothing, and no assertion about it fails besides.
#pragma once

#include <tessera/core/mesh.hpp>

#include <string>
#include <string_view>

namespace tessera::analysis {

/// A figure that stands in any true comparison.
struct unknown_figure {
  constexpr unknown_figure operator+(auto) const { return {}; }
  constexpr unknown_figure operator-(auto) const { return {}; }
  constexpr unknown_figure operator*(auto) const { return {}; }
  constexpr unknown_figure operator/(auto) const { return {}; }
  constexpr bool operator==(auto) const { return true; }
  constexpr bool operator!=(auto) const { return true; }
  constexpr bool operator<(auto) const { return true; }
  constexpr bool operator<=(auto) const { return true; }
  constexpr bool operator>(auto) const { return true; }
  constexpr bool operator>=(auto) const { return true; }
};

/// Has every figure of collective_counts, memory_figures and cost_figures.
struct unknown_figures {
  unknown_figure all_reduce, all_gather, reduce_scatter, all_to_all, collective_permute;
  unknown_figure all_reduce_bytes, all_gather_bytes, reduce_scatter_bytes, all_to_all_bytes, collective_permute_bytes;
  unknown_figure argument_size_in_bytes, output_size_in_bytes, alias_size_in_bytes, temp_size_in_bytes;
  unknown_figure flops, transcendentals, bytes_accessed;
};

/// Stands for the lowering of such a step.
struct refused_lowering {
  using mesh_type = mesh<>;
  static constexpr bool refused = true;

  static constexpr unknown_figures collectives() { return {}; }
  static constexpr unknown_figures memory_analysis() { return {}; }
  static constexpr unknown_figures cost_analysis() { return {}; }
  static constexpr std::string_view text() { return {}; }
  static std::string timeline() { return {}; }
  static std::string timeline_svg() { return {}; }
};

}  // namespace tessera::analysis
