// SPDX-License-Identifier: Apache-2.0
// From a trace to a program: all passes in order.
#pragma once

#include <tessera/graph/program.hpp>
#include <tessera/transform/combine.hpp>
#include <tessera/transform/control.hpp>
#include <tessera/transform/fuse.hpp>
#include <tessera/transform/lower_collectives.hpp>
#include <tessera/transform/lower_movement.hpp>
#include <tessera/transform/lowering.hpp>
#include <tessera/transform/materialise.hpp>
#include <tessera/transform/memory.hpp>
#include <tessera/transform/narrow_products.hpp>
#include <tessera/transform/partition.hpp>
#include <tessera/transform/placement.hpp>
#include <tessera/transform/product_fusion.hpp>
#include <tessera/transform/products_in_place.hpp>
#include <tessera/transform/propagate.hpp>
#include <tessera/transform/recompute.hpp>
#include <tessera/transform/revive.hpp>
#include <tessera/transform/row_groups.hpp>
#include <tessera/transform/sum_products.hpp>
#include <tessera/transform/widen.hpp>

#include <algorithm>

namespace tessera::transform {

constexpr bool moves_to_host(const graph::program& p) {
  return std::any_of(p.steps.begin(), p.steps.end(),
                     [](const graph::step& s) { return s.kind == graph::step_kind::to_host; });
}

/// Whether steps go together over blocks of rows; without that each step has all it reads and writes in memory.
enum class grouping { by_rows, none };

/// The program of a device, with its memory. `global` has the types of arguments and results as users know them.
constexpr graph::program plan(const graph::graph& global, const graph::graph& partitioned,
                              grouping groups = grouping::by_rows, const product_limits& limits = {}) {
  const fused_graph fused = fuse_and_recompute(partitioned);
  const graph::graph& local = fused.g;
  graph::program out;
  lowering pass(local, fused.f, out);
  for (std::size_t i = 0; i < local.parameters.size(); ++i) {
    const int id = local.parameters[i];
    const int b = pass.add_buffer(graph::space::argument, static_cast<std::int64_t>(i), local.type(id));
    pass.buffer_of[static_cast<std::size_t>(id)] = b;
    out.arguments.push_back({global.type(global.parameters[i]), b, -1});
  }
  for (const graph::output& o : global.outputs) out.results.push_back({global.type(o.node), -1, o.alias});
  lower_units(pass);
  sum_while_multiplying(out);
  place_results(local, out, pass.buffer_of);
  if (limits.in_place) products_in_place(out).run();
  start_in_results(out);
  if (out.loops > 0) reuse_slices(out);
  if (groups == grouping::by_rows) group_rows(out);
  product_fusion(out, limits).run();
  out.temporary_bytes = place_buffers(out);
  if (moves_to_host(out)) out.host_bytes = place_buffers(out, graph::space::host);
  count_copied_bases(out);
  return out;
}

/// All passes from a trace to a plan.
constexpr graph::program lower(const graph::graph& trace, grouping groups = grouping::by_rows,
                               const product_limits& limits = {}) {
  const graph::graph global = simplify(trace);
  const graph::graph local = narrow_products(partition(propagate(widen(global))));
  return plan(global, revive(combine_all_reduces(materialise(local))), groups, limits);
}

}  // namespace tessera::transform
