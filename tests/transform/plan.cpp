// SPDX-License-Identifier: Apache-2.0
#include <tessera/transform/plan.hpp>

#include "transform/random_graph.hpp"

#include <map>
#include <string>

namespace ts = tessera;
using namespace support;
using ts::graph::program;
using ts::graph::step_kind;
using ts::transform::lower;

/// Which argument each result that takes an argument's place is written to directly, by the step that computes it.
constexpr int written_in_place(const program& p) {
  int n = 0;
  for (const ts::graph::buffer& b : p.buffers) n += b.where == ts::graph::space::argument;
  return n - static_cast<int>(p.arguments.size());
}

constexpr program update_in_place() {
  graph g = over(data8);
  const value w = parameter(g, array({{16, 0}, {8, 0}}));
  const value d = parameter(g, array({{16, 0}, {8, 0}}));
  result(g, w - d * 0.1, 0);
  return lower(g);
}

TEST_CASE("A new value is written over the argument that only its own step reads") {
  CHECK_BOTH(memory_fault(update_in_place()) == "");
  CHECK_BOTH(update_in_place().steps.size() == 1);
  CHECK_BOTH(written_in_place(update_in_place()) == 1);
  CHECK_BOTH(update_in_place().temporary_bytes == 0);
}

/// The new w is used by a product, the old one by a later product that waits for it.
constexpr program old_value_read_afterwards() {
  graph g = over(one);
  const value w = parameter(g, array({{8, 0}, {8, 0}}));
  const value w_new = w * 0.5;
  const value y = product(w_new, w_new);
  result(g, product(y, w));
  result(g, w_new, 0);
  return lower(g);
}

TEST_CASE("Where the old value is read later, the argument is replaced at the end") {
  CHECK_BOTH(memory_fault(old_value_read_afterwards()) == "");
  CHECK_BOTH(written_in_place(old_value_read_afterwards()) == 0);
  CHECK_BOTH(old_value_read_afterwards().steps.back().kind == step_kind::copy_out);
}

constexpr program swapped(std::int64_t second_extent) {
  graph g = over(one);
  const value a = parameter(g, array({{8, 0}}));
  const value b = parameter(g, array({{8, 0}}));
  const value c = parameter(g, array({{second_extent, 0}}));
  result(g, b, 0);
  result(g, c * 2.0, 2);
  result(g, a, 1);
  return lower(g);
}

constexpr program assigned_from_another() {
  graph g = over(one);
  const value a = parameter(g, array({{8, 0}}));
  const value b = parameter(g, array({{8, 0}}));
  result(g, b, 0);
  result(g, b * 2.0, 1);
  result(g, a + b);
  return lower(g);
}

constexpr program rotated() {
  graph g = over(one);
  const value a = parameter(g, array({{8, 0}, {8, 0}}));
  const value b = parameter(g, array({{8, 0}, {8, 0}}));
  const value c = parameter(g, array({{8, 0}, {8, 0}}));
  result(g, ts::graph::transpose(b, dims({1, 0})), 0);
  result(g, product(c, c), 1);
  result(g, product(a, a), 2);
  return lower(g);
}

TEST_CASE("Two variables may be swapped, assigned from each other, or rotated") {
  CHECK_BOTH(memory_fault(swapped(8)) == "");
  CHECK_BOTH(memory_fault(swapped(16)) == "");
  CHECK_BOTH(memory_fault(assigned_from_another()) == "");
  CHECK_BOTH(memory_fault(rotated()) == "");
}

constexpr program checked() {
  graph g = over(data8);
  const value labels = parameter(g, array({{16, data}}, ts::i32));
  const value count = parameter(g, ts::scalar_aval(ts::i32));
  const value w = parameter(g, array({{16, data}}));
  const value safe = ts::graph::write(&g, op::check_range, labels.type(), {labels.id});
  g.at(safe.id).attribute[0] = 10;
  result(g, count + 1.0, 1);
  result(g, w * 0.5, 2);
  result(g, ts::graph::sum(ts::graph::convert(safe, ts::f32)));
  return lower(g);
}

TEST_CASE("No argument is written before every check has passed") {
  CHECK_BOTH(memory_fault(checked()) == "");
  CHECK_BOTH(count(checked(), step_kind::check_range) == 1);
}

constexpr std::int64_t temporary_bytes_of_a_chain(int products) {
  graph g = over(one);
  value x = parameter(g, array({{16, 0}, {16, 0}}));
  for (int i = 0; i < products; ++i) x = product(x, x);
  result(g, x);
  return lower(g).temporary_bytes;
}

constexpr std::int64_t temporary_bytes_in_place() {
  graph g = over(one);
  const value x = parameter(g, array({{16, 0}, {16, 0}}));
  const value y = product(x, x);
  result(g, product(x, ts::graph::unary(op::exp, y)));
  return lower(g).temporary_bytes;
}

TEST_CASE(
    "Memory is used again: a chain needs two places beside the result however long it is, an elementwise step none") {
  CHECK_BOTH(temporary_bytes_of_a_chain(2) == 1024);
  CHECK_BOTH(temporary_bytes_of_a_chain(3) == 1024);
  CHECK_BOTH(temporary_bytes_of_a_chain(12) == 2048);
  CHECK_BOTH(temporary_bytes_in_place() == 1024);
}

constexpr program with_a_fault(int kind) {
  program p = lower([] {
    graph g = over(one);
    const value x = parameter(g, array({{16, 0}, {16, 0}}));
    const value y = product(x, x);
    result(g, product(product(y, y), y));
    result(g, x * 2.0, 0);
    return g;
  }());
  for (ts::graph::buffer& b : p.buffers)
    if (b.where == ts::graph::space::temporary && kind == 1) b.place = 0;
  if (kind == 2) p.temporary_bytes -= 64;
  if (kind == 3) std::swap(p.steps.front(), p.steps.back());
  if (kind == 4) p.steps.pop_back();
  return p;
}

TEST_CASE("The check of memory sees faults: shared places, too small an arena, a wrong order, a result left out") {
  CHECK_BOTH(memory_fault(with_a_fault(0)) == "");
  CHECK_BOTH(memory_fault(with_a_fault(1)) != "");
  CHECK_BOTH(memory_fault(with_a_fault(2)) != "");
  CHECK_BOTH(memory_fault(with_a_fault(3)) != "");
  CHECK_BOTH(memory_fault(with_a_fault(4)) != "");
}

TEST_CASE("No step of 600 random programs reads memory that was overwritten, and every result is delivered") {
  int in_place = 0;
  int copied = 0;
  std::int64_t temporaries = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    CAPTURE(seed);
    const program p = lower(random_graph(seed).trace);
    REQUIRE(std::string(memory_fault(p)) == "");
    in_place += written_in_place(p);
    copied += count(p, step_kind::copy_out);
    temporaries += p.temporary_bytes > 0;
  }
  CHECK(in_place > 100);
  CHECK(copied > 50);
  CHECK(temporaries > 300);
}
