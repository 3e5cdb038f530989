// SPDX-License-Identifier: Apache-2.0
// A step function that is traced and evaluated again and again, without being compiled for its types.
#pragma once

#include "optim/support.hpp"

namespace optim_test {

/// A trace with the memory of its arguments, which results replace.
struct running {
  graph::graph trace;
  std::vector<std::vector<std::byte>> inputs{};

  template <class T>
  void add(const T& object) {
    visit_variables(object, [&](const auto& v) {
      inputs.emplace_back(static_cast<std::size_t>(v.data->type.bytes()));
      runtime::copy_to_host(*v.data, inputs.back().data());
    });
  }
  float step() {
    const auto out = runtime::evaluate(trace, inputs);
    for (std::size_t i = 0; i < out.size(); ++i)
      if (const int alias = trace.outputs[i].alias; alias >= 0) inputs[static_cast<std::size_t>(alias)] = out[i];
    return numbers_of(out[0])[0];
  }
};

}  // namespace optim_test
