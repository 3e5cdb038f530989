// SPDX-License-Identifier: Apache-2.0
// Values that wait in host memory between forward and backward: the same bits, fewer bytes on the device, and the
// figures that a run shows.
#include <tessera/tessera.hpp>

#include <tessera/runtime/evaluate.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

namespace ts = tessera;
namespace runtime = tessera::runtime;
using ts::names, ts::none, ts::P;

namespace {

using pair_mesh = ts::mesh<ts::axis<"data", 2>>;
using bytes = std::vector<std::byte>;
template <class Spec, std::int64_t... Extents>
using array = ts::tensor<ts::f32, ts::shape<Extents...>, Spec, pair_mesh>;
template <std::int64_t Layers>
using weights = array<P<>, Layers, 16, 16>;
using batch = array<P<"data">, 8, 16>;

bytes numbers(std::size_t count, int seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = 0.04F * static_cast<float>((static_cast<int>(i) * 7 + seed) % 23) - 0.5F;
  bytes all(count * sizeof(float));
  std::memcpy(all.data(), values.data(), all.size());
  return all;
}

inline constexpr auto layer = [](auto given, auto w) {
  auto x = ts::checkpoint_name<"in">(given);
  auto h = ts::checkpoint_name<"hidden">(ts::matmul(x, w));
  auto a = ts::checkpoint_name<"weights">(ts::softmax(h));
  return x + ts::matmul(ts::tanh(h) * a, w);
};
template <auto Policy>
inline constexpr auto kept = [](auto x, auto w) { return ts::checkpoint<Policy>(layer)(x, w); };
inline constexpr auto plain = layer;

template <auto Layer>
inline constexpr auto scanned =
    [](auto x, auto ws) { return ts::scan([](auto h, auto w) { return std::pair(Layer(h, w), none); }, x, ws).first; };
template <auto Outer, auto Layers>
inline constexpr auto around = [](auto x, auto ws) { return ts::checkpoint<Outer>(Layers)(x, ws); };
/// Two layers that share a weight, without a loop.
template <auto Layer>
inline constexpr auto twice = [](auto x, auto w) { return Layer(Layer(x, w), w); };

template <auto Model>
inline constexpr auto gradient = [](auto x, auto ws) {
  auto [value, slope] = ts::value_and_grad([&](auto v) { return ts::sum(ts::square(Model(x, v))); })(ws);
  return std::tuple(value, slope);
};
template <auto Model>
inline constexpr auto slope_of_slope = [](auto x, auto ws) {
  return ts::grad([&](auto v) {
    return ts::sum(ts::square(ts::grad([&](auto u) { return ts::sum(ts::square(Model(x, u))); })(v)));
  })(ws);
};

template <const auto& Step, class X, class W>
ts::graph::graph trace() {
  return ts::transform::traced<Step, X, W>::run();
}
template <const auto& Step, class W = weights<4>, class X = batch>
std::vector<bytes> run() {
  const ts::graph::graph g = trace<Step, X, W>();
  std::vector<bytes> inputs;
  for (const int parameter : g.parameters)
    inputs.push_back(numbers(static_cast<std::size_t>(g.type(parameter).size()), parameter));
  return runtime::evaluate(g, inputs);
}
template <const auto& Step, class W = weights<4>>
ts::analysis::memory_figures memory() {
  const ts::graph::graph g = trace<Step, batch, W>();
  return ts::analysis::summarise(ts::transform::lower(g), g.mesh).memory;
}

inline constexpr auto hidden_away = ts::save_and_offload_only_these_names<names<"weights">, names<"hidden">>;
inline constexpr auto all_away = ts::save_and_offload_only_these_names<names<>, names<"in", "hidden">>;
inline constexpr auto dots_away = ts::offload_dot_with_no_batch_dims;

constexpr std::int64_t block = 8 / 2 * 16 * 4;  // bytes of an activation on one of two devices

}  // namespace

TEST_CASE("Offloading changes no bit") {
  const auto expected = run<gradient<scanned<plain>>>();
  CHECK((run<gradient<scanned<kept<dots_away>>>>() == expected));
  CHECK((run<gradient<scanned<kept<hidden_away>>>>() == expected));
  CHECK((run<gradient<scanned<kept<all_away>>>>() == expected));
  using w = array<P<>, 16, 16>;
  const auto unrolled = run<gradient<twice<plain>>, w>();
  CHECK((run<gradient<twice<kept<dots_away>>>, w>() == unrolled));
  CHECK((run<gradient<twice<kept<all_away>>>, w>() == unrolled));
  CHECK((run<gradient<twice<kept<all_away>>>, w, array<P<>, 8, 16>>() ==
         run<gradient<twice<plain>>, w, array<P<>, 8, 16>>()));
}

TEST_CASE("What is offloaded is kept by the host, one of each trip, and moved once each way") {
  const auto saved = memory<gradient<scanned<kept<ts::dots_with_no_batch_dims_saveable>>>>();
  const auto away = memory<gradient<scanned<kept<dots_away>>>>();
  CHECK(saved.host_temp_size_in_bytes == 0);
  CHECK(saved.bytes_to_host == 0);
  CHECK(away.host_temp_size_in_bytes == 4 * block);
  CHECK(away.bytes_to_host == 4 * block);
  CHECK(away.bytes_from_host == 4 * block);
  CHECK(saved.temp_size_in_bytes - away.temp_size_in_bytes >= 3 * block);
}

TEST_CASE("A device whose activations are all offloaded needs no more for more layers") {
  const auto few = memory<gradient<scanned<kept<all_away>>>, weights<4>>();
  const auto many = memory<gradient<scanned<kept<all_away>>>, weights<16>>();
  CHECK(few.host_temp_size_in_bytes == 2 * 4 * block);
  CHECK(many.host_temp_size_in_bytes == 2 * 16 * block);
  CHECK(many.temp_size_in_bytes == few.temp_size_in_bytes);
}

TEST_CASE("Of nested checkpoints the outer one says where a value waits, and a loop in one hands over slices") {
  const auto expected = run<gradient<scanned<plain>>>();
  constexpr auto hidden_saved = ts::save_only_these_names<"hidden">;
  CHECK((run<gradient<around<all_away, scanned<kept<hidden_saved>>>>>() == expected));
  CHECK((run<gradient<around<hidden_saved, scanned<kept<dots_away>>>>>() == expected));
  CHECK((run<gradient<around<ts::nothing_saveable, scanned<kept<dots_away>>>>>() == expected));
  CHECK((run<gradient<around<dots_away, scanned<plain>>>>() == expected));

  CHECK(memory<gradient<around<all_away, scanned<kept<hidden_saved>>>>>().bytes_to_host == 2 * 4 * block);
  CHECK(memory<gradient<around<hidden_saved, scanned<kept<dots_away>>>>>().bytes_to_host == 0);
  CHECK(memory<gradient<around<ts::nothing_saveable, scanned<kept<dots_away>>>>>().bytes_to_host == 4 * block);
  const auto loop_inside = memory<gradient<around<dots_away, scanned<plain>>>>();
  CHECK(loop_inside.host_temp_size_in_bytes == 4 * block);
  CHECK(loop_inside.bytes_from_host == 4 * block);
}

TEST_CASE("Moves are their own derivative") {
  using w = array<P<>, 16, 16>;
  const auto expected = run<slope_of_slope<twice<kept<ts::save_only_these_names<"hidden">>>>, w>();
  CHECK((run<slope_of_slope<twice<kept<dots_away>>>, w>() == run<slope_of_slope<twice<kept<ts::dots_saveable>>>, w>()));
  CHECK((run<slope_of_slope<twice<kept<all_away>>>, w>() == expected));
  CHECK(memory<slope_of_slope<twice<kept<dots_away>>>, w>().bytes_to_host > 0);
}

TEST_CASE("Two policies let be saved what either does, the first one says where") {
  constexpr auto both = ts::save_from_both_policies<ts::save_only_these_names<"weights">, dots_away>;
  constexpr auto swapped = ts::save_from_both_policies<dots_away, ts::dots_saveable>;
  CHECK(memory<gradient<scanned<kept<both>>>>().host_temp_size_in_bytes == 4 * block);
  CHECK(memory<gradient<scanned<kept<swapped>>>>().host_temp_size_in_bytes == 4 * block);
  CHECK(memory<gradient<scanned<kept<ts::save_from_both_policies<ts::dots_saveable, dots_away>>>>>()
            .host_temp_size_in_bytes == 0);
}

TEST_CASE("A run fills the bytes of host memory that the plan says, and moves as many as it counts") {
  const ts::graph::graph g = trace<gradient<scanned<kept<all_away>>>, batch, weights<4>>();
  runtime::executor executor = runtime::interpreter(g);
  const ts::graph::program& p = executor.program();
  std::vector<runtime::storage_ptr> held;
  std::vector<runtime::storage*> arguments, results;
  const auto hold = [&](const ts::aval& type) {
    held.push_back(runtime::make_storage(type, g.mesh));
    return held.back().get();
  };
  for (const ts::graph::interface_value& a : p.arguments) arguments.push_back(hold(a.type));
  for (const ts::graph::interface_value& r : p.results) results.push_back(hold(r.type));

  std::vector<char> changed(executor.host_arena().size(), 0);
  const std::byte* const place = executor.host_arena().data();
  for (const int pattern : {0x55, 0xaa}) {
    std::memset(executor.host_arena().data(), pattern, changed.size());
    executor.run(arguments, results);
    for (std::size_t i = 0; i < changed.size(); ++i)
      if (executor.host_arena()[i] != static_cast<std::byte>(pattern)) changed[i] = 1;
  }
  const auto figures = ts::analysis::summarise(p, g.mesh).memory;
  CHECK(executor.host_arena().data() == place);
  CHECK(std::count(changed.begin(), changed.end(), 1) == 2 * figures.host_temp_size_in_bytes);
  CHECK(ts::analysis::live_bytes(p, ts::transform::lifetimes(p), ts::graph::space::host).peak_bytes() ==
        figures.host_temp_size_in_bytes);

  std::int64_t there = 0, back = 0;
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const auto& from = p.accesses[static_cast<std::size_t>(p.steps[i].first)];
    const auto moved = [&] {
      return executor.kernel_runs()[i] * p.buffers[static_cast<std::size_t>(from.buffer)].bytes;
    };
    if (p.steps[i].kind == ts::graph::step_kind::to_host) there += moved();
    if (p.steps[i].kind == ts::graph::step_kind::from_host) back += moved();
  }
  CHECK(there == 2 * figures.bytes_to_host);
  CHECK(back == 2 * figures.bytes_from_host);
}

TEST_CASE("Gradients with offloaded values may be mapped over examples") {
  constexpr auto mapped = []<auto Model>() {
    return [](auto x, auto ws) {
      return ts::vmap([](auto one, auto w) { return std::get<1>(gradient<Model>(one, w)); })(x, ws);
    };
  };
  static constexpr auto offloading = mapped.operator()<twice<kept<all_away>>>();
  static constexpr auto keeping = mapped.operator()<twice<plain>>();
  using many = array<P<>, 4, 2, 16>;
  CHECK((run<offloading, weights<4>, many>() == run<keeping, weights<4>, many>()));
}
