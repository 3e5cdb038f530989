// SPDX-License-Identifier: Apache-2.0
// What tests of graphs built at run time share: meshes, all specs of a shape, random inputs, one case an operation.
#pragma once

#include <tessera/ops/shape.hpp>
#include <tessera/ops/softmax.hpp>
#include <tessera/runtime/evaluate.hpp>
#include <tessera/transform/grad.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace runtime_test {

using namespace tessera;
using graph::op;
using graph::value;

using bytes = std::vector<std::byte>;

inline mesh_value one_device() { return {}; }
inline mesh_value data_mesh(std::int64_t size) { return {1, {"data"}, {size}}; }
inline mesh_value grid(std::int64_t data, std::int64_t model) { return {2, {"data", "model"}, {data, model}}; }

inline std::vector<mesh_value> all_meshes() {
  return {data_mesh(1), data_mesh(2), data_mesh(4), data_mesh(8), grid(2, 4)};
}

inline std::string text_of(const aval& type, const mesh_value& mesh) {
  text_buffer out;
  write_aval(out, type, mesh);
  return std::string(out.view());
}

inline aval array_type(dtype type, const std::vector<std::int64_t>& extents) {
  aval a = scalar_aval(type);
  for (std::int64_t e : extents) a.dims[a.rank++].extent = e;
  return a;
}

/// Every legal way to cut `shape`: each axis uncuts, or cuts one dimension, in every order where several cut the same.
inline std::vector<aval> all_specs(aval shape, const mesh_value& mesh) {
  for (int d = 0; d < shape.rank; ++d) shape.dims[d].axes = 0;
  std::vector<aval> found{shape};
  std::vector<int> order;
  const std::function<void(aval, axis_set)> extend = [&](const aval& from, axis_set used) {
    for (int axis = 0; axis < mesh.rank; ++axis)
      for (int d = 0; d < shape.rank && !(used & bit_of(axis)); ++d) {
        aval next = from;
        next.dims[d].axes = axis_append(next.dims[d].axes, axis);
        if (!check_cuts(next, mesh).ok()) continue;
        if (std::find(found.begin(), found.end(), next) == found.end()) found.push_back(next);
        extend(next, static_cast<axis_set>(used | bit_of(axis)));
      }
  };
  extend(shape, 0);
  return found;
}

/// `numbers` as elements of type `type`.
inline bytes to_bytes(std::span<const double> numbers, dtype type) {
  bytes out(numbers.size() * static_cast<std::size_t>(info(type).size));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    kernels::naive::write_element(out.data(), static_cast<std::int64_t>(i), type, numbers[i]);
  return out;
}

inline std::vector<double> to_numbers(const bytes& from, dtype type) {
  std::vector<double> out(from.size() / static_cast<std::size_t>(info(type).size));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = kernels::naive::read_element(from.data(), static_cast<std::int64_t>(i), type);
  return out;
}

/// How the elements of an input are drawn: evenly from [low, high), rounded to whole numbers on request.
struct input {
  std::vector<std::int64_t> extents{};
  double low = 0.5;
  double high = 2;
  bool whole = false;
  dtype type = dtype::f64;  ///< f64 stands for the floating-point type of the test
};

inline std::vector<double> draw(const input& from, std::int64_t count, std::mt19937& bits) {
  std::uniform_real_distribution<double> spread(from.low, from.high);
  std::vector<double> numbers(static_cast<std::size_t>(count));
  for (double& x : numbers) {
    x = spread(bits);
    if (from.whole || !is_floating(from.type)) x = std::floor(x);
  }
  return numbers;
}

/// One use of one operation. `build` writes it, cut as `out` says where that is not null.
struct op_case {
  std::string name;
  std::vector<input> inputs;
  std::function<value(std::span<const value>, const spec_value* out)> build;
  bool takes_out_spec = false;
  bool order_matters = false;  ///< its result depends on an order of summation even for whole numbers
};

inline op_case unary_case(op code, double low = 0.5, double high = 2) {
  return {std::string(about(code).name), {{{}, low, high}}, [code](std::span<const value> x, const spec_value*) {
            return graph::unary(code, x[0]);
          }};
}

/// Unary operations on a matrix, away from where they have a corner.
inline std::vector<op_case> unary_cases(std::int64_t u) {
  std::vector<op_case> cases;
  for (op code :
       {op::neg,  op::abs,      op::sign, op::square, op::sqrt, op::rsqrt, op::exp,       op::log,           op::log1p,
        op::tanh, op::logistic, op::sin,  op::cos,    op::erf,  op::relu,  op::copy,      op::stop_gradient, op::expm1,
        op::exp2, op::log2,     op::atan, op::sinh,   op::cosh, op::gelu,  op::gelu_slope})
    cases.push_back(unary_case(code));
  for (op code : {op::tan, op::asin, op::acos, op::erf_inv}) cases.push_back(unary_case(code, -0.75, 0.75));
  for (op code : {op::floor, op::ceil, op::round, op::trunc}) cases.push_back(unary_case(code, 1.1, 1.4));
  for (op code : {op::neg, op::abs, op::sign, op::square, op::exp, op::tanh, op::logistic, op::sin, op::cos, op::erf,
                  op::relu, op::expm1, op::exp2, op::atan, op::sinh, op::cosh, op::gelu, op::gelu_slope})
    cases.push_back(unary_case(code, -2, -0.25));
  for (op_case& c : cases) c.inputs[0].extents = {u, 2 * u};
  return cases;
}

/// Binary operations with every pattern of broadcasting.
inline std::vector<op_case> binary_cases(std::int64_t u) {
  const std::vector<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> patterns = {
      {{u, 2 * u}, {u, 2 * u}}, {{u, 2 * u}, {}},        {{}, {u, 2 * u}},
      {{u, 2 * u}, {1, 2 * u}}, {{u, 1}, {u, 2 * u}},    {{u, 1}, {1, 2 * u}},
      {{2 * u}, {u, 2 * u}},    {{u, u, 2 * u}, {u, 1}}, {{}, {}},
      {{1, 1}, {u, 2 * u}}};
  std::vector<op_case> cases;
  for (op code : {op::add, op::sub, op::mul, op::div, op::max, op::min, op::pow, op::atan2})
    for (const auto& [a, b] : patterns) {
      const std::string name =
          std::string(about(code).name) + " of ranks " + std::to_string(a.size()) + " and " + std::to_string(b.size());
      cases.push_back({name, {{a}, {b, 0.6, 2.1}}, [code](std::span<const value> x, const spec_value*) {
                         return graph::binary(code, x[0], x[1]);
                       }});
    }
  for (op code : {op::mod, op::floor_div})
    cases.push_back({std::string(about(code).name),
                     {{{u, 2 * u}, 4.4, 5.6}, {{u, 1}, 2, 2.1}},
                     [code](std::span<const value> x, const spec_value*) { return graph::binary(code, x[0], x[1]); }});
  for (op code : {op::eq, op::ne, op::lt, op::le, op::gt, op::ge}) {
    cases.push_back({std::string(about(code).name),
                     {{{u, 2 * u}, 0, 3, true}, {{u, 1}, 0, 3, true}, {{u, 2 * u}}},
                     [code](std::span<const value> x, const spec_value*) {
                       return graph::select(graph::binary(code, x[0], x[1]), x[2], x[0]);
                     }});
  }
  return cases;
}

inline op_case select_case(const std::string& name, std::vector<std::int64_t> p, std::vector<std::int64_t> a,
                           std::vector<std::int64_t> b) {
  return {name,
          {{std::move(p), 0, 2, true, dtype::bool_}, {std::move(a)}, {std::move(b)}},
          [](std::span<const value> x, const spec_value*) { return graph::select(x[0], x[1], x[2]); }};
}

/// select, conversions and logic.
inline std::vector<op_case> choice_cases(std::int64_t u) {
  std::vector<op_case> cases{select_case("select", {u, 2 * u}, {u, 2 * u}, {u, 2 * u}),
                             select_case("select with a scalar predicate", {}, {u, 2 * u}, {u, 2 * u}),
                             select_case("select of scalars", {u, 2 * u}, {}, {}),
                             select_case("select of a row and a column", {u, 2 * u}, {1, 2 * u}, {u, 1})};
  cases.push_back(
      {"convert of bool and int32",
       {{{u, 2 * u}, 0, 2, true, dtype::bool_}, {{u, 2 * u}, -3, 4, true, dtype::i32}, {{u, 2 * u}, 1, 9, true}},
       [](std::span<const value> x, const spec_value*) {
         const dtype d = x[2].type().type;
         return graph::convert(x[0], d) * x[2] + graph::convert(x[1], d);
       }});
  cases.push_back({"logic",
                   {{{u, 2 * u}, 0, 2, true, dtype::bool_}, {{u, 1}, 0, 2, true, dtype::bool_}, {{u, 2 * u}}},
                   [](std::span<const value> x, const spec_value*) {
                     const value p = graph::binary(op::logical_or, graph::binary(op::logical_and, x[0], x[1]),
                                                   graph::unary(op::logical_not, x[1]));
                     return graph::select(p, x[2], x[2] * 2.0);
                   }});
  return cases;
}

inline op_case reduce_case(op code, std::vector<std::int64_t> extents, sharding::dim_set dims, bool keep) {
  const std::string name = std::string(about(code).name) + " over " + std::to_string(dims) + " of rank " +
                           std::to_string(extents.size()) + (keep ? ", kept" : "");
  return {name,
          {{std::move(extents), -9, 9, true}},
          [=](std::span<const value> x, const spec_value* out) { return graph::reduce(code, x[0], dims, keep, out); },
          true};
}

inline std::vector<op_case> reduce_cases(std::int64_t u) {
  std::vector<op_case> cases;
  for (op code : {op::reduce_sum, op::reduce_max, op::reduce_min})
    for (bool keep : {false, true}) {
      cases.push_back(reduce_case(code, {2 * u}, 1, keep));
      for (sharding::dim_set dims = 1; dims < 4; ++dims) cases.push_back(reduce_case(code, {u, 2 * u}, dims, keep));
      for (sharding::dim_set dims = 1; dims < 8; ++dims)
        cases.push_back(reduce_case(code, {u, 2 * u, 3 * u}, dims, keep));
    }
  cases.push_back({"mean",
                   {{{u, 2 * u}, -9, 9, true}},
                   [](std::span<const value> x, const spec_value* out) {
                     return graph::reduce(op::reduce_sum, x[0], 2, false, out) /
                            static_cast<double>(x[0].type().dims[1].extent);
                   },
                   true});
  return cases;
}

inline op_case dot_case(const std::string& name, std::vector<std::int64_t> l, std::vector<std::int64_t> r,
                        std::vector<std::array<int, 2>> summed, std::vector<std::array<int, 2>> batch) {
  sharding::dot_dims dims;
  for (auto [a, b] : summed)
    dims.lhs_contracting = sharding::dim_append(dims.lhs_contracting, a),
    dims.rhs_contracting = sharding::dim_append(dims.rhs_contracting, b);
  for (auto [a, b] : batch)
    dims.lhs_batch = sharding::dim_append(dims.lhs_batch, a), dims.rhs_batch = sharding::dim_append(dims.rhs_batch, b);
  return {name,
          {{std::move(l), -3, 4, true}, {std::move(r), -3, 4, true}},
          [dims](std::span<const value> x, const spec_value* out) {
            return graph::dot(x[0], x[1], dims,
                              graph::expect(sharding::dot_general(x[0].type(), x[1].type(), dims, out, x[0].mesh())));
          },
          true};
}

inline std::vector<op_case> dot_cases(std::int64_t u) {
  return {dot_case("matrix product", {u, 2 * u}, {2 * u, 3 * u}, {{1, 0}}, {}),
          dot_case("product with lhs transposed", {2 * u, u}, {2 * u, 3 * u}, {{0, 0}}, {}),
          dot_case("product with rhs transposed", {u, 2 * u}, {3 * u, 2 * u}, {{1, 1}}, {}),
          dot_case("product with both transposed", {2 * u, u}, {3 * u, 2 * u}, {{0, 1}}, {}),
          dot_case("matrix times vector", {u, 2 * u}, {2 * u}, {{1, 0}}, {}),
          dot_case("inner product", {2 * u}, {2 * u}, {{0, 0}}, {}),
          dot_case("outer product", {u}, {2 * u}, {}, {}),
          dot_case("rows of a batch times a matrix", {u, u, 2 * u}, {2 * u, u}, {{2, 0}}, {}),
          dot_case("batched product", {u, u, 2 * u}, {u, 2 * u, u}, {{2, 1}}, {{0, 0}}),
          dot_case("batched product with rhs transposed", {u, u, 2 * u}, {u, u, 2 * u}, {{2, 2}}, {{0, 0}}),
          dot_case("product over two dimensions", {u, 2 * u, u}, {2 * u, u, u}, {{1, 0}, {2, 1}}, {}),
          dot_case("product over two dimensions in another order", {u, 2 * u, u}, {u, u, 2 * u}, {{1, 2}, {2, 0}}, {}),
          dot_case("batch in the middle", {u, 2 * u, u}, {u, u, 2 * u}, {{0, 1}}, {{1, 2}})};
}

inline op_case reshape_case(std::vector<std::int64_t> from, std::vector<std::int64_t> to) {
  const aval target = array_type(dtype::f64, to);
  return {"reshape of rank " + std::to_string(from.size()) + " to rank " + std::to_string(to.size()),
          {{std::move(from), -9, 9, true}},
          [target](std::span<const value> x, const spec_value* out) {
            const aval type = graph::expect(sharding::reshape(x[0].type(), target, out, x[0].mesh()));
            return ops::write_reshape(std::array{x[0]}, type);
          },
          true};
}

inline op_case broadcast_case(std::vector<std::int64_t> from, std::vector<std::int64_t> to) {
  const aval target = array_type(dtype::f64, to);
  return {"broadcast of rank " + std::to_string(from.size()) + " to rank " + std::to_string(to.size()),
          {{std::move(from), -9, 9, true}},
          [target](std::span<const value> x, const spec_value* out) {
            return ops::write_broadcast(std::array{x[0]},
                                        graph::expect(sharding::broadcast_to(x[0].type(), target, out, x[0].mesh())));
          },
          true};
}

inline op_case transpose_case(std::vector<std::int64_t> extents, std::vector<int> order) {
  sharding::dim_list permutation = 0;
  for (int d : order) permutation = sharding::dim_append(permutation, d);
  return {"transpose of rank " + std::to_string(order.size()) + " number " + std::to_string(permutation),
          {{std::move(extents), -9, 9, true}},
          [permutation](std::span<const value> x, const spec_value*) { return graph::transpose(x[0], permutation); }};
}

/// Operations that move elements; reshard with a spec of its own is among them.
inline std::vector<op_case> movement_cases(std::int64_t u) {
  std::vector<op_case> cases{reshape_case({u, 2 * u}, {2 * u * u}),
                             reshape_case({2 * u * u}, {u, 2 * u}),
                             reshape_case({u, 2 * u}, {u, 1, 2 * u}),
                             reshape_case({1, u, 1, 2 * u}, {u, 2 * u}),
                             reshape_case({u, 2 * u, u}, {u, 2 * u * u}),
                             reshape_case({2 * u, u}, {u, 2 * u}),
                             broadcast_case({}, {u, 2 * u}),
                             broadcast_case({2 * u}, {u, 2 * u}),
                             broadcast_case({u, 1}, {u, 2 * u}),
                             broadcast_case({1, u, 1}, {u, u, 2 * u}),
                             transpose_case({u, 2 * u}, {1, 0}),
                             transpose_case({u, 2 * u, 3 * u}, {2, 0, 1}),
                             transpose_case({u, 2 * u, 3 * u}, {0, 2, 1}),
                             transpose_case({u, 2 * u, 3 * u}, {2, 1, 0})};
  for (const std::vector<std::int64_t>& extents : {std::vector{u}, std::vector{u, 2 * u}, std::vector{u, 2 * u, u}})
    cases.push_back({"reshard of rank " + std::to_string(extents.size()),
                     {{extents, -9, 9, true}},
                     [](std::span<const value> x, const spec_value* out) {
                       return out == nullptr
                                  ? graph::unary(op::copy, x[0])
                                  : graph::reshard(x[0], graph::expect(with_spec(x[0].type(), *out, x[0].mesh())));
                     },
                     true});
  return cases;
}

template <op Code, int Axis>
op_case softmax_case(std::vector<std::int64_t> extents) {
  return {
      std::string(about(Code).name) + " along " + std::to_string(Axis) + " of rank " + std::to_string(extents.size()),
      {{std::move(extents), -2, 2}},
      [](std::span<const value> x, const spec_value*) {
        return ops::write_softmax<Code, Axis>(std::array{x[0]}, x[0].type());
      },
      false,
      true};
}

inline std::vector<op_case> softmax_cases(std::int64_t u) {
  return {softmax_case<op::softmax, -1>({u, 2 * u}), softmax_case<op::log_softmax, -1>({u, 2 * u}),
          softmax_case<op::softmax, 0>({u, 2 * u}),  softmax_case<op::log_softmax, 0>({u, 2 * u}),
          softmax_case<op::softmax, 1>({u, u, u}),   softmax_case<op::log_softmax, -1>({u, u, u}),
          softmax_case<op::softmax, -1>({2 * u})};
}

inline std::vector<op_case> all_cases(std::int64_t u) {
  std::vector<op_case> cases;
  for (const auto& part : {unary_cases(u), binary_cases(u), choice_cases(u), reduce_cases(u), dot_cases(u),
                           movement_cases(u), softmax_cases(u)})
    cases.insert(cases.end(), part.begin(), part.end());
  return cases;
}

/// The loss sum(y w), with weights w that are a parameter, and its gradients with respect to the floating-point inputs.
struct differentiated {
  value loss{};
  std::vector<int> wrt{};
  graph::list<int> gradients{};
};

inline differentiated add_gradients(graph::graph& g, value y, std::span<const value> inputs) {
  const value weights{&g, g.add_parameter(y.type())};
  differentiated d;
  d.loss = graph::sum(y * weights);
  for (const value& x : inputs)
    if (is_floating(x.type().type)) d.wrt.push_back(x.id);
  d.gradients = transform::gradients(g, d.loss.id, d.wrt);
  return d;
}

/// Adds the inputs of a case as parameters, with these types.
inline std::vector<value> add_inputs(graph::graph& g, std::span<const aval> types) {
  std::vector<value> inputs;
  for (const aval& type : types) inputs.push_back({&g, g.add_parameter(type)});
  return inputs;
}

}  // namespace runtime_test
