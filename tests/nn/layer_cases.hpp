// SPDX-License-Identifier: Apache-2.0
// What tests of layers share: a loss with its gradients for any layer, run by the passes and the executor of jit,
// against central differences in float64, and on a mesh against one device.
#pragma once

#include "runtime/differences.hpp"

#include <tessera/nn/layers.hpp>
#include <tessera/tessera.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

namespace layer_cases {

namespace ts = tessera;
using runtime_test::bytes;
using ts::none, ts::P;
using numbers = std::vector<double>;

using one = ts::mesh<>;
using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 2>>;

template <class Shape, ts::dtype D = ts::f64, class Spec = P<>, class Mesh = one>
using array = ts::tensor<D, Shape, Spec, Mesh>;

/// The parameters among variables, as arrays in their order.
template <class T>
constexpr auto parameters(const T& object) {
  if constexpr (ts::Variable<T>) {
    if constexpr (std::same_as<typename T::variable_kind, ts::nn::param>)
      return std::tuple(ts::reshard<typename T::spec_type>(object));
    else return std::tuple<>{};
  } else if constexpr (ts::is_sequence<T>) {
    return std::apply([](const auto&... each) { return std::tuple_cat(parameters(each)...); }, object);
  } else if constexpr (ts::Module<T>) {
    return boost::hana::unpack(T::hana_accessors_impl::apply(), [&](const auto&... members) {
      return std::tuple_cat(parameters(boost::hana::second(members)(object))...);
    });
  } else {
    return std::tuple<>{};
  }
}

inline constexpr auto call = [](auto& model, const auto&... xs) { return model(xs...); };

/// sum(Call(model, x, rest...) weights), its gradients for the parameters and for x, and the layer's result.
template <auto Call>
inline constexpr auto weighted = [](auto& model, auto weights, auto x, auto... rest) {
  const auto loss = [&](auto parts, auto w) {
    return ts::sum(Call(std::get<0>(parts), std::get<1>(parts), rest...) * w);
  };
  auto [value, grads] = ts::value_and_grad(loss)(std::tuple(model, x), weights);
  const auto of_x = [](const auto& g) {
    if constexpr (ts::is_floating(std::remove_cvref_t<decltype(g)>::type.type)) return std::tuple(g);
    else return std::tuple<>{};
  };
  return std::tuple_cat(std::tuple(value), parameters(std::get<0>(grads)), of_x(std::get<1>(grads)),
                        std::tuple(Call(model, x, rest...)));
};

/// The numbers of every output, of a step's trace.
inline std::vector<numbers> run(const ts::graph::graph& g, const std::vector<numbers>& inputs) {
  std::vector<bytes> in;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    in.push_back(runtime_test::to_bytes(inputs[i], g.type(g.parameters[i]).type));
  const std::vector<bytes> out = ts::runtime::evaluate(g, in);
  std::vector<numbers> all;
  for (std::size_t i = 0; i < out.size(); ++i)
    all.push_back(runtime_test::to_numbers(out[i], g.type(g.outputs[i].node).type));
  return all;
}
template <const auto& Step, class Model, class... Xs>
ts::graph::graph trace() {
  return ts::transform::traced<
      Step, ts::nn::bound<Model, typename std::tuple_element_t<0, std::tuple<Xs...>>::mesh_type>, Xs...>::run();
}

/// Numbers for all inputs of a trace: floating-point ones within [-1, 1), others whole ones below `limit`.
inline std::vector<numbers> draw_inputs(const ts::graph::graph& g, double limit = 2, unsigned seed = 1) {
  std::mt19937 bits(seed);
  std::vector<numbers> all;
  for (const int p : g.parameters) {
    const ts::aval& type = g.type(p);
    const bool real = ts::is_floating(type.type);
    all.push_back(runtime_test::draw({{}, real ? -1.0 : 0.0, real ? 1.0 : limit, !real, type.type}, type.size(), bits));
  }
  return all;
}

/// Gradients of a float64 trace of `weighted` against differences; the parameters come first, then the weights, then x.
inline void check_differences(ts::graph::graph g, std::vector<numbers> inputs) {
  runtime_test::question q{std::move(g), {}, std::move(inputs)};
  const int known = static_cast<int>(q.g.outputs.size()) - 2;
  int found = 0;
  for (std::size_t p = 0; found < known; ++p) {
    REQUIRE(p < q.g.parameters.size());
    const bool weights = found == known - 1 && p + 1 < q.g.parameters.size() && found == static_cast<int>(p);
    if (weights || !ts::is_floating(q.g.type(q.g.parameters[p]).type)) continue;
    q.wrt.push_back(q.g.parameters[p]);
    ++found;
  }
  q.g.outputs.resize(static_cast<std::size_t>(known) + 1);
  runtime_test::check_gradients(q);
}

/// The same outputs but for rounding, relative to the largest number of all: some gradients are zero but for rounding.
inline void check_close(const std::vector<numbers>& found, const std::vector<numbers>& expected, double allowed) {
  REQUIRE(found.size() == expected.size());
  double largest = 0;
  for (const numbers& each : expected)
    for (const double x : each) largest = std::max(largest, std::abs(x));
  for (std::size_t o = 0; o < found.size(); ++o) {
    INFO("output " << o);
    REQUIRE(found[o].size() == expected[o].size());
    for (std::size_t i = 0; i < found[o].size(); ++i)
      if (!(std::abs(found[o][i] - expected[o][i]) <= allowed * largest)) CHECK(found[o][i] == expected[o][i]);
  }
}

}  // namespace layer_cases
