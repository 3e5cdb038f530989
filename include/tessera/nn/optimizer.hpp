// SPDX-License-Identifier: Apache-2.0
// An optimiser and its state for the variables of one kind of one model.
#pragma once

#include <tessera/nn/module.hpp>
#include <tessera/optim/transformation.hpp>
#include <tessera/transform/value_and_grad.hpp>

namespace tessera::nn {

/// What `optimizer<param>(model, ...)` makes: the transformation with its hyperparameters, and state cut as the model's
/// variables are. Source: flax.nnx.Optimizer.
template <class Wrt, class Model, class Mesh, class Transformation>
struct optimizer_state_of {
  using mesh_type = Mesh;
  using state_type = typename Transformation::template state<Model, Wrt>;

  Transformation transformation;
  state_type state;

  TESSERA_MODULE(optimizer_state_of, transformation, state)

  /// What is wrong with the types of an update's arguments.
  template <class Target, class Grads>
  static constexpr message update_fault() {
    using model_type = bound<Model, Mesh>;
    if constexpr (Gradients<Target> && !Gradients<Grads>) return message::optimizer_swapped;
    else if constexpr (!std::same_as<Grads, gradients<model_type>>) return message::optimizer_gradients;
    else if constexpr (std::same_as<Target, const model_type>) return message::optimizer_const;
    else if constexpr (!std::same_as<Target, model_type>) return message::optimizer_gradients;
    else return message::none;
  }

  /// Within a step: new values for the model's variables of kind Wrt and for the state. `grads` comes from
  /// value_and_grad of the same model.
  template <class Target, class Grads>
  constexpr void update(Target& model, const Grads& grads) {
    if constexpr (Poison<Target> || Poison<Grads>) {
      return;
    } else if constexpr (constexpr message fault = update_fault<Target, Grads>(); fault != message::none) {
      diagnose(report<fault, no_details<Target>>);
    } else {
      const optim::values params = values_of_kind(model);
      optim::values updates = values_of_kind(grads);
      transformation.update(updates, params, state);
      std::size_t next = 0;
      visit_kind<Wrt>(model, [&](auto& v) {
        optim::assign_one(v, params[next] + updates[next]);
        ++next;
      });
    }
  }

  /// A const optimizer has no state that could change: the build stops.
  template <class Target, class Grads>
  constexpr void update(Target&, const Grads&) const {
    if constexpr (!Poison<Target> && !Poison<Grads>) diagnose(report<message::optimizer_const, no_details<Target>>);
  }

 private:
  template <class T>
  static constexpr optim::values values_of_kind(const T& object) {
    optim::values list;
    visit_kind<Wrt>(object, [&](const auto& v) { list.push_back(optim::value_of(v)); });
    return list;
  }
};

template <class Wrt, class Model>
constexpr int count_of_kind() {
  Model model{};
  int count = 0;
  visit_kind<Wrt>(model, [&](auto&) { ++count; });
  return count;
}

/// `optimizer<param>(model, optim::adam(1e-2))`: state of zeros for every variable of kind Wrt of the model. Without
/// Wrt it does not compile.
template <class Wrt = void, class Model, class Mesh, class Transformation>
auto optimizer(const bound<Model, Mesh>&, Transformation transformation) {
  if constexpr (std::is_void_v<Wrt>) {
    diagnose(report<message::optimizer_wrt, no_details<Model>>);
    return poison{};
  } else if constexpr (count_of_kind<Wrt, Model>() == 0) {
    diagnose(report<message::optimizer_nothing, no_details<Model>>);
    return poison{};
  } else {
    optimizer_state_of<Wrt, Model, Mesh, Transformation> made{std::move(transformation), {}};
    visit_variables(made.state, [&](auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      v.data = runtime::make_storage(resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().result,
                                     Mesh::value);
    });
    return made;
  }
}

/// A model that init did not make is on no mesh: the build stops.
template <class Wrt = void, class Model, class Transformation>
requires(!is_bound<Model>) poison optimizer(const Model&, const Transformation&) {
  if constexpr (!Poison<Model>) diagnose(report<message::optimizer_init, no_details<Model>>);
  return {};
}

}  // namespace tessera::nn
