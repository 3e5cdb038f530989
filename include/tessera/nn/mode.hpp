// SPDX-License-Identifier: Apache-2.0
// Whether the layers of a module train or evaluate.
#pragma once

#include <tessera/graph/visit.hpp>

#include <type_traits>

namespace tessera::runtime {

template <class Bound, class... Args>
auto call_module(Bound& model, Args&... args);

}  // namespace tessera::runtime

namespace tessera::nn {

/// From now on the layers of a module, or of a part of one, train or evaluate: dropout drops or passes on, batch_norm
/// uses the batch or its running statistics. In a step it holds for the rest of the trace: `nn::eval(model)` costs
/// nothing and is known while the program compiles. Outside it holds for direct calls, `model(x)`; a compiled step
/// refuses such a model, as it cannot see it: pass it `nn::eval_mode(model)`. Source: flax.nnx.Module.train, eval.
template <class Model>
constexpr void train(Model& model) {
  visit_variables(model, [](auto& v) { v.handle.evaluates = false; });
}
template <class Model>
constexpr void eval(Model& model) {
  visit_variables(model, [](auto& v) { v.handle.evaluates = true; });
}

/// What a layer asks: `if (nn::evaluates(*this)) return x;`. Its variables know, so it must have one; without any it
/// trains. Both answers give a result of one type, as the type of a step's result does not depend on it.
template <class Layer>
constexpr bool evaluates(const Layer& layer) {
  bool first = true, found = false;
  visit_variables(layer, [&](const auto& v) {
    found = first ? v.handle.evaluates : found;
    first = false;
  });
  return found;
}

/// A bound module, to be passed to a step in which its layers evaluate, or train.
template <class Bound, bool Evaluates>
class mode_view {
 public:
  using viewed_type = std::remove_const_t<Bound>;
  using mesh_type = typename Bound::mesh_type;
  static constexpr bool evaluates = Evaluates;

  constexpr explicit mode_view(Bound& model) : model_(model) {}

  constexpr Bound& model() const { return model_; }

  /// `nn::eval_mode(model)(x)` on tensors.
  template <class... Args>
  auto operator()(Args&&... args) const {
    using view = std::conditional_t<std::is_const_v<Bound>, const mode_view, mode_view>;
    view passed = *this;
    return runtime::call_module(passed, args...);
  }

 private:
  Bound& model_;
};

/// `jit<step>(nn::eval_mode(model), x)`: the step has the model itself, by reference, whose layers evaluate. What it
/// changes is changed in the model.
template <class Bound>
constexpr mode_view<Bound, true> eval_mode(Bound& model) {
  return mode_view<Bound, true>(model);
}
template <class Bound>
constexpr const mode_view<const Bound, true> eval_mode(const Bound& model) {
  return mode_view<const Bound, true>(model);
}
template <class Bound>
constexpr mode_view<Bound, false> train_mode(Bound& model) {
  return mode_view<Bound, false>(model);
}
template <class Bound>
constexpr const mode_view<const Bound, false> train_mode(const Bound& model) {
  return mode_view<const Bound, false>(model);
}

}  // namespace tessera::nn
