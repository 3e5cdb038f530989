// SPDX-License-Identifier: Apache-2.0
// Runs an optimiser's update on numbers: the transformation writes its graph, the graph is evaluated, state goes round.
#pragma once

#include <tessera/optim/optimizers.hpp>
#include <tessera/runtime/evaluate.hpp>
#include <tessera/transform/trace.hpp>

#include <cstring>
#include <string>
#include <vector>

namespace optim_test {

using namespace tessera;
using numbers = std::vector<float>;

/// The sentence of the exception of ours that f raises.
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const error& e) {
    return e.what();
  }
  return "nothing was raised";
}

inline std::vector<std::byte> bytes_of(const numbers& x) {
  std::vector<std::byte> out(x.size() * sizeof(float));
  std::memcpy(out.data(), x.data(), out.size());
  return out;
}

inline numbers numbers_of(const std::vector<std::byte>& bytes) {
  numbers out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

/// Gives every variable of an object a parameter of its own.
template <class Mesh, class T>
void bind_variables(graph::graph& g, T& object) {
  visit_variables(object, [&](auto& v) {
    using V = std::remove_cvref_t<decltype(v)>;
    v.handle = {&g, g.add_parameter(transform::variable_type<V, Mesh>)};
  });
}

/// A transformation with its state for all parameters of Model, cut over Mesh.
template <class Model, class Mesh, class Transformation>
class optimiser {
 public:
  explicit optimiser(Transformation t) : transformation_(std::move(t)) {
    state_type s{};
    visit_variables(s, [&](auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      state_.emplace_back(static_cast<std::size_t>(transform::variable_type<V, Mesh>.bytes()));
    });
  }

  /// State as it starts from these parameters.
  void start(const std::vector<numbers>& params) {
    if (started_) return;
    started_ = true;
    std::vector<runtime::storage_ptr> memory;
    Model model{};
    visit_variables(model, [&](auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      memory.push_back(runtime::make_storage(transform::variable_type<V, Mesh>, Mesh::value));
      runtime::copy_from_host(*memory.back(), params[memory.size() - 1].data());
    });
    state_type s{};
    visit_variables(s, [&](auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      v.data = runtime::make_storage(transform::variable_type<V, Mesh>, Mesh::value);
    });
    optim::start_state(transformation_, s, memory);
    std::size_t next = 0;
    visit_variables(s, [&](auto& v) { runtime::copy_to_host(*v.data, state_[next++].data()); });
  }

  /// Arrays of the state, in order.
  const std::vector<std::vector<std::byte>>& state() const { return state_; }

  /// One update with these gradients, a list of arrays in the order of Model's variables; returns the updates and adds
  /// them to `params`.
  std::vector<numbers> step(std::vector<numbers>& params, const std::vector<numbers>& gradients) {
    start(params);
    graph::graph g;
    g.mesh = Mesh::value;
    Model p{};
    Model grads{};
    Transformation t = transformation_;
    state_type s{};
    bind_variables<Mesh>(g, p), bind_variables<Mesh>(g, grads);
    bind_variables<Mesh>(g, t), bind_variables<Mesh>(g, s);
    const optim::values current = optim::values_of(p);
    optim::values updates = optim::values_of(grads);
    std::as_const(t).update(updates, current, s);
    for (std::size_t i = 0; i < updates.size(); ++i)
      g.outputs.push_back({updates[i].id, -1}), g.outputs.push_back({(current[i] + updates[i]).id, -1});
    for (const graph::value& v : optim::values_of(s)) g.outputs.push_back({v.id, -1});

    std::vector<std::vector<std::byte>> inputs;
    for (const numbers& x : params) inputs.push_back(bytes_of(x));
    for (const numbers& x : gradients) inputs.push_back(bytes_of(x));
    visit_variables(transformation_, [&](const auto& v) {
      float number;
      runtime::copy_to_host(*v.data, &number);
      inputs.push_back(bytes_of({number}));
    });
    inputs.insert(inputs.end(), state_.begin(), state_.end());
    const auto outputs = runtime::evaluate(g, inputs);
    std::vector<numbers> result;
    for (std::size_t i = 0; i < params.size(); ++i)
      result.push_back(numbers_of(outputs[2 * i])), params[i] = numbers_of(outputs[2 * i + 1]);
    state_.assign(outputs.begin() + static_cast<std::ptrdiff_t>(2 * params.size()), outputs.end());
    return result;
  }

  /// Bytes of the state over all devices.
  std::int64_t state_bytes() const {
    std::int64_t n = 0;
    for (const auto& part : state_) n += static_cast<std::int64_t>(part.size());
    return n;
  }

 private:
  using state_type = typename Transformation::template state<Model, nn::param>;

  Transformation transformation_;
  std::vector<std::vector<std::byte>> state_{};
  bool started_ = false;
};

template <class Model, class Mesh = mesh<>, class Transformation>
optimiser<Model, Mesh, Transformation> start(Transformation t) {
  return optimiser<Model, Mesh, Transformation>(std::move(t));
}

}  // namespace optim_test
