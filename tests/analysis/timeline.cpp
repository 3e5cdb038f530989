// SPDX-License-Identifier: Apache-2.0
#include <tessera/analysis/fits.hpp>
#include <tessera/analysis/lowered.hpp>
#include <tessera/analysis/timeline.hpp>
#include <tessera/transform/plan.hpp>
#include <tessera/transform/value_and_grad.hpp>
#include <tessera/ops/control.hpp>
#include <tessera/types.hpp>

#include "transform/random_graph.hpp"

#include <string>

using namespace support;
using ts::P;
using ts::analysis::live_bytes;
using ts::graph::program;

/// Three products in a row: the first one is read by the second and the third.
constexpr program three_products() {
  graph g = over(one);
  const value x = parameter(g, array({{16, 0}, {16, 0}}));
  const value first = product(x, x);
  const value second = product(first, x);
  result(g, product(second, first));
  return ts::transform::lower(g);
}

constexpr live_bytes live_in(const program& p) { return {p, ts::transform::lifetimes(p)}; }

TEST_CASE("Bytes in use rise with each value that is made and fall behind its last reader") {
  CHECK_BOTH(live_in(three_products()).by_step == ts::graph::list<std::int64_t>{1024, 2048, 2048});
  CHECK_BOTH(live_in(three_products()).peak == 1);
  CHECK_BOTH(live_in(three_products()).at_peak.size() == 2);
  CHECK_BOTH(three_products().temporary_bytes == 2048);
}

TEST_CASE("A timeline has a line a step, then the peak and what is there, largest first") {
  CHECK(ts::analysis::timeline_text(three_products()) ==
        "0  1024  ################                  dot 16x16x16x1\n"
        "1  2048  ################################  dot 16x16x16x1\n"
        "2  2048  ################################  dot 16x16x16x1\n"
        "peak 2048 of 2048 bytes in step 1\n"
        "  1 KiB  float32[256] of dot 16x16x16x1\n"
        "  1 KiB  float32[256] of dot 16x16x16x1\n");
}

std::size_t times(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST_CASE("Its picture has a column a step, the highest one as high as its share of the arena") {
  const std::string svg = ts::analysis::timeline_svg(three_products());
  CHECK(times(svg, "<title>") == 3);
  CHECK(times(svg, "height=\"120\" fill=\"#56b4e9\"><title>0: 1 KiB, dot 16x16x16x1") == 1);
  CHECK(times(svg, "height=\"240\" fill=\"#d55e00\"><title>1: 2 KiB, dot 16x16x16x1") == 1);
  CHECK(times(svg, "height=\"240\" fill=\"#56b4e9\"><title>2: 2 KiB, dot 16x16x16x1") == 1);
  CHECK(times(svg, "peak 2048 of 2048 bytes in step 1</text>") == 1);
  CHECK(times(svg, "float32[256] of dot") == 2);
  CHECK(svg.substr(svg.size() - 7) == "</svg>\n");
}

constexpr program nothing_kept() {
  graph g = over(one);
  result(g, parameter(g, array({{16, 0}})) * 2.0);
  return ts::transform::lower(g);
}

TEST_CASE("A program without temporaries has an empty timeline, one without steps no peak") {
  CHECK_BOTH(live_in(nothing_kept()).peak_bytes() == 0);
  CHECK_BOTH(live_in(nothing_kept()).at_peak.empty());
  CHECK_BOTH(live_in(program{}).peak == -1);
  CHECK(times(ts::analysis::timeline_text(nothing_kept()), "peak 0 of 0 bytes in step 0\n") == 1);
  CHECK(ts::analysis::timeline_text(program{}) == "peak 0 of 0 bytes\n");
  CHECK(times(ts::analysis::timeline_svg(program{}), "</svg>") == 1);
}

TEST_CASE("Sizes are written in the largest unit that they reach") {
  CHECK_BOTH(ts::analysis::size_text(0).view() == "0 B");
  CHECK_BOTH(ts::analysis::size_text(1023).view() == "1023 B");
  CHECK_BOTH(ts::analysis::size_text(1024).view() == "1 KiB");
  CHECK_BOTH(ts::analysis::size_text(1024 * 1024 * 25 / 2).view() == "12.5 MiB");
  CHECK_BOTH(ts::analysis::size_text(ts::GiB - 1).view() == "1023.9 MiB");
  CHECK_BOTH(ts::analysis::size_text(5000 * ts::TiB).view() == "5000 TiB");
}

/// What is wrong with a timeline, or nothing: what lives at once lies apart, but for a value that takes over the place
/// of one that dies in that step.
constexpr std::string_view timeline_fault(const program& p) {
  const ts::transform::lifetimes lives(p);
  const live_bytes live(p, lives);
  if (live.by_step.size() != p.steps.size()) return "a step is missing";
  for (int i = 0; i < static_cast<int>(p.steps.size()); ++i) {
    if (live.by_step[static_cast<std::size_t>(i)] > live.peak_bytes()) return "a step is above the peak";
    const ts::graph::list<int> now = live_bytes::live_at(p, lives, i);
    for (std::size_t x = 0; x < now.size(); ++x)
      for (std::size_t y = x + 1; y < now.size(); ++y) {
        const ts::graph::buffer& a = live_bytes::buffer(p, now[x]);
        const ts::graph::buffer& b = live_bytes::buffer(p, now[y]);
        if (a.place + a.bytes <= b.place || b.place + b.bytes <= a.place) continue;
        const bool taken_over = a.place == b.place && a.bytes == b.bytes &&
                                lives.dies[static_cast<std::size_t>(now[x])] == i &&
                                lives.born[static_cast<std::size_t>(now[y])] == i;
        if (!taken_over) return "two values that live at once overlap";
      }
  }
  std::int64_t sum = 0;
  for (int b : live.at_peak) sum += live_bytes::buffer(p, b).bytes;
  if (sum != live.peak_bytes()) return "the buffers at the peak do not add up to it";
  return live.peak_bytes() <= p.temporary_bytes ? "" : "the peak is above the arena";
}

constexpr program misplaced() {
  program p = three_products();
  for (ts::graph::buffer& b : p.buffers)
    if (b.where == ts::graph::space::temporary) b.place = 0;
  return p;
}

TEST_CASE("Values that live at once and lie at one place are found") {
  CHECK_BOTH(timeline_fault(three_products()) == "");
  CHECK_BOTH(timeline_fault(misplaced()) == "two values that live at once overlap");
}

TEST_CASE("In random programs no two values that live at once overlap, and the peak is within the arena") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    CHECK(timeline_fault(ts::transform::lower(random_graph(seed).trace)) == "");
  }
}

namespace looped {

using weights = ts::tensor<ts::f32, ts::shape<6, 32, 32>, P<>, ts::mesh<>>;
using batch = ts::tensor<ts::f32, ts::shape<16, 32>, P<>, ts::mesh<>>;

inline constexpr auto loss = [](auto w, auto x) {
  return ts::sum(
      ts::scan([](auto h, auto each) { return std::pair(ts::tanh(ts::matmul(h, each)), ts::none); }, x, w).first);
};
inline constexpr auto gradient = [](auto w, auto x) { return ts::grad(loss)(w, x); };

using lowered = ts::lowered<gradient, weights, batch>;

}  // namespace looped

TEST_CASE("Bodies of loops are shown once, and what a loop stacks is there from its start") {
  STATIC_REQUIRE(timeline_fault(looped::lowered::program()) == "");
  const std::string text = looped::lowered::timeline();
  CHECK(times(text, "\n") > looped::lowered::program().steps.size());
  CHECK(times(text, "  scan 6\n") == 2);
  CHECK(times(text, " in scan of 6\n") > 0);
  CHECK(times(looped::lowered::timeline_svg(), "fill-opacity=\"0.08\"") == 2);
  CHECK(times(text, "of " + std::to_string(looped::lowered::memory_analysis().temp_size_in_bytes) + " bytes") == 1);
}

TEST_CASE("A program fits if arguments, results of their own and the arena do, to the byte") {
  using namespace ts::literals;
  constexpr ts::analysis::memory_figures memory = looped::lowered::memory_analysis();
  constexpr std::int64_t needed =
      memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes;
  STATIC_REQUIRE(memory.alias_size_in_bytes == 0);
  STATIC_REQUIRE(ts::fits<looped::lowered>(needed));
  STATIC_REQUIRE_FALSE(ts::fits<looped::lowered>(needed - 1));
  STATIC_REQUIRE(ts::fits<looped::lowered>(ts::size_constant<needed>{}));
  STATIC_REQUIRE(ts::fits<looped::lowered>(80_GB));
  STATIC_REQUIRE(ts::fits<ts::analysis::refused_lowering>(1_KB));
}

TEST_CASE("What takes over an argument's memory needs none of its own, and what is largest comes first") {
  constexpr ts::analysis::memory_figures figures{100, 50, 40, 7};
  STATIC_REQUIRE(ts::analysis::needed_bytes(figures) == 117);
  const program p = looped::lowered::program();
  const auto all = ts::analysis::occupants(p, ts::mesh<>::value);
  REQUIRE(all.size() >= 3);
  CHECK(all[0].where == ts::graph::space::argument);
  CHECK(all[0].bytes == 6 * 32 * 32 * 4);
  CHECK(all[1].where == ts::graph::space::result);
  CHECK(all[1].bytes == 6 * 32 * 32 * 4);
  for (std::size_t i = 1; i < all.size(); ++i) CHECK(all[i].bytes <= all[i - 1].bytes);
}
