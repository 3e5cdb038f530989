// SPDX-License-Identifier: Apache-2.0
// What the training cases share: putting published weights into modules, and the figures that stand for arrays.
#pragma once

#include <tessera/tessera.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "reference/reference.hpp"

namespace cases {

namespace ts = tessera;
using ts::none, ts::P;

/// Fills a variable from a fixture of as many elements.
template <class Variable>
void load(Variable& v, const std::string& file) {
  const auto host = reference::load_npy<float>(file);
  if (host.size() != static_cast<std::size_t>(Variable::shape_type::size)) throw std::invalid_argument(file);
  ts::runtime::copy_from_host(*v.data, host.data());
}

/// [L2 norm, sum], in double precision.
template <class Variable>
std::vector<double> norm_and_sum(const Variable& v) {
  double squares = 0, sum = 0;
  for (const double x : ts::nn::to_vector(v)) squares += x * x, sum += x;
  return {std::sqrt(squares), sum};
}

/// All elements of all variables of a module, in order.
template <class Model>
std::vector<double> elements(const Model& model) {
  std::vector<double> all;
  ts::visit_variables(model, [&](const auto& v) {
    for (const double x : ts::nn::to_vector(v)) all.push_back(x);
  });
  return all;
}

/// The largest distance between elements of the same place; NaN if any is.
inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) throw std::invalid_argument("arrays of different sizes");
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double distance = std::abs(a[i] - b[i]);
    if (std::isnan(distance)) return distance;
    largest = std::max(largest, distance);
  }
  return largest;
}

/// Collectives of a program by the names of expected.json.
template <class Program>
reference::json collectives() {
  constexpr ts::analysis::collective_counts counts = Program::collectives();
  return {{"all-reduce", counts.all_reduce},
          {"all-gather", counts.all_gather},
          {"reduce-scatter", counts.reduce_scatter},
          {"all-to-all", counts.all_to_all},
          {"collective-permute", counts.collective_permute}};
}

/// Whether a program has exactly these collectives.
constexpr bool only(const ts::analysis::collective_counts& counts, int all_reduce, int all_gather, int reduce_scatter) {
  return counts.all_reduce == all_reduce && counts.all_gather == all_gather &&
         counts.reduce_scatter == reduce_scatter && counts.all_to_all == 0 && counts.collective_permute == 0;
}

}  // namespace cases
