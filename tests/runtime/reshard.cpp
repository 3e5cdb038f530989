// SPDX-License-Identifier: Apache-2.0
// Every spec to every spec: the right array, and no more bytes than gathering and slicing would move.
#include "support.hpp"

#include <tessera/analysis/summary.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>

using namespace runtime_test;

namespace {

mesh_value mesh_of_sizes(std::int64_t x, std::int64_t y) { return {2, {"x", "y"}, {x, y}}; }

graph::graph resharding(const mesh_value& mesh, const aval& from, const aval& to) {
  graph::graph g;
  g.mesh = mesh;
  const value x{&g, g.add_parameter(from)};
  g.outputs.push_back({graph::reshard(x, to).id, -1});
  return g;
}

/// Bytes that arrive at a device from others.
std::int64_t arriving(const graph::graph& local, const mesh_value& mesh) {
  std::int64_t bytes = 0;
  for (const graph::node& n : local.nodes) {
    const std::int64_t n_devices = devices_along(static_cast<axis_list>(n.attribute[0]), mesh);
    if (n.code == op::all_gather) bytes += (n_devices - 1) * local.type(n.operands[0]).bytes();
    if (n.code == op::all_to_all) bytes += n.type.bytes() / n_devices * (n_devices - 1);
    if (n.code == op::permute) bytes += n.type.bytes();
  }
  return bytes;
}

/// The same for the plain way: slice where that is possible, gather what differs dimension by dimension, slice the
/// rest.
std::int64_t arriving_when_gathered(aval from, const aval& to, const mesh_value& mesh) {
  const auto slice = [&] {
    for (int d = 0; d < from.rank; ++d) {
      const axis_list want = to.dims[d].axes;
      const axis_list have = from.dims[d].axes;
      if (starts_with(want, have) && (set_of(without_head(want, have)) & from.cut()) == 0) from.dims[d].axes = want;
    }
  };
  slice();
  std::int64_t bytes = 0;
  for (int d = 0; d < from.rank; ++d) {
    axis_list kept = from.dims[d].axes;
    while (!starts_with(to.dims[d].axes, kept)) kept &= ~(15U << (4 * (axis_count(kept) - 1)));
    const axis_list gathered = without_head(from.dims[d].axes, kept);
    bytes += (devices_along(gathered, mesh) - 1) * local_block(from, mesh).bytes();
    from.dims[d].axes = kept;
  }
  return bytes;
}

void check_all(const mesh_value& mesh, const aval& shape, bool run) {
  std::vector<double> numbers(static_cast<std::size_t>(shape.size()));
  std::iota(numbers.begin(), numbers.end(), 1.0);
  const std::vector<bytes> input{to_bytes(numbers, shape.type)};
  const std::vector<aval> specs = all_specs(shape, mesh);
  int wrong = 0;
  int dearer = 0;
  for (const aval& from : specs)
    for (const aval& to : specs) {
      INFO(text_of(from, mesh) << " to " << text_of(to, mesh));
      const graph::graph g = resharding(mesh, from, to);
      if (run && runtime::evaluate(g, input)[0] != input[0]) FAIL_CHECK("wrong array " << ++wrong);
      const graph::graph local = transform::partition(transform::simplify(g));
      const bool dear = arriving(local, mesh) > arriving_when_gathered(from, to, mesh);
      if (dear) FAIL_CHECK("moves more than gathering would: " << ++dearer);
    }
  CHECK(wrong + dearer == 0);
}

analysis::collective_counts counts_of(const mesh_value& mesh, const aval& from, const aval& to) {
  return analysis::summarise(transform::lower(resharding(mesh, from, to)), mesh).collectives;
}

aval cut_as(aval a, std::initializer_list<axis_list> axes) {
  int d = 0;
  for (axis_list list : axes) a.dims[d++].axes = list;
  return a;
}

constexpr axis_list x = axis_append(0, 0);
constexpr axis_list y = axis_append(0, 1);
constexpr axis_list xy = axis_append(x, 1);
constexpr axis_list yx = axis_append(y, 0);

}  // namespace

TEST_CASE("reshard from every spec to every spec gives the same array and moves no more than gather and slice") {
  for (const mesh_value& mesh : {mesh_of_sizes(2, 2), mesh_of_sizes(2, 4)}) {
    check_all(mesh, array_type(dtype::f32, {8, 16}), true);
    check_all(mesh, array_type(dtype::i32, {8, 8, 16}), true);
    check_all(mesh, array_type(dtype::bool_, {8}), true);
  }
  const mesh_value cube{3, {"x", "y", "z"}, {2, 2, 2}};
  check_all(cube, array_type(dtype::f32, {8, 16}), true);
  check_all(mesh_value{3, {"x", "y", "z"}, {2, 3, 4}}, array_type(dtype::f32, {24, 24}), false);
}

TEST_CASE("reshard with one collective where one will do, counted with the bytes of its operand") {
  const mesh_value mesh = mesh_of_sizes(2, 4);
  const aval a = array_type(dtype::f32, {8, 16});
  const auto moved = counts_of(mesh, cut_as(a, {x, 0}), cut_as(a, {0, x}));
  CHECK(moved.all_to_all == 1);
  CHECK(moved.all_to_all_bytes == 4 * 8 * 16 / 2);
  CHECK(moved.all_gather + moved.collective_permute == 0);
  const auto both = counts_of(mesh, cut_as(a, {xy, 0}), cut_as(a, {0, xy}));
  CHECK(both.all_to_all == 1);
  CHECK(both.all_gather + both.collective_permute == 0);
  const auto inner = counts_of(mesh, cut_as(a, {xy, 0}), cut_as(a, {x, y}));
  CHECK(inner.all_to_all == 1);
  CHECK(inner.all_to_all_bytes == 4 * 8 * 16 / 8);
  CHECK(inner.all_gather + inner.collective_permute == 0);
  const auto turned = counts_of(mesh, cut_as(a, {xy, 0}), cut_as(a, {yx, 0}));
  CHECK(turned.collective_permute == 1);
  CHECK(turned.collective_permute_bytes == 4 * 8 * 16 / 8);
  CHECK(turned.all_gather + turned.all_to_all == 0);
  const auto halved = counts_of(mesh, cut_as(a, {x, 0}), cut_as(a, {0, 0}));
  CHECK(halved.all_gather == 1);
  CHECK(halved.all_gather_bytes == 4 * 8 * 16 / 2);
  CHECK(counts_of(mesh, cut_as(a, {0, 0}), cut_as(a, {xy, 0})).all_gather_bytes == 0);
}

TEST_CASE("An all-to-all splits and joins any two dimensions, or blocks of one dimension") {
  const mesh_value mesh = mesh_of_sizes(2, 2);
  for (int split = 0; split < 3; ++split)
    for (int join = 0; join < 3; ++join) {
      graph::graph local;
      local.mesh = mesh;
      aval block = array_type(dtype::f32, {4, 6, 8});
      block.varying = 0b11;
      const value p{&local, local.add_parameter(block)};
      aval type = block;
      type.dims[split].extent /= 2;
      type.dims[join].extent *= 2;
      const value made = graph::write(&local, op::all_to_all, type, {p.id});
      graph::node& n = local.at(made.id);
      n.attribute[0] = y;
      n.attribute[1] = static_cast<std::uint64_t>(split);
      n.attribute[2] = static_cast<std::uint64_t>(join);
      const graph::program program = [&] {
        graph::graph global;
        global.mesh = mesh;
        aval whole = block;
        whole.varying = 0;
        global.add_parameter(whole);
        local.outputs.push_back({made.id, -1});
        global.outputs.push_back({0, -1});
        return transform::plan(global, transform::materialise(local));
      }();
      const graph::step& s = program.steps[0];
      const graph::buffer target{graph::space::temporary, 0, type.bytes(), dtype::f32, 0b11};
      std::vector<std::vector<float>> from(4, std::vector<float>(static_cast<std::size_t>(block.size())));
      std::vector<std::vector<float>> to(4, std::vector<float>(static_cast<std::size_t>(type.size()), -1));
      for (std::size_t d = 0; d < 4; ++d) std::iota(from[d].begin(), from[d].end(), 1000.0F * static_cast<float>(d));
      const auto source_of = [&](std::int64_t d) {
        return reinterpret_cast<const std::byte*>(from[static_cast<std::size_t>(d)].data());
      };
      const auto target_of = [&](std::int64_t d) {
        return reinterpret_cast<std::byte*>(to[static_cast<std::size_t>(d)].data());
      };
      runtime::collective<float, decltype(source_of), decltype(target_of)>{s, mesh, target, source_of, target_of}();
      INFO("split " << split << ", join " << join);
      int wrong = 0;
      for (std::int64_t device = 0; device < 4; ++device)
        for (std::int64_t at = 0; at < type.size(); ++at) {
          std::int64_t place[3] = {at / type.dims[2].extent / type.dims[1].extent,
                                   at / type.dims[2].extent % type.dims[1].extent, at % type.dims[2].extent};
          const std::int64_t joined = type.dims[join].extent / 2;
          const std::int64_t member = place[join] / joined;
          place[join] %= joined;
          place[split] += device % 2 * (block.dims[split].extent / 2);
          const std::int64_t element = (place[0] * block.dims[1].extent + place[1]) * block.dims[2].extent + place[2];
          const std::int64_t sender = device / 2 * 2 + member;
          wrong += to[static_cast<std::size_t>(device)][static_cast<std::size_t>(at)] !=
                   from[static_cast<std::size_t>(sender)][static_cast<std::size_t>(element)];
        }
      CHECK(wrong == 0);
    }
}
