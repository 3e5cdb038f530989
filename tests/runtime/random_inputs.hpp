// SPDX-License-Identifier: Apache-2.0
// Inputs for a traced graph that a test runs several ways.
#pragma once

#include <tessera/graph/graph.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace runtime_test {

/// The parameters' bytes: numbers between -bound and bound, or bools of which three in four are true.
inline std::vector<std::vector<std::byte>> random_inputs(const tessera::graph::graph& g, unsigned seed, int bound) {
  std::mt19937 draw(seed);
  std::uniform_real_distribution<double> doubles(-bound, bound);
  std::uniform_real_distribution<float> floats(static_cast<float>(-bound), static_cast<float>(bound));
  std::vector<std::vector<std::byte>> inputs;
  for (const int p : g.parameters) {
    const tessera::aval& type = g.type(p);
    std::vector<std::byte> all(static_cast<std::size_t>(type.bytes()));
    for (std::int64_t i = 0; i < type.size(); ++i)
      if (type.type == tessera::f64) reinterpret_cast<double*>(all.data())[i] = doubles(draw);
      else if (type.type == tessera::f32) reinterpret_cast<float*>(all.data())[i] = floats(draw);
      else reinterpret_cast<bool*>(all.data())[i] = draw() % 4 != 0;
    inputs.push_back(std::move(all));
  }
  return inputs;
}

}  // namespace runtime_test
