// SPDX-License-Identifier: Apache-2.0
// Which elementwise work becomes part of a product, and what that saves.
#include <tessera/transform/plan.hpp>

#include "transform/random_graph.hpp"

#include <string>

namespace ts = tessera;
using namespace support;
using ts::graph::product_part, ts::graph::program, ts::graph::step_kind;
using ts::transform::lower;

constexpr int parts(const program& p, product_part part) {
  int n = 0;
  for (const ts::graph::step& s : p.steps) n += s.kind == step_kind::fused && s.part == part;
  return n;
}

constexpr value square_matrix(graph& g) { return parameter(g, array({{64, 0}, {64, 0}})); }
constexpr value transposed(value x) {
  return ts::graph::transpose(x, ts::sharding::dim_append(ts::sharding::dim_append(0, 1), 0));
}

template <class F>
constexpr program lowered(F write) {
  graph g = over(one);
  write(g);
  return lower(g);
}

constexpr program of_made_operands() {
  return lowered([](graph& g) {
    const value x = square_matrix(g), y = parameter(g, array({{64, 0}, {96, 0}}));
    result(g, product(ts::graph::unary(op::relu, x), y * 2.0));
  });
}

TEST_CASE("An operand that one cheap step makes for one product never lies in memory") {
  CHECK_BOTH(parts(of_made_operands(), product_part::makes_lhs) == 1);
  CHECK_BOTH(parts(of_made_operands(), product_part::makes_rhs) == 1);
  CHECK_BOTH(of_made_operands().temporary_bytes == 0);
  CHECK_BOTH(memory_fault(of_made_operands()) == "");
}

constexpr program of_operands_with_other_readers() {
  return lowered([](graph& g) {
    const value x = square_matrix(g);
    const value a = ts::graph::unary(op::relu, x);
    result(g, product(a, x));
    result(g, a);
    result(g, product(ts::graph::unary(op::tanh, x), x));
  });
}

TEST_CASE("An operand that someone else reads, or that is not cheap, is made once") {
  CHECK_BOTH(parts(of_operands_with_other_readers(), product_part::makes_lhs) == 0);
}

constexpr program with_what_follows() {
  return lowered([](graph& g) {
    const value x = square_matrix(g), y = square_matrix(g);
    result(g, x + ts::graph::unary(op::tanh, product(x, y)) * 2.0);
  });
}

TEST_CASE("What is made of a product element by element runs with it") {
  CHECK_BOTH(parts(with_what_follows(), product_part::finishes) == 1);
  CHECK_BOTH(with_what_follows().steps.size() == 2);
  CHECK_BOTH(with_what_follows().temporary_bytes == 0);
}

/// The new x would be written over an operand that later blocks of the product read.
constexpr program over_an_operand() {
  return lowered([](graph& g) {
    const value x = square_matrix(g);
    result(g, x + product(x, x), 0);
  });
}

TEST_CASE("What is written over an operand waits until the product is done") {
  CHECK_BOTH(parts(over_an_operand(), product_part::finishes) == 0);
  CHECK_BOTH(memory_fault(over_an_operand()) == "");
  CHECK_BOTH(count(over_an_operand(), step_kind::copy_out) == 0);
}

/// tanh reads the product's transpose, so it needs all of it.
constexpr program across_a_transpose() {
  return lowered([](graph& g) {
    const value x = square_matrix(g), y = square_matrix(g);
    const value p = product(x, y);
    result(g, ts::graph::unary(op::tanh, p + transposed(p)));
  });
}

TEST_CASE("What reads other elements of the product runs behind it") {
  CHECK_BOTH(parts(across_a_transpose(), product_part::finishes) == 0);
}

/// The second factor of what follows is made by a later product.
constexpr program waits_for_another() {
  return lowered([](graph& g) {
    const value x = square_matrix(g), y = square_matrix(g);
    const value p = product(x, y), q = product(y, x);
    result(g, ts::graph::unary(op::tanh, p) * ts::graph::unary(op::tanh, q));
  });
}

TEST_CASE("What needs two products runs with the later one") {
  CHECK_BOTH(parts(waits_for_another(), product_part::finishes) == 1);
  CHECK_BOTH(memory_fault(waits_for_another()) == "");
  CHECK_BOTH(waits_for_another().steps[2].part == product_part::finishes);
}

TEST_CASE("Products that devices sum while they multiply have no parts") {
  constexpr auto summed = [] {
    graph g = over(data8);
    const value x = parameter(g, array({{64, 0}, {64, ts::axis_append(0, 0)}}));
    const value w = parameter(g, array({{64, ts::axis_append(0, 0)}, {64, 0}}));
    const value y = product(ts::graph::unary(op::relu, x), w, array({{64, 0}, {64, 0}}));
    result(g, ts::graph::unary(op::tanh, y));
    return lower(g);
  };
  CHECK_BOTH(count(summed(), step_kind::all_reduce) == 1);
  CHECK_BOTH(parts(summed(), product_part::none) == 2);
}

/// Steps outside of row groups that touch what exists only while a block of a group runs, and steps of groups that are
/// parts of a product too.
constexpr int strays(const program& p) {
  int n = 0;
  for (int i = 0; i < static_cast<int>(p.steps.size()); ++i) {
    bool inside = false;
    for (const ts::graph::row_group& group : p.groups) inside |= group.first <= i && i < group.first + group.count;
    const ts::graph::step& s = p.steps[static_cast<std::size_t>(i)];
    n += inside && s.part != product_part::none;
    for (int a = s.first; !inside && a < s.first + s.sources + s.results; ++a)
      if (const int b = p.accesses[static_cast<std::size_t>(a)].buffer; b >= 0)
        n += p.buffers[static_cast<std::size_t>(b)].where == ts::graph::space::rows;
  }
  return n;
}

/// Squares of a product and their sums over rows and columns, which go together over blocks of rows.
constexpr program squares_of_a_product() {
  graph g = over(one);
  const value x = parameter(g, array({{128, 0}, {128, 0}}));
  const value p = product(x, x);
  const value s = ts::graph::unary(op::square, p) + 1.0;
  result(g, ts::graph::reduce(op::reduce_sum, s, 2, false));
  result(g, ts::graph::reduce(op::reduce_sum, s, 1, false));
  result(g, p);
  return lower(g);
}

TEST_CASE("What belongs to a row group stays there") {
  CHECK_BOTH(squares_of_a_product().groups.size() == 1);
  CHECK_BOTH(strays(squares_of_a_product()) == 0);
}

TEST_CASE("With parts in all products memory is right in 2000 random programs") {
  int makers = 0;
  int finishers = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    const ts::transform::product_limits everything{.elements = 1, .row = 1, .depth = 1, .in_place = seed % 2 == 0};
    const program p = lower(random_graph(seed).trace, ts::transform::grouping::by_rows, everything);
    REQUIRE(std::string(memory_fault(p)) == "");
    makers += parts(p, product_part::makes_lhs) + parts(p, product_part::makes_rhs);
    finishers += parts(p, product_part::finishes);
  }
  INFO(makers << " makers, " << finishers << " finishers");
  CHECK(makers > 10);
  CHECK(finishers > 20);
}
