// SPDX-License-Identifier: Apache-2.0
// Reductions made of several steps: values by plain loops, gradients by differences, one answer on every mesh, corners.
#include "runtime/differences.hpp"
#include "runtime/mesh_independence.hpp"

#include <tessera/ops/argmax.hpp>
#include <tessera/ops/statistics.hpp>

#include <numeric>

using namespace runtime_test;
namespace ops = tessera::ops;

namespace {

const double infinity = std::numeric_limits<double>::infinity();
const double no_number = std::numeric_limits<double>::quiet_NaN();

using prod_kind = ops::total_kind<op::reduce_prod>;
using argmax_kind = ops::position_kind<op::reduce_max>;
using argmin_kind = ops::position_kind<op::reduce_min>;
using all_kind = ops::logic_kind<op::reduce_min>;
using any_kind = ops::logic_kind<op::reduce_max>;

template <class Kind>
op_case kind_case(const std::string& name, std::vector<std::int64_t> extents, sharding::dim_set dims, bool keep,
                  input like) {
  like.extents = std::move(extents);
  return {name + " over " + std::to_string(dims) + (keep ? ", kept" : ""),
          {like},
          [=](std::span<const value> x, const spec_value* out) { return Kind::write(x[0], dims, keep, out); },
          true,
          !like.whole};
}

template <class Kind>
void add_cases(std::vector<op_case>& cases, const std::string& name, std::int64_t u, const input& like) {
  for (bool keep : {false, true}) {
    for (sharding::dim_set dims = 1; dims < 4; ++dims)
      cases.push_back(kind_case<Kind>(name, {u, 2 * u}, dims, keep, like));
    cases.push_back(kind_case<Kind>(name, {u, 2 * u, u}, 5, keep, like));
  }
}

std::vector<op_case> float_cases(std::int64_t u) {
  std::vector<op_case> cases;
  add_cases<prod_kind>(cases, "prod", u, {{}, 0.5, 1.5});
  add_cases<ops::variance_kind<0, false>>(cases, "var", u, {{}, -2, 2});
  add_cases<ops::variance_kind<1, true>>(cases, "std", u, {{}, -2, 2});
  add_cases<ops::norm_kind>(cases, "norm", u, {{}, -2, 2});
  add_cases<ops::logsumexp_kind>(cases, "logsumexp", u, {{}, -2, 2});
  return cases;
}

/// Results that carry no gradient, as the factor of one that does.
template <class Kind>
op_case whole_case(const std::string& name, std::int64_t u, sharding::dim_set dims, bool keep) {
  op_case c = kind_case<Kind>(name, {u, 2 * u}, dims, keep, {{}, -3, 3, true});
  c.build = [=](std::span<const value> x, const spec_value* out) {
    const value found = Kind::write(x[0], dims, keep, out);
    return graph::convert(found, x[0].type().type) * graph::reduce(op::reduce_sum, x[0], dims, keep, out);
  };
  return c;
}

std::vector<op_case> whole_cases(std::int64_t u) {
  std::vector<op_case> cases;
  for (bool keep : {false, true})
    for (sharding::dim_set dims = 1; dims < 4; ++dims) {
      cases.push_back(whole_case<argmax_kind>("argmax", u, dims, keep));
      cases.push_back(whole_case<argmin_kind>("argmin", u, dims, keep));
      cases.push_back(whole_case<all_kind>("all", u, dims, keep));
      cases.push_back(whole_case<any_kind>("any", u, dims, keep));
      cases.push_back(whole_case<ops::count_kind>("count_nonzero", u, dims, keep));
    }
  return cases;
}

/// What a kind gives for one row, of these elements.
template <class Kind>
std::vector<double> of_row(const std::vector<double>& row, dtype type = dtype::f64, bool keep = false) {
  graph::graph g;
  const value x{&g, g.add_parameter(array_type(type, {static_cast<std::int64_t>(row.size())}))};
  const value y = Kind::write(x, 1, keep, nullptr);
  g.outputs = {{y.id, -1}};
  const std::vector<bytes> inputs{to_bytes(row, type)};
  return to_numbers(runtime::evaluate(g, inputs)[0], y.type().type);
}

template <class Kind>
std::vector<double> gradient_of_row(const std::vector<double>& row) {
  return gradient_at([](std::span<const value> x) { return Kind::write(x[0], 1, false, nullptr); }, {row});
}

}  // namespace

TEST_CASE("gradients of products, variances, norms and logsumexp agree with differences") { check_all(float_cases(2)); }
TEST_CASE("products, variances, norms and logsumexp give the one-device answer however operand and result are cut") {
  check_meshes(float_cases(8), 24);
}
TEST_CASE("argmax, argmin, all, any and count_nonzero give the one-device answer however operand and result are cut") {
  check_meshes(whole_cases(8), 24);
}

TEST_CASE("products are exact for whole numbers, wrap around in integers and are 1 for nothing") {
  CHECK(of_row<prod_kind>({2, -3, 4}) == std::vector<double>{-24});
  CHECK(of_row<prod_kind>({65536, 65536, 3}, dtype::i32) == std::vector<double>{0});
  CHECK(of_row<prod_kind>({65537, 65537}, dtype::u32) == std::vector<double>{131073});
  CHECK(of_row<prod_kind>({}) == std::vector<double>{1});
  CHECK(std::isnan(of_row<prod_kind>({2, no_number, 4})[0]));
  CHECK(of_row<prod_kind>({1, 1, 1}, dtype::bool_) == std::vector<double>{1});
}

TEST_CASE("the gradient of a product is the product of the others, also at zeros") {
  CHECK(gradient_of_row<prod_kind>({2, 3, 4}) == std::vector<double>{12, 8, 6});
  CHECK(gradient_of_row<prod_kind>({2, 0, 4}) == std::vector<double>{0, 8, 0});
  CHECK(gradient_of_row<prod_kind>({0, 0, 4}) == std::vector<double>{0, 0, 0});
}

TEST_CASE("all of nothing is the byte 1, as every true is") {
  graph::graph g;
  const value x{&g, g.add_parameter(array_type(dtype::bool_, {0}))};
  g.outputs = {{all_kind::write(x, 1, false, nullptr).id, -1}};
  CHECK(runtime::evaluate(g, std::vector<bytes>(1))[0] == bytes{std::byte{1}});
}

TEST_CASE("all and any hold for bool, numbers and nothing; NaN is not zero") {
  CHECK(of_row<all_kind>({1, 0, 1}, dtype::bool_) == std::vector<double>{0});
  CHECK(of_row<any_kind>({0, 0, 1}, dtype::bool_) == std::vector<double>{1});
  CHECK(of_row<all_kind>({}, dtype::bool_) == std::vector<double>{1});
  CHECK(of_row<any_kind>({}, dtype::bool_) == std::vector<double>{0});
  CHECK(of_row<all_kind>({no_number, -1}) == std::vector<double>{1});
  CHECK(of_row<any_kind>({0, -0.0}) == std::vector<double>{0});
  CHECK(of_row<ops::count_kind>({0, no_number, -0.0, 3}) == std::vector<double>{2});
  CHECK(of_row<ops::count_kind>({1, 0, 1}, dtype::bool_) == std::vector<double>{2});
}

TEST_CASE("argmax and argmin name the first of equal elements, and the first NaN before all others") {
  CHECK(of_row<argmax_kind>({1, 3, 3, 2}) == std::vector<double>{1});
  CHECK(of_row<argmin_kind>({4, 3, 3, 5}, dtype::i32) == std::vector<double>{1});
  CHECK(of_row<argmax_kind>({1, no_number, 3, no_number}) == std::vector<double>{1});
  CHECK(of_row<argmin_kind>({1, 0, no_number, -infinity}) == std::vector<double>{2});
  CHECK(of_row<argmax_kind>({-infinity, -infinity}) == std::vector<double>{0});
  CHECK(of_row<argmax_kind>({0, 1, 1}, dtype::bool_) == std::vector<double>{1});
  CHECK(of_row<argmax_kind>({4294967295.0, 0, 1}, dtype::u32) == std::vector<double>{0});
}

TEST_CASE("norm-gradient-at-zero: the gradient of a norm at zero is zero") {
  CHECK(gradient_of_row<ops::norm_kind>({0, 0}) == std::vector<double>{0, 0});
  const std::vector<double> g = gradient_of_row<ops::norm_kind>({3, 4});
  CHECK(g[0] == Approx(0.6).epsilon(1e-15));
  CHECK(g[1] == Approx(0.8).epsilon(1e-15));
  const auto squared = [](std::span<const value> x) {
    return graph::unary(op::square, ops::norm_kind::write(x[0], 1, false, nullptr));
  };
  CHECK(gradient_at(squared, {{0, 0}}) == std::vector<double>{0, 0});
  const std::vector<double> s = gradient_at(squared, {{3, 4}});
  CHECK(s[0] == Approx(6).epsilon(1e-15));
  CHECK(s[1] == Approx(8).epsilon(1e-15));
  const auto sum_of_squares = [](std::span<const value> x) { return graph::sum(x[0] * x[0]); };
  CHECK(gradient_at(sum_of_squares, {{0, 0}}) == std::vector<double>{0, 0});
  CHECK(std::isnan(of_row<ops::norm_kind>({1, no_number})[0]));
  CHECK(of_row<ops::norm_kind>({}) == std::vector<double>{0});
}

TEST_CASE("the standard deviation of equal numbers is zero and so is its gradient") {
  using std_kind = ops::variance_kind<0, true>;
  CHECK(of_row<std_kind>({5, 5, 5}) == std::vector<double>{0});
  CHECK(gradient_of_row<std_kind>({5, 5, 5}) == std::vector<double>{0, 0, 0});
  CHECK(std::isnan(of_row<std_kind>({5, no_number})[0]));
}

TEST_CASE("a variance of numbers far from zero is not negative and has all digits") {
  using var_kind = ops::variance_kind<0, false>;
  CHECK(of_row<var_kind>(std::vector<double>(256, 1234), dtype::f32) == std::vector<double>{0});
  CHECK(of_row<var_kind>({8388608, 8388610}, dtype::f32) == std::vector<double>{1});
  CHECK(of_row<ops::variance_kind<1, false>>({1, 2, 4})[0] == Approx(7.0 / 3).epsilon(1e-15));
}

TEST_CASE("logsumexp-all-neginf: logsumexp of nothing but -inf is -inf with gradient zero, and nothing overflows") {
  using kind = ops::logsumexp_kind;
  CHECK(of_row<kind>({-infinity, -infinity}) == std::vector<double>{-infinity});
  CHECK(gradient_of_row<kind>({-infinity, -infinity}) == std::vector<double>{0, 0});
  CHECK(of_row<kind>({1000, 1000})[0] == Approx(1000.6931471805599).epsilon(1e-15));
  CHECK(gradient_of_row<kind>({1000, 1000}) == std::vector<double>{0.5, 0.5});
  CHECK(of_row<kind>({-infinity, 1}) == std::vector<double>{1});
  CHECK(gradient_of_row<kind>({-infinity, 1}) == std::vector<double>{0, 1});
  CHECK(of_row<kind>({infinity, 1}) == std::vector<double>{infinity});
  CHECK(std::isnan(of_row<kind>({no_number, 1})[0]));
  CHECK(of_row<kind>({-1e300, -1e300}, dtype::f64, true)[0] == Approx(-1e300));
}

TEST_CASE("low-precision-and-long-sums: a sum of a million float32 numbers has its first six digits") {
  const std::vector<double> tenths(1000000, static_cast<double>(0.1F));
  CHECK(std::abs(of_row<ops::total_kind<op::reduce_sum>>(tenths, dtype::f32)[0] - 100000) <= 1);
}
