// SPDX-License-Identifier: Apache-2.0
#include <tessera/transform/grad.hpp>
#include <tessera/transform/simplify.hpp>

#include "transform/support.hpp"

namespace ts = tessera;
using namespace support;

/// Differentiates the sum of `y` with respect to `wrt`: whether each gradient has the type of its array.
constexpr bool typed_as_primals(graph& g, value y, std::initializer_list<value> wrt) {
  std::vector<int> ids;
  for (const value& v : wrt) ids.push_back(v.id);
  const auto gradients = ts::transform::gradients(g, ts::graph::sum(y).id, ids);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (!(g.type(gradients[i]) == g.type(ids[i]))) return false;
  return gradients.size() == ids.size();
}

constexpr op unary_operations[] = {op::neg,      op::abs,           op::sign, op::square,    op::sqrt,
                                   op::rsqrt,    op::exp,           op::log,  op::log1p,     op::tanh,
                                   op::logistic, op::sin,           op::cos,  op::erf,       op::relu,
                                   op::copy,     op::stop_gradient, op::gelu, op::gelu_slope};
constexpr op binary_operations[] = {op::add, op::sub, op::mul, op::div, op::max, op::min, op::pow};

constexpr bool unary_gradients_are_typed() {
  for (op code : unary_operations) {
    graph g = over(grid);
    const value x = parameter(g, array({{8, data}, {16, model}}));
    if (!typed_as_primals(g, ts::graph::unary(code, x), {x})) return false;
  }
  return true;
}

/// Every pair of arrays that may stand beside each other, either cut or not, broadcast or not.
constexpr bool binary_gradients_are_typed() {
  const ts::aval types[] = {ts::scalar_aval(ts::f32),       array({{16, 0}}),           array({{16, model}}),
                            array({{1, 0}, {16, 0}}),       array({{8, data}, {1, 0}}), array({{8, 0}, {16, model}}),
                            array({{8, data}, {16, model}})};
  for (op code : binary_operations)
    for (const ts::aval& left : types)
      for (const ts::aval& right : types) {
        graph g = over(grid);
        const value a = parameter(g, left);
        const value b = parameter(g, right);
        if (!typed_as_primals(g, ts::graph::binary(code, a, b), {a, b})) return false;
      }
  return true;
}

constexpr bool choices_are_typed() {
  graph g = over(data8);
  const value p = parameter(g, array({{8, data}}, ts::bool_));
  const value a = parameter(g, array({{8, 0}}));
  const value b = parameter(g, ts::scalar_aval(ts::f32));
  return typed_as_primals(g, ts::graph::select(p, a, b), {a, b});
}

TEST_CASE("Elementwise operations: each gradient has exactly the type of its array, cut or broadcast") {
  CHECK_BOTH(unary_gradients_are_typed());
  CHECK_BOTH(binary_gradients_are_typed());
  CHECK_BOTH(choices_are_typed());
}

constexpr bool products_are_typed() {
  {
    graph g = over(grid);
    const value x = parameter(g, array({{8, data}, {16, 0}}));
    const value w = parameter(g, array({{16, 0}, {32, model}}));
    if (!typed_as_primals(g, product(x, w), {x, w})) return false;
  }
  {
    graph g = over(grid);
    const value x = parameter(g, array({{8, data}, {16, model}}));
    const value w = parameter(g, array({{16, model}, {32, 0}}));
    if (!typed_as_primals(g, product(x, w, array({{8, data}, {32, 0}})), {x, w})) return false;
  }
  graph g = over(grid);
  const value x = parameter(g, array({{4, data}, {8, 0}, {16, 0}}));
  const value w = parameter(g, array({{4, data}, {16, 0}, {32, model}}));
  return typed_as_primals(g, product(x, w), {x, w});
}

/// Contractions over several dimensions, in an order of their own.
constexpr bool general_products_are_typed() {
  graph g = over(grid);
  const value a = parameter(g, array({{3, 0}, {4, model}, {5, 0}, {2, data}}));
  const value b = parameter(g, array({{5, 0}, {6, 0}, {2, data}, {3, 0}}));
  const ts::sharding::dot_dims by{dims({2, 0}), dims({0, 3}), dims({3}), dims({2})};
  const ts::aval type = ts::graph::expect(ts::sharding::dot_general(a.type(), b.type(), by, nullptr, grid));
  return type == array({{2, data}, {4, model}, {6, 0}}) && typed_as_primals(g, ts::graph::dot(a, b, by, type), {a, b});
}

TEST_CASE("Products: each gradient has the type of its operand, batched or contracted over several dimensions") {
  CHECK_BOTH(products_are_typed());
  CHECK_BOTH(general_products_are_typed());
}

constexpr bool reductions_are_typed() {
  const ts::spec_value cut_again{1, {data}, {}};
  for (op code : {op::reduce_sum, op::reduce_max, op::reduce_min})
    for (ts::sharding::dim_set set = 0; set < 8; ++set)
      for (bool keep : {false, true}) {
        graph g = over(grid);
        const value x = parameter(g, array({{8, data}, {4, 0}, {8, model}}));
        if (!typed_as_primals(g, ts::graph::reduce(code, x, set, keep), {x})) return false;
      }
  graph g = over(grid);
  const value x = parameter(g, array({{8, data}, {4, 0}}));
  return typed_as_primals(g, ts::graph::reduce(op::reduce_sum, x, 1, false, &cut_again), {x});
}

constexpr bool moves_are_typed() {
  graph g = over(grid);
  const value x = parameter(g, array({{8, data}, {4, model}}));
  const value row = parameter(g, array({{1, 0}, {4, model}}));
  const value merged = ts::graph::reshape(parameter(g, array({{2, data}, {8, 0}})), array({{16, data}}));
  const value turned = ts::graph::transpose(x, dims({1, 0}));
  const value wide = ts::graph::broadcast(row, array({{3, 0}, {8, data}, {4, model}}), dims({1, 2}));
  const value moved = ts::graph::reshard(x, array({{8, 0}, {4, data}}));
  return typed_as_primals(g, turned, {x}) && typed_as_primals(g, wide, {row}) && typed_as_primals(g, moved, {x}) &&
         typed_as_primals(g, merged, {value{&g, 2}});
}

constexpr bool rows_are_typed_twice() {
  for (op code : {op::softmax, op::log_softmax}) {
    graph g = over(data8);
    const value x = parameter(g, array({{8, data}, {10, 0}}));
    const value w = parameter(g, array({{8, data}, {10, 0}}));
    const value y = ts::graph::write(&g, code, x.type(), {x.id});
    const int wrt[] = {x.id};
    const value first{&g, ts::transform::gradients(g, ts::graph::sum(y * w).id, wrt)[0]};
    if (!(first.type() == x.type()) || !typed_as_primals(g, ts::graph::unary(op::square, first), {x, w})) return false;
  }
  return true;
}

TEST_CASE("Reductions, moves and softmax: gradients, and gradients of gradients, have the types of their arrays") {
  CHECK_BOTH(reductions_are_typed());
  CHECK_BOTH(moves_are_typed());
  CHECK_BOTH(rows_are_typed_twice());
}

constexpr bool nothing_reached_is_zeros() {
  graph g = over(data8);
  const value x = parameter(g, array({{8, data}}));
  const value unused = parameter(g, array({{4, 0}}));
  const value stopped = ts::graph::unary(op::stop_gradient, x);
  const value through_int = ts::graph::convert(ts::graph::convert(x, ts::i32), ts::f32);
  const int wrt[] = {unused.id, x.id};
  const auto gradients = ts::transform::gradients(g, ts::graph::sum(stopped + through_int).id, wrt);
  for (std::size_t i = 0; i < 2; ++i) {
    const ts::graph::node& n = g.at(gradients[i]);
    if (n.code != op::broadcast || g.at(n.operands[0]).code != op::constant || g.at(n.operands[0]).value != 0)
      return false;
    if (!(n.type == g.type(wrt[i]))) return false;
  }
  return true;
}

constexpr bool the_loss_itself_has_gradient_one() {
  graph g = over(one);
  const value x = parameter(g, ts::scalar_aval(ts::f64));
  const int wrt[] = {x.id};
  const auto gradients = ts::transform::gradients(g, x.id, wrt);
  return g.at(gradients[0]).code == op::constant && g.at(gradients[0]).value == 1;
}

TEST_CASE("What the loss does not depend on, or only through integers or stop_gradient, has a gradient of zeros") {
  CHECK_BOTH(nothing_reached_is_zeros());
  CHECK_BOTH(the_loss_itself_has_gradient_one());
}

/// Nodes that the gradient of the sum of `y` adds to a graph that already computes the sum, both simplified.
constexpr int nodes_added(graph& g, value y, int wrt_node) {
  const value loss = ts::graph::sum(y);
  result(g, loss);
  const int before = ts::transform::simplify(g).size();
  const int wrt[] = {wrt_node};
  g.outputs.push_back({ts::transform::gradients(g, loss.id, wrt)[0], -1});
  return ts::transform::simplify(g).size() - before;
}

constexpr int nodes_for_a_product() {
  graph g = over(one);
  const value x = parameter(g, array({{8, 0}, {16, 0}}));
  const value w = parameter(g, array({{16, 0}, {4, 0}}));
  return nodes_added(g, product(x, w), w.id);
}

constexpr int nodes_for_a_layer() {
  graph g = over(one);
  const value x = parameter(g, array({{8, 0}, {16, 0}}));
  const value w = parameter(g, array({{16, 0}, {4, 0}}));
  return nodes_added(g, ts::graph::unary(op::tanh, product(x, w)), w.id);
}

TEST_CASE("Gradients add few nodes") {
  CHECK_BOTH(nodes_for_a_product() <= 3);  // one, repeated, and the product itself
  CHECK_BOTH(nodes_for_a_layer() <= 7);    // (1 - y) (y + 1) and the product
}
