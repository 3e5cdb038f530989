// SPDX-License-Identifier: Apache-2.0
// Graphs drawn at random for property tests: all operations, several meshes, gradients, arguments that are replaced.
#pragma once

#include "transform/support.hpp"

#include <tessera/transform/grad.hpp>

#include <random>

namespace support {

/// A graph under construction; what is drawn and turns out illegal is not written.
class random_graph {
 public:
  explicit random_graph(unsigned seed) : random_(seed) {
    const ts::mesh_value meshes[] = {one, data8, grid, thin};
    trace.mesh = meshes[draw(4)];
    for (int i = 0, n = 3 + draw(4); i < n; ++i) pool_.push_back(parameter(trace, drawn_type()));
    if (draw(3) == 0) add_check();
    for (int i = 0, n = 5 + draw(40); i < n; ++i) grow();
    add_results();
  }

  graph trace;

 private:
  int draw(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  value any() { return pool_[static_cast<std::size_t>(draw(static_cast<int>(pool_.size())))]; }

  ts::spec_value drawn_spec(int rank) {
    ts::spec_value spec;
    spec.rank = rank;
    ts::axis_set used = 0;
    for (int d = 0; d < rank; ++d)
      for (int axis = 0; axis < trace.mesh.rank; ++axis)
        if (!(used & ts::bit_of(axis)) && draw(4) == 0) {
          spec.dims[d] = ts::axis_append(spec.dims[d], axis);
          used = static_cast<ts::axis_set>(used | ts::bit_of(axis));
        }
    return spec;
  }

  ts::aval drawn_type() {
    const std::int64_t extents[] = {1, 8, 8, 16};
    for (;;) {
      ts::aval a;
      a.rank = draw(4);
      for (int d = 0; d < a.rank; ++d) a.dims[d].extent = extents[draw(4)];
      if (const ts::ruling r = ts::with_spec(a, drawn_spec(a.rank), trace.mesh); r.ok()) return r.result;
    }
  }

  void add_check() {
    const value labels = parameter(trace, array({{8, 0}}, ts::i32));
    const value checked = ts::graph::write(&trace, op::check_range, labels.type(), {labels.id});
    trace.at(checked.id).attribute[0] = 10;
    pool_.push_back(ts::graph::convert(checked, ts::f32));
  }

  bool stands_beside(value a, value b) {
    const ts::aval operands[] = {a.type(), b.type()};
    return ts::sharding::elementwise(operands, trace.mesh).ok();
  }

  void grow() {
    switch (draw(10)) {
      case 0:
      case 1: return grow_unary();
      case 2:
      case 3:
      case 4: return grow_binary();
      case 5: return grow_choice();
      case 6: return grow_reduction();
      case 7: return grow_product();
      case 8: return grow_reshard();
      default: return grow_move();
    }
  }

  void grow_unary() {
    const op codes[] = {op::neg, op::square, op::exp, op::tanh, op::relu, op::copy, op::stop_gradient};
    pool_.push_back(ts::graph::unary(codes[draw(7)], any()));
  }

  void grow_binary() {
    const op codes[] = {op::add, op::sub, op::mul, op::div, op::max};
    const value a = any();
    const value b = draw(4) == 0 ? ts::graph::number_like(a, draw(5)) : any();
    if (stands_beside(a, b)) pool_.push_back(ts::graph::binary(codes[draw(5)], a, b));
  }

  void grow_choice() {
    const value a = any();
    const value b = any();
    if (!stands_beside(a, b)) return;
    const value predicate = ts::graph::binary(op::gt, a, b);
    pool_.push_back(ts::graph::select(predicate, a, ts::graph::number_like(a, 1)));
  }

  void grow_reduction() {
    const value a = any();
    const op codes[] = {op::reduce_sum, op::reduce_sum, op::reduce_max};
    const auto set = static_cast<ts::sharding::dim_set>(draw(1 << a.type().rank));
    pool_.push_back(ts::graph::reduce(codes[draw(3)], a, set, draw(2) == 0));
  }

  void grow_product() {
    const value a = any();
    const value b = any();
    if (a.type().rank < 2 || b.type().rank != 2) return;
    const int rank = a.type().rank;
    const ts::spec_value chosen = drawn_spec(rank);
    const ts::ruling natural = ts::sharding::matmul(a.type(), b.type(), draw(2) == 0 ? &chosen : nullptr, trace.mesh);
    if (natural.ok()) pool_.push_back(product(a, b, natural.result));
  }

  void grow_reshard() {
    const value a = any();
    const ts::ruling moved = ts::with_spec(a.type(), drawn_spec(a.type().rank), trace.mesh);
    if (moved.ok()) pool_.push_back(ts::graph::reshard(a, moved.result));
  }

  void grow_move() {
    const value a = any();
    const int rank = a.type().rank;
    if (draw(2) == 0 && rank >= 2) {
      ts::sharding::dim_list order = 0;
      for (int d = 0; d < rank; ++d) order = ts::sharding::dim_append(order, (d + 1) % rank);
      pool_.push_back(ts::graph::transpose(a, order));
    } else if (rank < 3) {
      ts::aval wide = a.type();
      for (int d = wide.rank++; d > 0; --d) wide.dims[d] = wide.dims[d - 1];
      wide.dims[0] = {8, 0};
      pool_.push_back(ts::graph::broadcast(a, wide, ts::graph::dims_in_order(rank, 1)));
    }
  }

  /// Some values, some new values for arguments (gradient steps, swaps, plain values of the same type), in any order.
  void add_results() {
    std::vector<int> floats;
    for (int p : trace.parameters)
      if (trace.type(p).type == ts::f32) floats.push_back(p);
    std::vector<int> gradients;
    if (draw(2) == 0) {
      const value loss = ts::graph::sum(ts::graph::unary(op::square, pool_.back()));
      result(trace, loss);
      for (int id : ts::transform::gradients(trace, loss.id, floats)) gradients.push_back(id);
    }
    for (int i = 0, n = 1 + draw(3); i < n; ++i) result(trace, any());
    for (std::size_t i = 0; i < floats.size(); ++i) {
      const value old{&trace, floats[i]};
      const int place = static_cast<int>(trace.at(floats[i]).attribute[0]);
      if (!gradients.empty() && draw(3) != 0) result(trace, old - value{&trace, gradients[i]} * 0.5, place);
      else if (const int other = same_type(old.type()); other >= 0 && draw(2) == 0)
        result(trace, {&trace, other}, place);
    }
    std::shuffle(trace.outputs.begin(), trace.outputs.end(), random_);
  }

  int same_type(const ts::aval& type) {
    for (int tries = 0; tries < 10; ++tries)
      if (const value v = any(); v.type() == type) return v.id;
    return -1;
  }

  std::mt19937 random_;
  std::vector<value> pool_;
};

}  // namespace support
