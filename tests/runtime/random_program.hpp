// SPDX-License-Identifier: Apache-2.0
// Random programs with random shardings and their gradients, for comparison with one device.
#pragma once

#include "runtime/mesh_independence.hpp"

#include <tessera/ops/conv.hpp>
#include <tessera/ops/random.hpp>
#include <tessera/ops/sort.hpp>

namespace runtime_test {

/// Writes random programs over matrices of extents 8 and 16: each step applies an operation to values made before, with
/// random legal shardings, and keeps numbers within [-1, 1] or so.
class program_writer {
 public:
  program_writer(unsigned seed, const mesh_value& mesh, bool marks = true) : marks_(marks), bits_(seed) {
    made_.g.mesh = mesh;
  }

  program write() {
    const std::size_t parameters = 2 + pick(3);
    for (std::size_t i = 0; i < parameters; ++i) add_parameter();
    const std::size_t steps = 10 + pick(21);
    while (values_.size() < parameters + steps) {
      const std::size_t nodes = made_.g.nodes.size();
      try {
        values_.push_back(bounded(next()));
      } catch (const std::logic_error&) {
        made_.g.nodes.resize(nodes);  // these shardings do not go together
      }
    }
    finish();
    return std::move(made_);
  }

 private:
  std::size_t pick(std::size_t n) { return bits_() % n; }
  value any() { return values_[pick(values_.size())]; }
  value floats(int rank) {
    for (;;)
      if (const value v = any(); v.type().rank == rank) return v;
  }
  aval random_spec(const aval& shape) {
    const std::vector<aval> specs = all_specs(shape, made_.g.mesh);
    return specs[pick(specs.size())];
  }
  spec_value random_spec_of(const aval& shape) { return graph::spec_of(random_spec(shape)); }

  void add_parameter() {
    const std::int64_t extents[] = {8, 16};
    values_.push_back(
        {&made_.g, made_.g.add_parameter(random_spec(array_type(dtype::f64, {extents[pick(2)], extents[pick(2)]})))});
  }

  /// Sums of many terms are brought back to where functions are curved.
  value bounded(value v) {
    const op code = made_.g.at(v.id).code;
    return code == op::dot || code == op::reduce_sum || code == op::mul || code == op::add || code == op::sub
               ? graph::unary(op::tanh, v)
               : v;
  }

  value next() {
    switch (pick(marks_ ? 18 : 17)) {
      case 0:
      case 1: return unary();
      case 2:
      case 3: return binary();
      case 4: return reduction();
      case 5:
      case 6: return product();
      case 7: return movement();
      case 8: return choice();
      case 9: return rows();
      case 10: return part();
      case 11: return joined();
      case 12: return chosen();
      case 13: return walked();
      case 14: return ordered();
      case 15: return convolved();
      case 16: return random_numbers();
      default: return pending();
    }
  }

  value unary() {
    const op codes[] = {op::neg, op::square, op::exp, op::tanh, op::logistic, op::sin, op::cos, op::erf};
    const value v = graph::unary(codes[pick(8)], any());
    return made_.g.at(v.id).code == op::exp ? v * 0.3 : v;
  }

  value binary() {
    const op codes[] = {op::add, op::sub, op::mul, op::max, op::min};
    return graph::binary(codes[pick(5)], any(), any());
  }

  value reduction() {
    const value v = any();
    if (v.type().rank == 0) return unary();
    const op codes[] = {op::reduce_sum, op::reduce_sum, op::reduce_max, op::reduce_min};
    const op code = codes[pick(4)];
    const auto dims = static_cast<sharding::dim_set>(1 + pick((1U << v.type().rank) - 1));
    const bool keep = pick(2) == 0;
    if (pick(2) == 0) return graph::reduce(code, v, dims, keep);
    const aval plain = graph::expect(sharding::reduce(v.type(), dims, keep, nullptr, v.mesh()));
    const spec_value spec = random_spec_of(plain);
    return graph::reduce(code, v, dims, keep, &spec);
  }

  value product() {
    const value a = floats(2);
    const value b = floats(2);
    const int left = static_cast<int>(pick(2));
    const int right = static_cast<int>(pick(2));
    const sharding::dot_dims dims{sharding::dim_append(0, left), sharding::dim_append(0, right), 0, 0};
    if (pick(3) == 0)
      return graph::dot(a, b, dims, graph::expect(sharding::dot_general(a.type(), b.type(), dims, nullptr, a.mesh())));
    const spec_value spec = random_spec_of(sharding::dot_result(a.type(), b.type(), dims));
    return graph::dot(a, b, dims, graph::expect(sharding::dot_general(a.type(), b.type(), dims, &spec, a.mesh())));
  }

  value movement() {
    const value v = floats(2);
    const std::int64_t size = v.type().size();
    switch (pick(4)) {
      case 0: return graph::transpose(v, sharding::dim_append(sharding::dim_append(0, 1), 0));
      case 1: return graph::reshard(v, random_spec(v.type()));
      case 2: {
        const aval type = array_type(dtype::f64, {size / 8, 8});
        const spec_value spec = random_spec_of(type);
        return ops::write_reshape(
            std::array{v}, graph::expect(sharding::reshape(v.type(), type, pick(2) == 0 ? &spec : nullptr, v.mesh())));
      }
      default: {
        const value row = any();
        const std::int64_t columns = row.type().rank == 0 ? 8 : row.type().dims[row.type().rank - 1].extent;
        return ops::write_broadcast(
            std::array{row}, graph::expect(sharding::broadcast_to(row.type(), array_type(dtype::f64, {16, columns}),
                                                                  nullptr, row.mesh())));
      }
    }
  }

  /// `v` with its dimension `d` uncut.
  static value uncut_along(value v, int d) {
    aval type = v.type();
    type.dims[d].axes = 0;
    return graph::reshard(v, type);
  }

  /// A part of an array, forwards or backwards, at a fixed or at a computed place; or an array with a part replaced.
  value part() {
    const int d = static_cast<int>(pick(2));
    const value v = uncut_along(floats(2), d);
    const std::int64_t extent = v.type().dims[d].extent;
    sharding::slices taken = sharding::everything(v.type());
    const std::int64_t stride = 1 + static_cast<std::int64_t>(pick(2));
    taken.of[d] = {0, extent / 2, stride};
    if (pick(2) == 0) taken.of[d] = {extent - 1, extent / 2, -stride};
    const value start = graph::constant(v.owner, dtype::i32, static_cast<double>(pick(8)));
    switch (pick(4)) {
      case 0: return graph::slice(v, taken);
      case 1: return graph::update_slice(v, graph::slice(v * 0.5, taken), taken);
      case 2: return graph::dynamic_slice(v, start, d, extent / 2);
      default: return graph::dynamic_update_slice(v, graph::slice(v * 0.5, taken), start, d);
    }
  }

  value joined() {
    const int d = static_cast<int>(pick(2));
    const value v = uncut_along(floats(2), d);
    if (pick(2) == 0) {
      const value halves[] = {graph::unary(op::tanh, v), v};
      return graph::concatenate(halves, d);
    }
    sharding::paddings by{};
    by.of[d] = {static_cast<std::int64_t>(pick(3)), 8 - v.type().dims[d].extent % 8, 0};
    by.of[d].high += 8 - by.of[d].low;
    return graph::pad(v, graph::number_like(v, 0.25), by);
  }

  /// Rows or columns chosen by integers, some of them twice, counted from either end or around.
  value chosen() {
    sharding::indexing how{static_cast<int>(pick(2))};
    how.mode = pick(2) == 0 ? sharding::index_mode::wrap : sharding::index_mode::drop;
    const value v = uncut_along(floats(2), how.axis);
    const value counted = graph::write(v.owner, op::iota, array_type(dtype::i32, {8}), {});
    const value indices = counted * static_cast<double>(1 + pick(3)) - graph::constant(v.owner, dtype::i32, 5);
    const aval type = sharding::gathered_type(v.type(), indices.type(), how);
    if (pick(2) == 0) return graph::gather(v, indices, how, type);
    how.kind = pick(2) == 0 ? sharding::scatter_kind::add : sharding::scatter_kind::set;
    if (how.kind == sharding::scatter_kind::set) how.mode = sharding::index_mode::drop;
    return graph::scatter(v, indices, graph::gather(v * 0.5, indices, {how.axis}, type), how);
  }

  /// One of the parameters: no two elements are nearly equal, so rounding changes no order.
  value parameter() {
    for (;;)
      if (const value v = floats(2); made_.g.at(v.id).code == op::parameter) return v;
  }

  value walked() {
    using graph::running;
    const running kinds[] = {running::sum, running::prod, running::logsumexp, running::lag, running::max, running::min};
    const running kind = kinds[pick(6)];
    const int d = static_cast<int>(pick(2));
    const bool extremum = kind == running::max || kind == running::min;
    const value v = uncut_along(extremum ? parameter() : floats(2), d);
    const bool backwards = pick(2) == 0;
    if (pick(4) == 0) return graph::recurrence(v * 0.5, v, d, backwards, pick(2) == 0) * 0.5;
    return graph::cumulative(v, kind, d, backwards) * (kind == running::sum ? 0.1 : 0.5);
  }

  value ordered() {
    const int d = static_cast<int>(pick(2));
    const value v = uncut_along(parameter(), d);
    return ops::in_order(v, graph::argsort(v, d, 8, pick(2) == 0), d);
  }

  /// A sequence of four channels, however it is cut, by a kernel of another value's numbers.
  value convolved() {
    const value v = floats(2);
    const value k = floats(2);
    if (v.type().dims[1].extent % 4 != 0 || k.type().size() % 8 != 0) return unary();
    const auto shaped = [&](value of, std::int64_t first, std::int64_t second, std::int64_t third) {
      aval flat = of.type();
      for (int d = 0; d < flat.rank; ++d) flat.dims[d].axes = 0;
      return graph::reshape(graph::reshard(of, flat), array_type(dtype::f64, {first, second, third}));
    };
    const value sequence = shaped(v, v.type().dims[0].extent, v.type().dims[1].extent / 4, 4);
    const value kernel = shaped(k, 2, 4, k.type().size() / 8);
    const aval types[] = {sequence.type(), kernel.type()};
    const aval natural = graph::expect(ops::conv_rule<>(types, v.mesh()));
    const aval wanted = random_spec(natural);
    const value taps = graph::reshard(kernel, random_spec(kernel.type()));
    const value made =
        ops::write_conv<>(std::array{graph::reshard(sequence, random_spec(sequence.type())), taps}, wanted);
    const value whole = graph::unary(op::tanh, graph::reshard(made, natural));
    return graph::reshape(whole,
                          array_type(dtype::f64, {natural.dims[0].extent, natural.size() / natural.dims[0].extent}));
  }

  /// Uniform numbers of a key, cut at random, beside a value.
  value random_numbers() {
    const value v = floats(2);
    const value counted = graph::write(v.owner, op::iota, array_type(dtype::u32, {2}), {});
    const value key = counted * static_cast<double>(1 + pick(1000)) + graph::number_like(counted, 7);
    const random::detail::source from(key, random_spec(without_cuts(v.type())));
    return graph::reshard(from.scaled(0.0, 1.0), v.type()) * v;
  }
  static aval without_cuts(aval type) {
    for (int d = 0; d < type.rank; ++d) type.dims[d].axes = 0;
    return type;
  }

  /// Linear operations on sums that wait over all axes that do not cut the array.
  value pending() {
    const int d = static_cast<int>(pick(2));
    const value v = uncut_along(floats(2), d);
    aval type = v.type();
    type.unreduced = static_cast<axis_set>(((1U << v.mesh().rank) - 1) & ~type.cut());
    if (type.unreduced == 0) return unary();
    aval reduced = type;
    reduced.reduced = type.unreduced;
    reduced.unreduced = 0;
    value sum = graph::reshard(v, type);
    for (int i = 0; i < 3; ++i) {
      const value counted = graph::write(v.owner, op::iota, array_type(dtype::i32, {sum.type().dims[d].extent}), {});
      switch (pick(4)) {
        case 0: sum = graph::cumulative(sum, graph::running::sum, d, pick(2) == 0) * 0.125; break;
        case 1: sum = sum + sum; break;
        case 2: sum = sum * graph::reshard(v, reduced); break;
        default: sum = graph::gather(sum, counted - graph::number_like(counted, 3), {d}, sum.type()); break;
      }
    }
    return graph::unary(op::tanh, graph::reshard(sum, random_spec(without_cuts(v.type()))));
  }

  value choice() {
    const op codes[] = {op::lt, op::ge, op::ne};
    const value a = any();
    return graph::select(graph::binary(codes[pick(3)], a, graph::number_like(a, 0.125)), any(), any());
  }

  value rows() {
    const value v = floats(2);
    switch (pick(3)) {
      case 0: return ops::write_softmax<op::softmax, -1>(std::array{v}, v.type());
      case 1: return ops::write_softmax<op::log_softmax, -1>(std::array{v}, v.type()) * 0.1;
      default: return ops::write_softmax<op::softmax, 0>(std::array{v}, v.type());
    }
  }

  /// The loss is a mean over all values; it and some values are results, cut at random, and so are all gradients.
  void finish() {
    value loss = graph::constant(&made_.g, dtype::f64, 0);
    std::vector<int> wrt;
    for (const value& v : values_) {
      loss = loss + graph::sum(v) / static_cast<double>(std::max<std::int64_t>(1, v.type().size()) *
                                                        static_cast<std::int64_t>(values_.size()));
      if (made_.g.at(v.id).code == op::parameter) wrt.push_back(v.id);
    }
    made_.g.outputs = {{loss.id, -1}};
    for (int id : transform::gradients(made_.g, loss.id, wrt)) made_.g.outputs.push_back({id, -1});
    for (int i = 0; i < 3; ++i) {
      const value v = values_[values_.size() - 1 - pick(values_.size() / 2)];
      made_.g.outputs.push_back({graph::reshard(v, random_spec(v.type())).id, -1});
    }
    for (int p : made_.g.parameters)
      made_.inputs.push_back(to_bytes(draw(input{{}, -1, 1}, made_.g.type(p).size(), bits_), dtype::f64));
  }

  bool marks_;  ///< whether there are unreduced and reduced values
  std::mt19937 bits_;
  program made_{};
  std::vector<value> values_{};
};

}  // namespace runtime_test
