// SPDX-License-Identifier: Apache-2.0
// What a timeline says is in use is really used: a run changes at least as many bytes of the arena as the peak has, and
// no byte behind the plan's.
#include <tessera/analysis/timeline.hpp>
#include <tessera/runtime/evaluate.hpp>

#include "transform/random_graph.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace ts = tessera;
namespace runtime = tessera::runtime;

namespace {

/// Bytes of the first device's arena that a run on zeros changes, whichever of two patterns lay there.
std::int64_t changed_bytes(runtime::executor& run, const ts::mesh_value& mesh) {
  const ts::graph::program& p = run.program();
  std::vector<runtime::storage_ptr> held;
  std::vector<runtime::storage*> arguments, results;
  const auto hold = [&](const ts::aval& type) {
    held.push_back(runtime::make_storage(type, mesh));
    return held.back().get();
  };
  for (const ts::graph::interface_value& a : p.arguments) arguments.push_back(hold(a.type));
  for (const ts::graph::interface_value& r : p.results)
    results.push_back(r.alias < 0 ? hold(r.type) : arguments[static_cast<std::size_t>(r.alias)]);
  std::vector<char> changed(static_cast<std::size_t>(run.arena_stride()), 0);
  for (const int pattern : {0x55, 0xaa}) {
    if (!run.arena().empty()) std::memset(run.arena().data(), pattern, run.arena().size());
    run.run(arguments, results);
    for (std::size_t i = 0; i < changed.size(); ++i)
      if (run.arena()[i] != static_cast<std::byte>(pattern)) changed[i] = 1;
  }
  return std::count(changed.begin(), changed.end(), 1);
}

}  // namespace

TEST_CASE("a run uses the bytes that the timeline has at its peak, in an arena that stays where it is") {
  std::int64_t most = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    const support::graph trace = support::random_graph(seed).trace;
    runtime::executor run = runtime::interpreter(trace);
    const std::byte* const arena = run.arena().data();
    const ts::graph::program& p = run.program();
    const std::int64_t peak = ts::analysis::live_bytes(p, ts::transform::lifetimes(p)).peak_bytes();
    const std::int64_t used = changed_bytes(run, trace.mesh);
    CHECK(peak <= used);
    CHECK(used <= p.temporary_bytes);
    CHECK(run.arena().data() == arena);
    most = std::max(most, peak);
  }
  CHECK(most > 0);
}
