// SPDX-License-Identifier: Apache-2.0
// Collectives of shard_map bodies, run on several meshes: against a simulation of the devices, and their gradients,
// first and second, against central differences.
#include "support.hpp"

#include <tessera/graph/manual.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>

using namespace runtime_test;

namespace {

/// What each device holds: blocks of equal extents.
struct devices {
  std::vector<std::int64_t> extents;
  std::vector<std::vector<double>> blocks;

  std::int64_t outer(int d) const {
    std::int64_t n = 1;
    for (int i = 0; i < d; ++i) n *= extents[static_cast<std::size_t>(i)];
    return n;
  }
  std::int64_t inner(int d) const {
    std::int64_t n = 1;
    for (std::size_t i = static_cast<std::size_t>(d) + 1; i < extents.size(); ++i) n *= extents[i];
    return n;
  }
};

/// The devices that differ from `device` along `axes` only, in the order of the axes.
std::vector<std::size_t> group_of(std::size_t device, axis_list axes, const mesh_value& mesh) {
  std::vector<std::size_t> group;
  for (std::int64_t i = 0; i < devices_along(axes, mesh); ++i)
    group.push_back(static_cast<std::size_t>(device_at(static_cast<std::int64_t>(device), axes, i, mesh)));
  return group;
}
std::size_t place_of(std::size_t device, axis_list axes, const mesh_value& mesh) {
  return static_cast<std::size_t>(block_index(static_cast<std::int64_t>(device), axes, mesh));
}

std::vector<double> summed(const devices& from, std::size_t device, axis_list axes, const mesh_value& mesh) {
  std::vector<double> sum(from.blocks[device].size(), 0);
  for (std::size_t other : group_of(device, axes, mesh))
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += from.blocks[other][i];
  return sum;
}

/// Block `place` of `count` along dimension `d` of an array.
std::vector<double> slice(const std::vector<double>& whole, const devices& shape, int d, std::size_t place,
                          std::int64_t count) {
  const std::int64_t run = shape.extents[static_cast<std::size_t>(d)] / count * shape.inner(d);
  std::vector<double> part;
  for (std::int64_t o = 0; o < shape.outer(d); ++o)
    for (std::int64_t i = 0; i < run; ++i)
      part.push_back(whole[static_cast<std::size_t>((o * count + static_cast<std::int64_t>(place)) * run + i)]);
  return part;
}

/// Parts side by side along dimension `d` of each.
std::vector<double> joined(const std::vector<std::vector<double>>& parts, const devices& shape, int d) {
  const std::int64_t run = shape.extents[static_cast<std::size_t>(d)] * shape.inner(d);
  std::vector<double> whole;
  for (std::int64_t o = 0; o < shape.outer(d); ++o)
    for (const auto& part : parts)
      for (std::int64_t i = 0; i < run; ++i) whole.push_back(part[static_cast<std::size_t>(o * run + i)]);
  return whole;
}

/// One collective: as a node, and as what happens to the blocks of the devices.
struct manual_case {
  std::string name;
  std::function<value(value, axis_list)> build;
  std::function<devices(const devices&, axis_list, const mesh_value&)> simulate;
  bool differentiable = true;
};

std::vector<double> extremum(const devices& from, std::size_t device, axis_list axes, const mesh_value& mesh,
                             bool largest) {
  std::vector<double> best = from.blocks[device];
  for (std::size_t other : group_of(device, axes, mesh))
    for (std::size_t i = 0; i < best.size(); ++i)
      best[i] = largest ? std::max(best[i], from.blocks[other][i]) : std::min(best[i], from.blocks[other][i]);
  return best;
}

devices each(const devices& from, const std::function<std::vector<double>(std::size_t)>& f) {
  devices to{from.extents, {}};
  for (std::size_t d = 0; d < from.blocks.size(); ++d) to.blocks.push_back(f(d));
  return to;
}

manual_case sum_case() {
  return {"psum", [](value v, axis_list axes) { return graph::psum(v, axes); },
          [](const devices& from, axis_list axes, const mesh_value& mesh) {
            return each(from, [&](std::size_t d) { return summed(from, d, axes, mesh); });
          }};
}
manual_case extremum_case(bool largest) {
  return {largest ? "pmax" : "pmin", [=](value v, axis_list axes) { return graph::psum(v, axes, largest ? 1 : 2); },
          [=](const devices& from, axis_list axes, const mesh_value& mesh) {
            return each(from, [&](std::size_t d) { return extremum(from, d, axes, mesh, largest); });
          },
          false};
}
manual_case gather_case(int dim, manual_state to) {
  return {"all_gather along " + std::to_string(dim) + (to == manual_state::varying ? " to varying" : " to invarying"),
          [=](value v, axis_list axes) { return graph::gather_blocks(v, axes, dim, to); },
          [=](const devices& from, axis_list axes, const mesh_value& mesh) {
            devices result = each(from, [&](std::size_t d) {
              std::vector<std::vector<double>> parts;
              for (std::size_t other : group_of(d, axes, mesh)) parts.push_back(from.blocks[other]);
              return joined(parts, from, dim);
            });
            result.extents[static_cast<std::size_t>(dim)] *= devices_along(axes, mesh);
            return result;
          }};
}
manual_case scatter_case(int dim) {
  return {"psum_scatter along " + std::to_string(dim),
          [=](value v, axis_list axes) { return graph::scatter_blocks(v, axes, dim); },
          [=](const devices& from, axis_list axes, const mesh_value& mesh) {
            const std::int64_t n = devices_along(axes, mesh);
            devices result = each(from, [&](std::size_t d) {
              return slice(summed(from, d, axes, mesh), from, dim, place_of(d, axes, mesh), n);
            });
            result.extents[static_cast<std::size_t>(dim)] /= n;
            return result;
          }};
}
manual_case take_case(int dim) {
  return {"each its block of a sum, along " + std::to_string(dim),
          [=](value v, axis_list axes) { return graph::take_block(graph::psum(v, axes), axes, dim); },
          scatter_case(dim).simulate};
}
manual_case index_case() {
  return {"times the place of the device",
          [](value v, axis_list axes) {
            const value index =
                graph::write(v.owner, op::axis_index,
                             sharding::with_state(scalar_aval(dtype::i32), set_of(axes), manual_state::varying), {});
            v.owner->at(index.id).attribute[0] = axes;
            return v * graph::convert(index, v.type().type);
          },
          [](const devices& from, axis_list axes, const mesh_value& mesh) {
            return each(from, [&](std::size_t d) {
              std::vector<double> scaled = from.blocks[d];
              for (double& x : scaled) x *= static_cast<double>(place_of(d, axes, mesh));
              return scaled;
            });
          }};
}

manual_case exchange_case(int split, int concat) {
  return {"all_to_all from " + std::to_string(split) + " to " + std::to_string(concat),
          [=](value v, axis_list axes) { return graph::exchange_blocks(v, axes, split, concat); },
          [=](const devices& from, axis_list axes, const mesh_value& mesh) {
            const std::int64_t n = devices_along(axes, mesh);
            devices piece = from;
            piece.extents[static_cast<std::size_t>(split)] /= n;
            devices result = each(from, [&](std::size_t d) {
              std::vector<std::vector<double>> parts;
              for (std::size_t other : group_of(d, axes, mesh))
                parts.push_back(slice(from.blocks[other], from, split, place_of(d, axes, mesh), n));
              return joined(parts, piece, concat);
            });
            result.extents = piece.extents;
            result.extents[static_cast<std::size_t>(concat)] *= n;
            return result;
          }};
}
/// `sends(n)` is the permutation along n devices, `source(place, n)` says who sends to a place, or -1.
manual_case permute_case(const std::string& name, std::function<graph::permutation(std::int64_t)> sends,
                         std::function<std::int64_t(std::int64_t, std::int64_t)> source) {
  return {"ppermute " + name,
          [=](value v, axis_list axes) { return graph::permute_blocks(v, axes, sends(devices_along(axes, v.mesh()))); },
          [=](const devices& from, axis_list axes, const mesh_value& mesh) {
            return each(from, [&](std::size_t d) {
              const std::int64_t n = devices_along(axes, mesh);
              const std::int64_t sender = source(static_cast<std::int64_t>(place_of(d, axes, mesh)), n);
              if (sender < 0) return std::vector<double>(from.blocks[d].size(), 0);
              return from.blocks[group_of(d, axes, mesh)[static_cast<std::size_t>(sender)]];
            });
          }};
}
manual_case ring_case(int offset) {
  return permute_case(
      "in a ring by " + std::to_string(offset),
      [=](std::int64_t) { return graph::permutation::regular(graph::permutation::form::ring, offset); },
      [=](std::int64_t place, std::int64_t n) { return (place + 3 * n - offset) % n; });
}
manual_case shift_case(int offset) {
  return permute_case(
      "shifted by " + std::to_string(offset),
      [=](std::int64_t) { return graph::permutation::regular(graph::permutation::form::shift, offset); },
      [=](std::int64_t place, std::int64_t n) {
        return place - offset >= 0 && place - offset < n ? place - offset : -1;
      });
}
/// Each device but the last sends to the one that faces it.
manual_case facing_case() {
  return permute_case(
      "by pairs",
      [](std::int64_t n) {
        graph::permutation sends;
        for (int from = 0; from + 1 < static_cast<int>(n); ++from) sends.connect(from, static_cast<int>(n) - 1 - from);
        return sends;
      },
      [](std::int64_t place, std::int64_t n) { return place == 0 ? -1 : n - 1 - place; });
}

std::vector<manual_case> all_cases() {
  return {sum_case(),
          extremum_case(true),
          extremum_case(false),
          gather_case(0, manual_state::varying),
          gather_case(1, manual_state::varying),
          gather_case(1, manual_state::invarying),
          scatter_case(0),
          scatter_case(1),
          take_case(0),
          take_case(1),
          index_case(),
          exchange_case(0, 1),
          exchange_case(1, 0),
          exchange_case(1, 1),
          ring_case(1),
          ring_case(-2),
          shift_case(1),
          shift_case(-1),
          facing_case()};
}

/// Every way to name axes of a mesh.
std::vector<axis_list> choices_of_axes(const mesh_value& mesh) {
  std::vector<axis_list> choices;
  for (int a = 0; a < mesh.rank; ++a) {
    choices.push_back(axis_append(0, a));
    for (int b = 0; b < mesh.rank; ++b)
      if (a != b) choices.push_back(axis_append(axis_append(0, a), b));
  }
  return choices;
}

constexpr std::int64_t rows = 8;
constexpr std::int64_t columns = 16;

aval whole_type(const mesh_value& mesh, dtype type) {
  axis_list all = 0;
  for (int axis = 0; axis < mesh.rank; ++axis) all = axis_append(all, axis);
  aval whole = array_type(type, {rows * mesh.devices(), columns});
  whole.dims[0].axes = all;
  return whole;
}

axis_set all_of(const mesh_value& mesh) { return static_cast<axis_set>((1U << mesh.rank) - 1); }

/// The body's value as an array: its blocks side by side along dimension 0 over every axis it varies over.
value leave(value v) {
  spec_value spec;
  spec.rank = v.type().varying == 0 ? 0 : 1;
  for (int axis = 0; axis < v.mesh().rank; ++axis)
    if (v.type().varying & bit_of(axis)) spec.dims[0] = axis_append(spec.dims[0], axis);
  return graph::to_global(v, graph::expect(sharding::to_global(v.type(), spec, all_of(v.mesh()), v.mesh())));
}

value enter(value v) {
  return graph::to_local(v, graph::expect(sharding::to_local(v.type(), all_of(v.mesh()), v.mesh())));
}

struct run_of_case {
  graph::graph g{};
  std::vector<bytes> inputs{};
};

std::vector<double> numbers_for(std::int64_t count, unsigned seed) {
  std::mt19937 bits(seed);
  return draw({{}, -4, 5, true}, count, bits);
}

/// What `leave` makes of the devices' blocks.
std::vector<double> expected_array(const devices& d, axis_set varying, const mesh_value& mesh) {
  std::vector<std::vector<double>> parts;
  for (std::int64_t shard = 0; shard < devices_in(varying, mesh); ++shard)
    parts.push_back(d.blocks[static_cast<std::size_t>(device_of_shard(shard, varying, mesh))]);
  return joined(parts, d, 0);
}

void check_forward(const manual_case& c, const mesh_value& mesh, axis_list axes, dtype type) {
  graph::graph g;
  g.mesh = mesh;
  const value x{&g, g.add_parameter(whole_type(mesh, type))};
  const value y = c.build(enter(x), axes);
  g.outputs.push_back({leave(y).id, -1});
  const std::vector<double> numbers = numbers_for(x.type().size(), 5);
  devices from{{rows, columns}, {}};
  for (std::int64_t d = 0; d < mesh.devices(); ++d) {
    const auto first = numbers.begin() + d * rows * columns;
    from.blocks.emplace_back(first, first + rows * columns);
  }
  const std::vector<bytes> inputs{to_bytes(numbers, type)};
  const std::vector<double> found = to_numbers(runtime::evaluate(g, inputs)[0], type);
  CHECK(found == expected_array(c.simulate(from, axes, mesh), y.type().varying, mesh));
}

}  // namespace

TEST_CASE("Collectives of a body do what they do to the blocks of simulated devices") {
  for (const mesh_value& mesh : all_meshes())
    for (const manual_case& c : all_cases())
      for (axis_list axes : choices_of_axes(mesh))
        for (dtype type : {dtype::f32, dtype::f64, dtype::i32}) {
          text_buffer where;
          write_mesh(where, mesh);
          INFO(c.name << " on " << where.view() << ", axes " << axes << ", " << info(type).name);
          check_forward(c, mesh, axes, type);
        }
}

namespace {

const double step = std::cbrt(std::numeric_limits<double>::epsilon());
const double tolerance = 100 * step * step;

/// loss = sum(weights * tanh(collective(x * w))) with x varying, w the same on all devices; its gradients.
struct differentiated_case {
  graph::graph g{};
  std::vector<int> wrt{};
  std::vector<std::vector<double>> numbers{};

  std::vector<std::vector<double>> ask() const {
    std::vector<bytes> inputs;
    for (const auto& part : numbers) inputs.push_back(to_bytes(part, dtype::f64));
    std::vector<std::vector<double>> outputs;
    for (const bytes& out : runtime::evaluate(g, inputs)) outputs.push_back(to_numbers(out, dtype::f64));
    return outputs;
  }
};

/// The scalar that a body's value is boiled down to inside the body, so that both ends of it are differentiated.
value loss_in_body(value y, value weights) {
  const value local = graph::sum(graph::unary(op::tanh, y * 0.3) * graph::unary(op::square, y) + y * weights);
  axis_list varies = 0;
  for (int axis = 0; axis < y.mesh().rank; ++axis)
    if (local.type().varying & bit_of(axis)) varies = axis_append(varies, axis);
  return varies == 0 ? local : graph::psum(local, varies);
}

differentiated_case differentiate(const manual_case& c, const mesh_value& mesh, axis_list axes, bool twice) {
  differentiated_case q;
  q.g.mesh = mesh;
  const value x{&q.g, q.g.add_parameter(whole_type(mesh, dtype::f64))};
  const value w{&q.g, q.g.add_parameter(array_type(dtype::f64, {1, columns}))};
  const value s{&q.g, q.g.add_parameter(scalar_aval(dtype::f64))};
  value loss = leave(loss_in_body(c.build(enter(x) * enter(w), axes), enter(s)));
  q.wrt = {x.id, w.id, s.id};
  if (twice) {
    value total = graph::constant(&q.g, dtype::f64, 0);
    for (int id : transform::gradients(q.g, loss.id, q.wrt))
      total = total + graph::sum(graph::unary(op::square, value{&q.g, id}) * 0.125);
    loss = total;
  }
  q.g.outputs.push_back({loss.id, -1});
  for (int id : transform::gradients(q.g, loss.id, q.wrt)) q.g.outputs.push_back({id, -1});
  std::mt19937 bits(11);
  for (int id : q.wrt) q.numbers.push_back(draw({{}, -1, 1}, q.g.type(id).size(), bits));
  return q;
}

void check_gradients(differentiated_case q) {
  const std::vector<std::vector<double>> found = q.ask();
  differentiated_case loss_only = q;
  loss_only.g.outputs.resize(1);
  double scale = 1;
  for (const auto& part : found)
    for (double v : part) scale = std::max(scale, std::abs(v));
  for (std::size_t p = 0; p < q.wrt.size(); ++p)
    for (std::size_t i = 0; i < q.numbers[p].size(); i += std::max<std::size_t>(1, q.numbers[p].size() / 7)) {
      double& at = loss_only.numbers[p][i];
      const double here = at;
      at = here + step;
      const double above = loss_only.ask()[0][0];
      at = here - step;
      const double below = loss_only.ask()[0][0];
      at = here;
      INFO("argument " << p << ", element " << i << ": gradient " << found[p + 1][i] << ", difference "
                       << (above - below) / (2 * step));
      CHECK(std::abs(found[p + 1][i] - (above - below) / (2 * step)) <= tolerance * scale);
    }
}

}  // namespace

TEST_CASE("Gradients through a body, first and second, agree with differences on every mesh") {
  for (const mesh_value& mesh : {data_mesh(1), data_mesh(2), data_mesh(4), grid(2, 2)})
    for (const manual_case& c : all_cases()) {
      if (!c.differentiable) continue;
      for (axis_list axes : choices_of_axes(mesh)) {
        text_buffer where;
        write_mesh(where, mesh);
        INFO(c.name << " on " << where.view() << ", axes " << axes);
        check_gradients(differentiate(c, mesh, axes, false));
        check_gradients(differentiate(c, mesh, axes, true));
      }
    }
}
