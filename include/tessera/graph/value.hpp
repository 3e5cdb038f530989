// SPDX-License-Identifier: Apache-2.0
// Writing nodes by value: what derivative rules and optimisers use to compute with arrays of any type.
#pragma once

#include <tessera/core/resolve.hpp>
#include <tessera/graph/graph.hpp>
#include <tessera/sharding/dot_general.hpp>
#include <tessera/sharding/elementwise.hpp>
#include <tessera/sharding/reduce.hpp>
#include <tessera/sharding/reshape.hpp>

#include <initializer_list>
#include <stdexcept>
#include <string>

namespace tessera::graph {

/// A node of a graph under construction.
struct value {
  graph* owner = nullptr;
  int id = -1;

  /// A copy: nodes move when others are added.
  constexpr aval type() const { return owner->type(id); }
  constexpr const mesh_value& mesh() const { return owner->mesh; }
};

/// Node `id` of `owner`, seen from where operations are written now: a body captures it.
constexpr value seen(graph* owner, int id) {
  graph& here = owner->active();
  return {&here, here.import_node(owner, id)};
}

/// The result of a rule that holds; a broken one is a fault of the calling rule, not of the user.
constexpr const aval& expect(const ruling& ruled) {
  if (!ruled.ok()) throw std::logic_error(std::string(sentence(ruled.failure)));
  return ruled.result;
}

/// What an elementwise operation makes of unreduced operands.
constexpr sharding::mark_rule mark_rule_of(op code) {
  using sharding::mark_rule;
  switch (code) {
    case op::add: return mark_rule::add;
    case op::mul: return mark_rule::multiply;
    case op::div: return mark_rule::divide;
    case op::copy:
    case op::stop_gradient: return mark_rule::pass;
    default: return mark_rule::refuse;
  }
}

constexpr spec_value spec_of(const aval& a) {
  spec_value spec;
  spec.unreduced = a.unreduced;
  spec.reduced = a.reduced;
  spec.pending = a.pending;
  spec.rank = a.rank;
  for (int i = 0; i < a.rank; ++i) spec.dims[i] = a.dims[i].axes;
  return spec;
}

/// Node `id` as a value that varies over `varying` as well: what shard_map calls a cast, since the cotangent that comes
/// back is a sum over those axes. A constant has no cotangent and stays as it is.
constexpr int vary(graph* owner, int id, axis_set varying) {
  if ((varying & ~owner->type(id).varying) == 0 || owner->at(id).code == op::constant) return id;
  node n;
  n.code = op::pcast;
  n.type = owner->type(id);
  n.type.varying = static_cast<axis_set>(n.type.varying | varying);
  n.type.reduced = static_cast<axis_set>(n.type.reduced & ~varying);
  n.operands[0] = id;
  return owner->add(n);
}
constexpr value vary(value v, axis_set varying) { return {v.owner, vary(v.owner, v.id, varying)}; }

/// A node varies over every axis that an operand varies over; the other operands are cast to that.
constexpr value write(graph* owner, op code, const aval& type, std::initializer_list<int> operands) {
  node n;
  n.code = code;
  n.type = type;
  axis_set varying = 0;
  for (int operand : operands) varying = static_cast<axis_set>(varying | owner->type(operand).varying);
  n.type.varying = static_cast<axis_set>(n.type.varying | varying);
  int i = 0;
  for (int operand : operands) n.operands[i++] = vary(owner, operand, varying);
  return {owner, owner->add(n)};
}

constexpr value constant(graph* owner, dtype type, double number) {
  const value v = write(owner, op::constant, scalar_aval(type), {});
  owner->at(v.id).value = number;
  return v;
}

/// `v` with its dimensions renamed to those of `type`, which has the same elements in the same places.
constexpr value reshape(value v, aval type) {
  type.varying = v.type().varying;
  return v.type() == type ? v : write(v.owner, op::reshape, type, {v.id});
}

/// `v` with dimensions of extent 1 in front; scalars stay as they are.
constexpr value pad_rank(value v, int rank) {
  if (v.type().rank == 0 || v.type().rank == rank) return v;
  return reshape(v, sharding::pad_rank(v.type(), rank));
}

constexpr value reshard(value v, aval type) {
  type.varying = v.type().varying;
  return v.type() == type ? v : write(v.owner, op::reshard, type, {v.id});
}

/// `v` with its pending sums done.
constexpr value summed(value v) {
  aval type = v.type();
  if (type.unreduced == 0) return v;
  type.unreduced = 0;
  type.pending = combine::sum;
  return reshard(v, type);
}

/// `v` neither unreduced nor reduced.
constexpr value unmarked(value v) { return reshard(v, without_marks(v.type())); }

constexpr value unary(op code, value v) {
  const bool linear = code == op::neg || code == op::copy || code == op::stop_gradient;
  if (!linear) v = summed(v);
  return write(v.owner, code, v.type(), {v.id});
}

/// The type of a product or quotient of a pending sum and something that all its devices have alike, or none:
/// derivative rules need no reduced factor, they say themselves which type a gradient has.
constexpr ruling scaled_sum(op code, const aval& a, const aval& b, const mesh_value& mesh) {
  const aval& sum = a.unreduced != 0 ? a : b;
  const aval& factor = a.unreduced != 0 ? b : a;
  const bool legal = code == op::mul || (code == op::div && a.unreduced != 0);
  if (!legal || factor.unreduced != 0 || sum.pending != combine::sum || (factor.cut() & sum.unreduced) != 0)
    return refuse(message::unreduced_factor);
  const aval operands[] = {a, b};
  ruling ruled = sharding::broadcast_together(operands, mesh);
  ruled.result = with_marks(ruled.result, sum);
  ruled.result.reduced = static_cast<axis_set>(sum.reduced & ~factor.cut());
  return ruled;
}

/// What the rules for users refuse of unreduced and reduced operands is written with reshards, so that it means what it
/// says.
constexpr value binary(op code, value a, value b) {
  const aval operands[] = {a.type(), b.type()};
  ruling ruled = sharding::elementwise(operands, a.mesh(), mark_rule_of(code));
  const bool difference = code == op::sub && operands[0].unreduced != 0;
  if (difference) ruled = sharding::elementwise(operands, a.mesh(), sharding::mark_rule::add);
  if (!ruled.ok() && (operands[0].marked() || operands[1].marked())) {
    ruled = scaled_sum(code, operands[0], operands[1], a.mesh());
    if (!ruled.ok()) return binary(code, unmarked(a), unmarked(b));
  }
  aval type = expect(ruled);
  if (is_predicate(code)) type.type = dtype::bool_;
  return write(a.owner, code, type, {pad_rank(a, type.rank).id, pad_rank(b, type.rank).id});
}

constexpr value zeros(graph* owner, const aval& type);

/// Beside a pending sum the constant zero is one too.
constexpr value select(value predicate, value on_true, value on_false) {
  const auto is_zero = [](value v) {
    const node& n = v.owner->at(v.id);
    return n.code == op::constant && n.value == 0;
  };
  if (on_true.type().unreduced != 0 && is_zero(on_false)) on_false = zeros(on_true.owner, on_true.type());
  if (on_false.type().unreduced != 0 && is_zero(on_true)) on_true = zeros(on_true.owner, on_false.type());
  const aval operands[] = {on_true.type(), on_false.type(), predicate.type()};
  const aval dims = expect(sharding::broadcast_together(operands, on_true.mesh()));
  const bool alike = operands[0].unreduced == operands[1].unreduced && operands[0].pending == operands[1].pending;
  const ruling ruled =
      sharding::join_marks(std::span(operands).first(2), sharding::mark_rule::pass, dims, on_true.mesh());
  if (!alike || !ruled.ok()) return select(predicate, unmarked(on_true), unmarked(on_false));
  const aval type = ruled.result;
  return write(on_true.owner, op::select, type,
               {pad_rank(predicate, type.rank).id, pad_rank(on_true, type.rank).id, pad_rank(on_false, type.rank).id});
}

constexpr value convert(value v, dtype to) {
  if (v.type().type == to) return v;
  if (!is_floating(to)) v = summed(v);
  aval type = v.type();
  type.type = to;
  return write(v.owner, op::convert, type, {v.id});
}

constexpr value reduce(op code, value v, sharding::dim_set dims, bool keepdims, const spec_value* out_spec = nullptr) {
  const ruling ruled = sharding::reduce(v.type(), dims, keepdims, out_spec, v.mesh(), combine_of(code));
  const bool marked = v.type().marked() || (out_spec != nullptr && (out_spec->unreduced | out_spec->reduced) != 0);
  if (!ruled.ok() && marked) {
    if (out_spec == nullptr) return reduce(code, unmarked(v), dims, keepdims);
    const spec_value cuts = without_marks(*out_spec);
    const value whole = reduce(code, unmarked(v), dims, keepdims, &cuts);
    return reshard(whole, expect(with_spec(whole.type(), *out_spec, v.mesh())));
  }
  const aval type = expect(ruled);
  if (dims == 0) return reshard(v, type);
  const value reduced = write(v.owner, code, type, {v.id});
  v.owner->at(reduced.id).attribute[0] = dims;
  return reduced;
}

/// The sum of all elements, as a scalar.
constexpr value sum(value v) { return reduce(op::reduce_sum, v, sharding::all_dims(v.type().rank), false); }

/// Operand dimension i becomes dimension `places[i]` of `type`; a dimension of extent 1 is stretched.
constexpr value broadcast(value v, aval type, sharding::dim_list places) {
  type.varying = static_cast<axis_set>(type.varying | v.type().varying);
  if (v.type() == type) return v;
  const value wide = write(v.owner, op::broadcast, type, {v.id});
  v.owner->at(wide.id).attribute[0] = places;
  return wide;
}

/// The list 0, 1, ..., rank - 1 of dimensions, each plus `shift`.
constexpr sharding::dim_list dims_in_order(int rank, int shift = 0) {
  sharding::dim_list places = 0;
  for (int i = 0; i < rank; ++i) places = sharding::dim_append(places, i + shift);
  return places;
}

/// `number` in every element of an array of type `type` (a copy: a type in the graph moves when a node is added).
constexpr value full(graph* owner, aval type, double number) {
  return broadcast(constant(owner, type.type, number), type, 0);
}

constexpr value zeros(graph* owner, const aval& type) { return full(owner, type, 0); }

constexpr value transpose(value v, sharding::dim_list permutation) {
  if (permutation == dims_in_order(v.type().rank)) return v;
  const value turned = write(v.owner, op::transpose, expect(sharding::transpose(v.type(), permutation)), {v.id});
  v.owner->at(turned.id).attribute[0] = permutation;
  return turned;
}

constexpr value dot(value lhs, value rhs, const sharding::dot_dims& dims, const aval& type) {
  lhs = summed(lhs);
  rhs = summed(rhs);
  const value product = write(lhs.owner, op::dot, type, {lhs.id, rhs.id});
  node& n = lhs.owner->at(product.id);
  n.attribute[0] = dims.lhs_contracting;
  n.attribute[1] = dims.rhs_contracting;
  n.attribute[2] = dims.lhs_batch;
  n.attribute[3] = dims.rhs_batch;
  return product;
}

constexpr value number_like(value v, double number) { return constant(v.owner, v.type().type, number); }

constexpr value operator+(value a, value b) { return binary(op::add, a, b); }
constexpr value operator-(value a, value b) { return binary(op::sub, a, b); }
constexpr value operator*(value a, value b) { return binary(op::mul, a, b); }
constexpr value operator/(value a, value b) { return binary(op::div, a, b); }
constexpr value operator-(value a) { return unary(op::neg, a); }
constexpr value operator+(value a, double b) { return a + number_like(a, b); }
constexpr value operator-(double a, value b) { return number_like(b, a) - b; }
constexpr value operator*(value a, double b) { return a * number_like(a, b); }
constexpr value operator*(double a, value b) { return number_like(b, a) * b; }
constexpr value operator/(value a, double b) { return a / number_like(a, b); }
constexpr value operator/(double a, value b) { return number_like(b, a) / b; }

}  // namespace tessera::graph
