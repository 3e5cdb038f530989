// SPDX-License-Identifier: Apache-2.0
// Operations that choose, repeat, walk along or slide over elements of unreduced and reduced arrays: on meshes of 1, 2,
// 4 and 2x2 devices they and their gradients are those of one device, so nothing is scaled by a number of devices.
#include "runtime/along_axis_cases.hpp"
#include "runtime/dynamic_cases.hpp"
#include "runtime/gather_cases.hpp"
#include "runtime/layout_cases.hpp"
#include "runtime/marked.hpp"
#include "runtime/window_cases.hpp"

#include <tessera/tessera.hpp>

using namespace runtime_test;

namespace {

/// All choices of marks on every mesh; how many are legal where all operands are unreduced, and in all.
void check_family(const std::vector<op_case>& cases, bool linear) {
  for (const op_case& c : cases) {
    INFO(c.name);
    int legal = 0;
    for (std::int64_t devices : {1, 2, 4}) legal += check_marks_of(c, data_mesh(devices), 0b1, false);
    legal += check_marks_of(c, grid(2, 2), 0b11, false);
    check_marks_of(c, grid(2, 2), 0b10, true);
    CHECK(legal >= 8);
    if (!linear) continue;
    for (std::int64_t devices : {1, 2, 4}) {
      const std::vector<mark> marks(c.inputs.size(), mark::unreduced);
      std::vector<mark> floating = marks;
      for (std::size_t i = 0; i < marks.size(); ++i)
        if (!is_floating(c.inputs[i].type)) floating[i] = mark::none;
      CHECK(build_marked(c, data_mesh(devices), floating, 0b1, false).legal);
    }
  }
}

bool is_extremum(const op_case& c) { return c.name.find("max") != c.name.npos || c.name.find("min") != c.name.npos; }

}  // namespace

TEST_CASE("Elements chosen of pending sums, and pending sums added to them or put there, are pending sums") {
  std::vector<op_case> linear;
  std::vector<op_case> others;
  for (const op_case& c : gather_cases(4)) (is_extremum(c) ? others : linear).push_back(c);
  check_family(linear, true);
  check_family(others, false);
}

TEST_CASE("Parts at run-time places, copies and rolls of pending sums are pending sums") {
  check_family(dynamic_cases(2), true);
  check_family(repeat_cases(4), true);
}

TEST_CASE("Running sums of pending sums are pending sums; other walks and orders pass reduced arrays on") {
  check_family(running_cases(4), false);
  check_family(sort_cases(4), false);
}

TEST_CASE("A convolution forgets that an operand is reduced, a pool does not") {
  for (const op_case& c : window_cases(4)) {
    INFO(c.name);
    for (std::int64_t devices : {1, 2, 4}) CHECK(check_marks_of(c, data_mesh(devices), 0b1, false) >= 1);
  }
}

TEST_CASE("A convolution whose channels are cut stays unreduced if asked, and so is no gradient") {
  for (std::int64_t devices : {1, 2, 4}) {
    program p;
    p.g.mesh = data_mesh(devices);
    aval image = array_type(dtype::f64, {2, 5, 4, 4});
    aval taps = array_type(dtype::f64, {3, 2, 4, 3});
    image.dims[3].axes = taps.dims[2].axes = axis_append(0, 0);
    const value x{&p.g, p.g.add_parameter(image)};
    const value k{&p.g, p.g.add_parameter(taps)};
    spec_value spec;
    spec.unreduced = 0b1;
    const value y = write_conv_of<>(std::array{x, k}, &spec);
    CHECK(y.type().unreduced == 0b1);
    const value w{&p.g, p.g.add_parameter(cotangent_type(y.type()))};
    const value loss = graph::unmarked(graph::sum(y * w));
    const int wrt[] = {x.id, k.id};
    p.g.outputs = {{y.id, -1}, {loss.id, -1}};
    for (int id : transform::gradients(p.g, loss.id, wrt)) p.g.outputs.push_back({id, -1});
    const auto moved = analysis::summarise(transform::lower(p.g), p.g.mesh).collectives;
    CHECK(moved.all_reduce == (devices > 1 ? 1 : 0));
    CHECK(moved.all_gather + moved.reduce_scatter == 0);
    std::mt19937 bits(5);
    for (int id : p.g.parameters)
      p.inputs.push_back(to_bytes(draw({{}, -9, 9, true}, p.g.type(id).size(), bits), dtype::f64));
    check_against_one_device(p, 0);
  }
}

namespace {

using two = mesh<axis<"data", 2>>;
using pending_spec = P<unreduced<"data">>;

/// What `make(x)` gives on two devices, as numbers.
template <class F>
std::vector<double> made(F make) {
  using array = expr<tensor<dtype::f32, shape<2>, P<>, two>::type, two>;
  graph::graph g;
  g.mesh = two::value;
  const auto y = make(array{{&g, g.add_parameter(array::type)}});
  CHECK(decltype(y)::type.unreduced == 0b1);
  g.outputs.push_back({graph::unmarked({&g, y.handle.id}).id, -1});
  const std::vector<bytes> inputs{to_bytes(std::vector<double>{1, 1}, dtype::f32)};
  return to_numbers(runtime::evaluate(g, inputs)[0], decltype(y)::type.type);
}

}  // namespace

TEST_CASE("An array made of nothing as a pending sum is the sum of its parts") {
  using numbers = std::vector<double>;
  constexpr auto pending = out_sharding<pending_spec>;
  CHECK(made([&](auto x) { return zeros<shape<3>>(x, pending); }) == numbers{0, 0, 0});
  CHECK(made([&](auto x) { return full<shape<2>>(x, 2.5, pending); }) == numbers{2.5, 2.5});
  CHECK(made([&](auto x) { return iota<shape<3>>(x, pending); }) == numbers{0, 1, 2});
  CHECK(made([&](auto x) { return arange<2, 10, 3>(x, pending); }) == numbers{2, 5, 8});
  CHECK(made([&](auto x) { return eye<2>(x, pending); }) == numbers{1, 0, 0, 1});
  CHECK(made([&](auto x) { return ones_like(full<shape<2>>(x, 7, pending)); }) == numbers{1, 1});
  CHECK(made([&](auto x) { return tril(full<shape<2, 2>>(x, 7, pending)); }) == numbers{7, 0, 7, 7});
}
