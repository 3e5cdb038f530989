// SPDX-License-Identifier: Apache-2.0
// einsum and matmul of any ranks: values by plain loops, gradients by differences, one answer on every mesh.
#include "runtime/differences.hpp"
#include "runtime/mesh_independence.hpp"

#include <tessera/ops/einsum.hpp>
#include <tessera/ops/matmul.hpp>
#include <tessera/types.hpp>

#include <map>

using namespace runtime_test;

namespace {

using extents = std::vector<std::int64_t>;

template <std::size_t N>
value write_einsum(std::span<const value> x, const std::string& text, const spec_value* out) {
  std::array<value, N> operands;
  std::array<aval, N> types;
  for (std::size_t i = 0; i < N; ++i) operands[i] = x[i], types[i] = x[i].type();
  const sharding::einsum_plan plan = sharding::einsum(types, sharding::parse_einsum(text), out, x[0].mesh());
  graph::expect(plan.ruled);
  const value y = tessera::ops::write_einsum(operands, plan);
  CHECK(y.type() == plan.ruled.result);
  return y;
}

value write_einsum(std::span<const value> x, const std::string& text, const spec_value* out) {
  if (x.size() == 1) return write_einsum<1>(x, text, out);
  if (x.size() == 2) return write_einsum<2>(x, text, out);
  return write_einsum<3>(x, text, out);
}

op_case einsum_case(const std::string& text, std::vector<extents> operands) {
  op_case c{
      text, {}, [text](std::span<const value> x, const spec_value* out) { return write_einsum(x, text, out); }, true};
  for (extents& e : operands) c.inputs.push_back({std::move(e), -3, 4, true});
  return c;
}

std::vector<op_case> einsum_cases(std::int64_t u) {
  const std::int64_t v = 2 * u;
  return {einsum_case("ab->ba", {{u, v}}),
          einsum_case("abc->b", {{u, v, u}}),
          einsum_case("ab->", {{u, v}}),
          einsum_case("ab,bc->ac", {{u, v}, {v, u}}),
          einsum_case("ab,bc->ca", {{u, v}, {v, u}}),
          einsum_case("ab,cb", {{u, v}, {u, v}}),
          einsum_case("ab,a->b", {{u, v}, {u}}),
          einsum_case("a,b->ba", {{u}, {v}}),
          einsum_case("a,a->", {{v}, {v}}),
          einsum_case("ab,ab->ab", {{u, v}, {u, v}}),
          einsum_case("bthd,bshd->bhts", {{u, 2, u, 2}, {u, 3, u, 2}}),
          einsum_case("bhts,bshd->bthd", {{u, u, 2, 3}, {u, 3, u, 2}}),
          einsum_case("abc,cd->ad", {{u, v, 3}, {3, u}}),
          einsum_case("ab,cbd->ca", {{u, v}, {u, v, 3}}),
          einsum_case("ab,bc,ac->c", {{u, v}, {v, u}, {u, u}}),
          einsum_case("ab,bc,cd->da", {{u, v}, {v, u}, {u, v}}),
          einsum_case("a,ab,b->", {{u}, {u, v}, {v}})};
}

op_case matmul_case(extents a, extents b) {
  const std::string name = "matmul of ranks " + std::to_string(a.size()) + " and " + std::to_string(b.size());
  return {name,
          {{std::move(a), -3, 4, true}, {std::move(b), -3, 4, true}},
          [](std::span<const value> x, const spec_value* out) {
            const aval type = graph::expect(sharding::matmul(x[0].type(), x[1].type(), out, x[0].mesh()));
            const value y = tessera::ops::write_matmul(std::array{x[0], x[1]}, type);
            CHECK(y.type() == type);
            return y;
          },
          true};
}

std::vector<op_case> matmul_cases(std::int64_t u) {
  return {matmul_case({u}, {u}),          matmul_case({u, 2 * u}, {2 * u}),     matmul_case({u}, {u, 2 * u}),
          matmul_case({2, 3, u}, {u}),    matmul_case({u}, {2, u, 3}),          matmul_case({2 * u, u}, {u, u, 3}),
          matmul_case({u, 2, u}, {u, 3}), matmul_case({u, 2, u}, {u, u, 2 * u})};
}

/// Every element of a result by loops over the values of all letters.
std::vector<double> by_loops(const std::string& text, const std::vector<extents>& shapes,
                             const std::vector<std::vector<double>>& x) {
  const sharding::einsum_text parsed = sharding::parse_einsum(text);
  std::map<char, std::int64_t> extent;
  std::string letters;
  for (std::size_t k = 0; k < shapes.size(); ++k)
    for (std::size_t d = 0; d < shapes[k].size(); ++d) {
      const char c = parsed.operand[k].letters[d];
      if (extent.count(c) == 0) letters += c;
      extent[c] = shapes[k][d];
    }
  std::map<char, std::int64_t> at;
  const auto place = [&](const sharding::subscripts& of) {
    std::int64_t index = 0;
    for (int i = 0; i < of.count; ++i) index = index * extent[of.letters[i]] + at[of.letters[i]];
    return static_cast<std::size_t>(index);
  };
  std::size_t size = 1;
  for (int i = 0; i < parsed.result.count; ++i) size *= static_cast<std::size_t>(extent[parsed.result.letters[i]]);
  std::vector<double> result(size, 0);
  const std::function<void(std::size_t)> loop = [&](std::size_t letter) {
    if (letter == letters.size()) {
      double product = 1;
      for (std::size_t k = 0; k < x.size(); ++k) product *= x[k][place(parsed.operand[k])];
      result[place(parsed.result)] += product;
      return;
    }
    for (at[letters[letter]] = 0; at[letters[letter]] < extent[letters[letter]]; ++at[letters[letter]])
      loop(letter + 1);
  };
  loop(0);
  return result;
}

}  // namespace

TEST_CASE("einsum is the sum of products that its subscripts say") {
  for (const op_case& c : einsum_cases(3)) {
    INFO(c.name);
    graph::graph g;
    std::mt19937 bits(5);
    std::vector<value> operands;
    std::vector<extents> shapes;
    std::vector<std::vector<double>> numbers;
    std::vector<bytes> inputs;
    for (const input& i : c.inputs) {
      operands.push_back({&g, g.add_parameter(array_type(dtype::f64, i.extents))});
      shapes.push_back(i.extents);
      numbers.push_back(draw(i, operands.back().type().size(), bits));
      inputs.push_back(to_bytes(numbers.back(), dtype::f64));
    }
    g.outputs = {{c.build(operands, nullptr).id, -1}};
    CHECK(to_numbers(runtime::evaluate(g, inputs)[0], dtype::f64) == by_loops(c.name, shapes, numbers));
  }
}

TEST_CASE("gradients of einsum and matmul agree with differences") {
  check_all(einsum_cases(2));
  check_all(matmul_cases(2));
}
TEST_CASE("einsum gives the one-device answer on every mesh, however operands and result are cut") {
  check_meshes(einsum_cases(8), 60);
}
TEST_CASE("matmul of any ranks gives the one-device answer on every mesh") { check_meshes(matmul_cases(8), 60); }

namespace {

using cluster = tessera::mesh<tessera::axis<"data", 2>>;
template <class Shape, class Spec = tessera::P<>>
using array = tessera::expr<tessera::tensor<dtype::f64, Shape, Spec, cluster>::type, cluster>;

template <class Array>
Array parameter(graph::graph& g) {
  return {{&g, g.add_parameter(Array::type)}};
}

}  // namespace

TEST_CASE("a product left pending is, once resharded, the product; a reduced weight gets its gradient summed once") {
  using namespace tessera;
  graph::graph g;
  g.mesh = cluster::value;
  const auto a = parameter<array<shape<2, 4>, P<none, "data">>>(g);
  const auto b = parameter<array<shape<4, 3>, P<"data">>>(g);
  const auto x = parameter<array<shape<4, 2>, P<"data">>>(g);
  const auto w = parameter<array<shape<2, 3>>>(g);
  const auto y = reshard<P<>>(einsum<"ab,bc->ca">(a, b, out_sharding<P<unreduced<"data">>>));
  const auto loss = sum(einsum<"ab,bc->ca">(x, reshard<P<reduced<"data">>>(w)));
  const int wrt[] = {w.handle.id};
  g.outputs = {{y.handle.id, -1}, {transform::gradients(g, loss.handle.id, wrt)[0], -1}};
  const std::vector<double> eight{1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<double> twelve{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<bytes> inputs{to_bytes(eight, dtype::f64), to_bytes(twelve, dtype::f64),
                                  to_bytes(eight, dtype::f64), to_bytes(std::vector<double>(6, 1), dtype::f64)};
  const std::vector<bytes> out = runtime::evaluate(g, inputs);
  CHECK(to_numbers(out[0], dtype::f64) == by_loops("ab,bc->ca", {{2, 4}, {4, 3}}, {eight, twelve}));
  CHECK(to_numbers(out[1], dtype::f64) == std::vector<double>{16, 16, 16, 20, 20, 20});
}
