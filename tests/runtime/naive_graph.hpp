// SPDX-License-Identifier: Apache-2.0
// A trace run node by node, each as the plain loop it means, over whole arrays in double precision: it knows no mesh,
// no pass and no kernel, and is what lowered programs are compared with.
#pragma once

#include "runtime/support.hpp"

#include <tessera/graph/along_axis.hpp>
#include <tessera/graph/gather.hpp>
#include <tessera/graph/layout.hpp>
#include <tessera/graph/windows.hpp>
#include <tessera/random/threefry.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace runtime_test {

/// Places of the elements of an array, row-major.
using place = std::array<std::int64_t, max_rank>;

template <class F>
void for_each_place(const aval& type, F f) {
  place at{};
  for (std::int64_t i = 0; i < type.size(); ++i) {
    f(static_cast<const place&>(at), static_cast<std::size_t>(i));
    for (int d = type.rank - 1; d >= 0; --d) {
      if (++at[static_cast<std::size_t>(d)] < type.dims[d].extent) break;
      at[static_cast<std::size_t>(d)] = 0;
    }
  }
}

/// The element of an array at a place; dimensions of extent 1 are stretched.
inline std::size_t element_at(const aval& type, const place& at) {
  std::int64_t flat = 0;
  for (int d = 0; d < type.rank; ++d)
    flat = flat * type.dims[d].extent + (type.dims[d].extent == 1 ? 0 : at[static_cast<std::size_t>(d)]);
  return static_cast<std::size_t>(flat);
}

class naive_graph {
 public:
  using array = std::vector<double>;

  /// The outputs of a graph without bodies.
  static std::vector<array> run(const graph::graph& g, const std::vector<array>& inputs) {
    naive_graph all(g);
    for (int id = 0; id < g.size(); ++id) all.arrays_.push_back(all.node(g.at(id), inputs));
    std::vector<array> outputs;
    for (const graph::output& out : g.outputs) outputs.push_back(all.arrays_[static_cast<std::size_t>(out.node)]);
    return outputs;
  }

 private:
  explicit naive_graph(const graph::graph& g) : g_(g) {}

  const array& operand(const graph::node& n, int i) const {
    return arrays_[static_cast<std::size_t>(n.operands[static_cast<std::size_t>(i)])];
  }
  const aval& type(const graph::node& n, int i) const { return g_.type(n.operands[static_cast<std::size_t>(i)]); }

  array node(const graph::node& n, const std::vector<array>& inputs) const {
    array out(static_cast<std::size_t>(n.type.size()));
    switch (n.code) {
      case op::parameter: return inputs[n.attribute[0]];
      case op::constant: out.assign(out.size(), n.value); return out;
      case op::empty: out.assign(out.size(), std::numeric_limits<double>::quiet_NaN()); return out;
      case op::iota:
        for_each_place(n.type,
                       [&](const place& at, std::size_t i) { out[i] = static_cast<double>(at[n.attribute[0]]); });
        return out;
      case op::reshape:
      case op::reshard:
      case op::check_range: return operand(n, 0);
      case op::transpose: transpose(n, out); return out;
      case op::broadcast: broadcast(n, out); return out;
      case op::slice: slice(n, out); return out;
      case op::update_slice: update_slice(n, out); return out;
      case op::dynamic_slice: dynamic_slice(n, out); return out;
      case op::dynamic_update: dynamic_update(n, out); return out;
      case op::gather: gather(n, out); return out;
      case op::scatter: scatter(n, out); return out;
      case op::windows:
        slide(n, n.type, type(n, 0), [&](std::size_t in, std::size_t at) { out[in] = operand(n, 0)[at]; });
        return out;
      case op::overlap_add:
        slide(n, type(n, 0), n.type, [&](std::size_t in, std::size_t at) { out[at] += operand(n, 0)[in]; });
        return out;
      case op::cumulative: walk(n, [&](const line& of) { cumulate(n, of, out); }); return out;
      case op::recurrence: walk(n, [&](const line& of) { recur(n, of, out); }); return out;
      case op::argsort: argsort(n, out); return out;
      case op::dot: dot(n, out); return out;
      default: break;
    }
    if (graph::is(n.code, graph::op_kind::reduction)) reduce(n, out);
    else if (graph::is(n.code, graph::op_kind::rows)) rows(n, out);
    else if (graph::is(n.code, graph::op_kind::elementwise)) elementwise(n, out);
    else throw std::logic_error("naive_graph: no loop for " + std::string(graph::about(n.code).name));
    return out;
  }

  void elementwise(const graph::node& n, array& out) const {
    for_each_place(n.type, [&](const place& at, std::size_t i) {
      double x[3] = {};
      for (int k = 0; k < n.operand_count(); ++k) x[k] = operand(n, k)[element_at(type(n, k), at)];
      out[i] = n.code == op::convert ? converted(x[0], n.type.type) : scalar(n.code, x[0], x[1], x[2]);
    });
  }

  static double converted(double x, dtype to) {
    if (is_floating(to)) return x;
    return to == dtype::bool_ ? static_cast<double>(x != 0) : std::trunc(x);
  }

  static double scalar(op code, double x, double y, double z) {
    switch (code) {
      case op::neg: return -x;
      case op::abs: return std::abs(x);
      case op::sign: return x > 0 ? 1 : x < 0 ? -1 : x;
      case op::square: return x * x;
      case op::sqrt: return std::sqrt(x);
      case op::rsqrt: return 1 / std::sqrt(x);
      case op::exp: return std::exp(x);
      case op::log: return std::log(x);
      case op::log1p: return std::log1p(x);
      case op::tanh: return std::tanh(x);
      case op::logistic: return 1 / (1 + std::exp(-x));
      case op::gelu: return kernels::naive::gelu(x);
      case op::gelu_slope: return kernels::naive::gelu_slope(x);
      case op::sin: return std::sin(x);
      case op::cos: return std::cos(x);
      case op::erf: return std::erf(x);
      case op::relu: return x > 0 ? x : 0;
      case op::logical_not: return x == 0;
      case op::copy:
      case op::name:
      case op::stop_gradient: return x;
      case op::add: return x + y;
      case op::sub: return x - y;
      case op::mul: return x * y;
      case op::div: return x / y;
      case op::max: return std::max(x, y);
      case op::min: return std::min(x, y);
      case op::pow: return std::pow(x, y);
      case op::eq: return x == y;
      case op::ne: return x != y;
      case op::lt: return x < y;
      case op::le: return x <= y;
      case op::gt: return x > y;
      case op::ge: return x >= y;
      case op::logical_and: return x != 0 && y != 0;
      case op::logical_or: return x != 0 || y != 0;
      case op::select: return x != 0 ? y : z;
      case op::bit_xor: return word(x) ^ word(y);
      case op::bit_or: return word(x) | word(y);
      case op::shift_right: return word(x) >> word(y);
      case op::threefry_hi: return random::threefry2x32({word(x), word(y)}, 0, word(z)).hi;
      case op::threefry_lo: return random::threefry2x32({word(x), word(y)}, 0, word(z)).lo;
      case op::threefry_bits: return random::bits32_at({word(x), word(y)}, word(z));
      default: throw std::logic_error("naive_graph: no function " + std::string(graph::about(code).name));
    }
  }

  static std::uint32_t word(double x) { return static_cast<std::uint32_t>(x); }

  /// Calls f(element of the windows, element they are taken from).
  template <class F>
  static void slide(const graph::node& n, const aval& wide, const aval& whole, F f) {
    const graph::windowing how = graph::windowing_of(n, wide);
    const int last = how.of[how.count - 1].dim;
    for_each_place(wide, [&](const place& at, std::size_t i) {
      place source{};
      for (int d = 0; d < whole.rank; ++d)
        source[static_cast<std::size_t>(d)] = at[static_cast<std::size_t>(d <= last ? d : d + how.count)];
      for (int w = 0; w < how.count; ++w) {
        std::int64_t& along = source[static_cast<std::size_t>(how.of[w].dim)];
        along = along * how.of[w].stride + at[static_cast<std::size_t>(last + 1 + w)] * how.of[w].dilation;
      }
      f(i, element_at(whole, source));
    });
  }

  /// The elements along the dimension of a node, in the order in which they are walked along.
  using line = std::vector<std::size_t>;

  template <class F>
  void walk(const graph::node& n, F f) const {
    const auto axis = static_cast<std::size_t>(n.attribute[0]);
    const aval& from = type(n, n.operand_count() - 1);
    aval starts = from;
    starts.dims[axis].extent = from.dims[axis].extent == 0 ? 0 : 1;
    for_each_place(starts, [&](place at, std::size_t) {
      line of;
      for (std::int64_t i = 0; i < from.dims[axis].extent; ++i) {
        at[axis] = n.attribute[2] != 0 ? from.dims[axis].extent - 1 - i : i;
        of.push_back(element_at(from, at));
      }
      f(of);
    });
  }

  void cumulate(const graph::node& n, const line& of, array& out) const {
    const array& x = operand(n, 0);
    double so_far = 0;
    for (std::size_t i = 0; i < of.size(); ++i) {
      const double here = x[of[i]];
      switch (static_cast<graph::running>(n.attribute[1])) {
        case graph::running::sum: so_far += here; break;
        case graph::running::prod: so_far = i == 0 ? here : so_far * here; break;
        case graph::running::max: so_far = i == 0 ? here : std::max(so_far, here); break;
        case graph::running::min: so_far = i == 0 ? here : std::min(so_far, here); break;
        case graph::running::logsumexp: so_far = i == 0 ? here : std::log(std::exp(so_far) + std::exp(here)); break;
        default: so_far = i == 0 ? 0 : x[of[i - 1]]; break;
      }
      out[of[i]] = so_far;
    }
  }

  void recur(const graph::node& n, const line& of, array& out) const {
    const bool shifted = n.attribute[1] != 0;
    for (std::size_t i = 0; i < of.size(); ++i) {
      const double before = i == 0 ? 0 : operand(n, 0)[of[shifted ? i - 1 : i]] * out[of[i - 1]];
      out[of[i]] = before + operand(n, 1)[of[i]];
    }
  }

  void argsort(const graph::node& n, array& out) const {
    const auto axis = static_cast<std::size_t>(n.attribute[0]);
    const array& x = operand(n, 0);
    const aval& from = type(n, 0);
    aval starts = from;
    starts.dims[axis].extent = 1;
    for_each_place(starts, [&](place at, std::size_t) {
      std::vector<std::int64_t> order(static_cast<std::size_t>(from.dims[axis].extent));
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
      const auto element = [&](std::int64_t i) {
        at[axis] = i;
        return x[element_at(from, at)];
      };
      std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        const double left = element(a), right = element(b);
        return left != right ? (n.attribute[2] != 0 ? left > right : left < right) : a < b;
      });
      for (std::int64_t i = 0; i < n.type.dims[axis].extent; ++i) {
        at[axis] = i;
        out[element_at(n.type, at)] = static_cast<double>(order[static_cast<std::size_t>(i)]);
      }
    });
  }

  void transpose(const graph::node& n, array& out) const {
    const aval& from = type(n, 0);
    for_each_place(n.type, [&](const place& at, std::size_t i) {
      place source{};
      for (int d = 0; d < n.type.rank; ++d)
        source[static_cast<std::size_t>(sharding::dim_at(static_cast<sharding::dim_list>(n.attribute[0]), d))] =
            at[static_cast<std::size_t>(d)];
      out[i] = operand(n, 0)[element_at(from, source)];
    });
  }

  void broadcast(const graph::node& n, array& out) const {
    const aval& from = type(n, 0);
    for_each_place(n.type, [&](const place& at, std::size_t i) {
      place source{};
      for (int d = 0; d < from.rank; ++d)
        source[static_cast<std::size_t>(d)] =
            at[static_cast<std::size_t>(sharding::dim_at(static_cast<sharding::dim_list>(n.attribute[0]), d))];
      out[i] = operand(n, 0)[element_at(from, source)];
    });
  }

  /// Where element `at` of the smaller side of a slice stands in the larger one.
  static place behind(const sharding::slices& taken, const place& at, int rank) {
    place source{};
    for (int d = 0; d < rank; ++d)
      source[static_cast<std::size_t>(d)] = taken.of[d].start + at[static_cast<std::size_t>(d)] * taken.of[d].stride;
    return source;
  }

  void slice(const graph::node& n, array& out) const {
    const sharding::slices taken = graph::slices_of(n, n.type);
    for_each_place(n.type, [&](const place& at, std::size_t i) {
      out[i] = operand(n, 0)[element_at(type(n, 0), behind(taken, at, n.type.rank))];
    });
  }

  void update_slice(const graph::node& n, array& out) const {
    const sharding::slices taken = graph::slices_of(n, type(n, 1));
    out = operand(n, 0);
    for_each_place(type(n, 1), [&](const place& at, std::size_t i) {
      out[element_at(n.type, behind(taken, at, n.type.rank))] = operand(n, 1)[i];
    });
  }

  /// The start of a part of `extent` elements, moved so that it lies inside.
  static std::int64_t start_within(double wanted, std::int64_t extent, std::int64_t whole) {
    auto start = static_cast<std::int64_t>(wanted);
    if (start < 0) start += whole;
    return std::clamp<std::int64_t>(start, 0, whole - extent);
  }

  void dynamic_slice(const graph::node& n, array& out) const {
    const auto d = static_cast<std::size_t>(n.attribute[0]);
    const std::int64_t start = start_within(operand(n, 1)[0], n.type.dims[d].extent, type(n, 0).dims[d].extent);
    for_each_place(n.type, [&](place at, std::size_t i) {
      at[d] += start;
      out[i] = operand(n, 0)[element_at(type(n, 0), at)];
    });
  }

  void dynamic_update(const graph::node& n, array& out) const {
    const auto d = static_cast<std::size_t>(n.attribute[0]);
    const std::int64_t start = start_within(operand(n, 2)[0], type(n, 1).dims[d].extent, n.type.dims[d].extent);
    out = operand(n, 0);
    for_each_place(type(n, 1), [&](place at, std::size_t i) {
      at[d] += start;
      out[element_at(n.type, at)] = operand(n, 1)[i];
    });
  }

  /// Calls f(place in the array, element of the gathered side) where the index is inside.
  template <class F>
  void for_each_chosen(const graph::node& n, const aval& array_type, const aval& gathered, F f) const {
    const sharding::indexing how = graph::indexing_of(n);
    const aval& indices = type(n, 1);
    const sharding::gather_dims dims(how, array_type.rank, indices.rank);
    for_each_place(gathered, [&](const place& at, std::size_t i) {
      place in_array{}, in_indices{};
      for (int d = 0; d < dims.rank; ++d) {
        if (dims.of_array[d] >= 0)
          in_array[static_cast<std::size_t>(dims.of_array[d])] = at[static_cast<std::size_t>(d)];
        if (dims.of_indices[d] >= 0)
          in_indices[static_cast<std::size_t>(dims.of_indices[d])] = at[static_cast<std::size_t>(d)];
      }
      const std::int64_t extent = array_type.dims[how.axis].extent;
      auto index = static_cast<std::int64_t>(operand(n, 1)[element_at(indices, in_indices)]);
      if (how.mode == sharding::index_mode::wrap) index = (index % extent + extent) % extent;
      else if (how.mode == sharding::index_mode::clip) index = std::clamp<std::int64_t>(index, 0, extent - 1);
      else if (index < 0) index += extent;
      in_array[static_cast<std::size_t>(how.axis)] = index;
      if (index >= 0 && index < extent) f(in_array, i);
    });
  }

  void gather(const graph::node& n, array& out) const {
    for_each_chosen(n, type(n, 0), n.type,
                    [&](const place& at, std::size_t i) { out[i] = operand(n, 0)[element_at(type(n, 0), at)]; });
  }

  void scatter(const graph::node& n, array& out) const {
    out = operand(n, 0);
    for_each_chosen(n, n.type, type(n, 2), [&](const place& at, std::size_t i) {
      double& element = out[element_at(n.type, at)];
      const double update = operand(n, 2)[i];
      switch (graph::indexing_of(n).kind) {
        case sharding::scatter_kind::add: element += update; return;
        case sharding::scatter_kind::set: element = update; return;
        case sharding::scatter_kind::max: element = std::max(element, update); return;
        default: element = std::min(element, update); return;
      }
    });
  }

  /// Sums over every pair of elements of the operands whose common dimensions agree.
  void dot(const graph::node& n, array& out) const {
    const sharding::dot_dims dims = graph::dot_dims_of(n);
    const aval &left = type(n, 0), &right = type(n, 1);
    aval summed;
    for (int i = 0; i < sharding::dim_count(dims.lhs_contracting); ++i)
      summed.dims[summed.rank++] = left.dims[sharding::dim_at(dims.lhs_contracting, i)];
    for_each_place(n.type, [&](const place& at, std::size_t i) {
      place l{}, r{};
      std::size_t next = 0;
      const auto listed = [](sharding::dim_list list, int d) {
        for (int k = 0; k < sharding::dim_count(list); ++k)
          if (sharding::dim_at(list, k) == d) return true;
        return false;
      };
      for (int k = 0; k < sharding::dim_count(dims.lhs_batch); ++k, ++next) {
        l[static_cast<std::size_t>(sharding::dim_at(dims.lhs_batch, k))] = at[next];
        r[static_cast<std::size_t>(sharding::dim_at(dims.rhs_batch, k))] = at[next];
      }
      for (int d = 0; d < left.rank; ++d)
        if (!listed(dims.lhs_batch, d) && !listed(dims.lhs_contracting, d)) l[static_cast<std::size_t>(d)] = at[next++];
      for (int d = 0; d < right.rank; ++d)
        if (!listed(dims.rhs_batch, d) && !listed(dims.rhs_contracting, d)) r[static_cast<std::size_t>(d)] = at[next++];
      for_each_place(summed, [&](const place& inner, std::size_t) {
        for (int k = 0; k < summed.rank; ++k) {
          l[static_cast<std::size_t>(sharding::dim_at(dims.lhs_contracting, k))] = inner[static_cast<std::size_t>(k)];
          r[static_cast<std::size_t>(sharding::dim_at(dims.rhs_contracting, k))] = inner[static_cast<std::size_t>(k)];
        }
        out[i] += operand(n, 0)[element_at(left, l)] * operand(n, 1)[element_at(right, r)];
      });
    });
  }

  /// A reduced dimension is gone, or is there with extent 1.
  void reduce(const graph::node& n, array& out) const {
    const aval& from = type(n, 0);
    const bool kept = n.type.rank == from.rank;
    constexpr double inf = std::numeric_limits<double>::infinity();
    out.assign(out.size(), n.code == op::reduce_sum    ? 0
                           : n.code == op::reduce_prod ? 1
                           : n.code == op::reduce_max  ? -inf
                                                       : inf);
    for_each_place(from, [&](const place& at, std::size_t i) {
      place to{};
      std::size_t next = 0;
      for (int d = 0; d < from.rank; ++d) {
        const bool reduced = (n.attribute[0] >> d & 1U) != 0;
        if (!reduced) to[next] = at[static_cast<std::size_t>(d)];
        if (!reduced || kept) ++next;
      }
      double& total = out[element_at(n.type, to)];
      const double x = operand(n, 0)[i];
      switch (n.code) {
        case op::reduce_sum: total += x; return;
        case op::reduce_prod: total *= x; return;
        case op::reduce_max: total = std::max(total, x); return;
        default: total = std::min(total, x); return;
      }
    });
  }

  /// Along the last dimension: softmax, its logarithm, and the products of their Jacobians with u.
  void rows(const graph::node& n, array& out) const {
    const auto columns = static_cast<std::size_t>(n.type.dims[n.type.rank - 1].extent);
    const array& x = operand(n, 0);
    for (std::size_t row = 0; row < out.size(); row += columns) {
      const auto begin = x.begin() + static_cast<std::ptrdiff_t>(row);
      const double largest = *std::max_element(begin, begin + static_cast<std::ptrdiff_t>(columns));
      double sum = 0, dots = 0;
      for (std::size_t i = row; i < row + columns; ++i) {
        sum += std::exp(x[i] - largest);
        if (n.operand_count() == 2) dots += n.code == op::softmax_grad ? operand(n, 1)[i] * x[i] : operand(n, 1)[i];
      }
      for (std::size_t i = row; i < row + columns; ++i) {
        if (n.code == op::softmax) out[i] = std::exp(x[i] - largest) / sum;
        else if (n.code == op::log_softmax) out[i] = x[i] - largest - std::log(sum);
        else if (n.code == op::softmax_grad) out[i] = x[i] * (operand(n, 1)[i] - dots);
        else out[i] = operand(n, 1)[i] - std::exp(x[i]) * dots;
      }
    }
  }

  const graph::graph& g_;
  std::vector<array> arrays_{};
};

}  // namespace runtime_test
