// SPDX-License-Identifier: Apache-2.0
// An optimiser and its state for the variables of one kind of one model.
#pragma once

#include <tessera/nn/module.hpp>
#include <tessera/optim/regroup.hpp>
#include <tessera/optim/transformation.hpp>
#include <tessera/transform/value_and_grad.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::nn {

/// An annotation of optimizer: `optimizer<param, zero1<"data">>(model, ...)` cuts state over an axis as well that its
/// parameters do not lie along. Source: Rajbhandari and others 2020.
template <text Axis>
struct zero1 {
  template <class Wrt, class Mesh>
  using selection = optim::spread<Wrt, Mesh, Axis>;
};

/// State lies as parameters do.
struct as_parameters {
  template <class Wrt, class Mesh>
  using selection = Wrt;
};

/// What `optimizer<param>(model, ...)` makes: the transformation with its hyperparameters, and state cut as the model's
/// variables are. Everything is computed in float32 at least: gradients and parameters of 16 bits are converted,
/// moments are float32, and each such parameter has a master copy, which is what is updated; the parameter is the copy
/// rounded.
/// `precision<bf16, bf16, f32, bf16>` on a layer does without the copy. A parameter that has been replaced since the
/// last step (its numbers are not those of its copy rounded) starts a new copy. Source: flax.nnx.Optimizer;
/// Micikevicius and others 2018.
template <class Wrt, class Model, class Mesh, class Transformation, class Layout = as_parameters>
struct optimizer_state_of {
  using mesh_type = Mesh;
  using selection = typename Layout::template selection<Wrt, Mesh>;
  using state_type = typename Transformation::template state<Model, selection>;

  Transformation transformation;
  state_type state;
  optim::masters_of<Model, selection> masters;

  TESSERA_MODULE(optimizer_state_of, transformation, state, masters)

  /// Bytes of state on one device, master copies included.
  static constexpr std::int64_t state_bytes_per_device() {
    std::int64_t bytes = 0;
    const auto add = [&](const auto& arrays) {
      visit_variables(arrays, [&](auto& v) {
        using V = std::remove_cvref_t<decltype(v)>;
        bytes += local_block(type_on_mesh<V>(), Mesh::value).bytes();
      });
    };
    add(state_type{});
    add(optim::masters_of<Model, selection>{});
    return bytes;
  }

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
      const optim::values whole = values_of_kind(model);
      optim::values updates = values_of_kind(grads);
      if (whole.empty()) return;
      graph::graph& here = *whole[0].owner;
      const optim::values params = laid_out(whole);
      updates = laid_out(updates);
      const optim::values before = held();
      const int first = here.size();
      const optim::values wide = as_updated(params);
      for (std::size_t i = 0; i < whole.size(); ++i) updates[i] = optim::stored(updates[i], wide[i]);
      transformation.update(updates, wide, state);
      for (std::size_t i = 0; i < whole.size(); ++i) updates[i] = wide[i] + updates[i];
      keep_masters(updates);
      for (std::size_t i = 0; i < whole.size(); ++i)
        updates[i] = graph::reshard(optim::stored(updates[i], whole[i]), whole[i].type());
      one_by_one(here, first, updates, before);
      std::size_t next = 0;
      visit_kind<Wrt>(model, [&](auto& v) { optim::assign_one(v, updates[next++]); });
    }
  }

  /// A const optimizer has no state that could change: the build stops.
  template <class Target, class Grads>
  constexpr void update(Target&, const Grads&) const {
    if constexpr (!Poison<Target> && !Poison<Grads>) diagnose(report<message::optimizer_const, no_details<Target>>);
  }

  /// Hyperparameters by name, as `parts[1].weight_decay`.
  std::vector<std::pair<std::string, float>> hyperparams() const {
    std::vector<std::pair<std::string, float>> all;
    visit_paths(transformation, [&](const member_path& path, const auto& v) {
      all.emplace_back(std::string(path.view()), optim::number_of(v));
    });
    return all;
  }

  /// The number of a hyperparameter, by the end of its name: `hyperparam("learning_rate")`. A name that none or several
  /// have raises value_error.
  float hyperparam(std::string_view name) const {
    float number = 0;
    optim::with_hyperparam(transformation, name, [&](const auto& v) { number = optim::number_of(v); });
    return number;
  }

  /// Another number from the next step on; nothing is compiled. What is derived from it (1 - b1) follows.
  void set_hyperparam(std::string_view name, double number) {
    optim::with_hyperparam(transformation, name, [&](auto& v) { v.data = make_scalar(number).data; });
    optim::with_complement(transformation, name, [&](auto& v) { v.data = make_scalar(1 - number).data; });
  }

 private:
  static constexpr optim::converted_count<Model, selection> count{};

  template <class V>
  static constexpr aval type_on_mesh() {
    return resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().result;
  }

  /// Values as the state lies; without an annotation as they are.
  static constexpr optim::values laid_out(optim::values list) {
    if constexpr (!std::same_as<Layout, as_parameters>) {
      std::size_t next = 0;
      const Model arrays{};
      visit_kind<Wrt>(arrays, [&](auto& v) {
        using V = typename optim::detail::leaves<selection>::template layout<std::remove_cvref_t<decltype(v)>>;
        aval type = type_on_mesh<V>();
        type.type = list[next].type().type;
        list[next] = graph::reshard(list[next], type);
        ++next;
      });
    }
    return list;
  }

  /// Parameters in the type they are updated in: their master copies, as far as these still round to them.
  constexpr optim::values as_updated(optim::values list) const {
    if constexpr (count.converted == 0) return list;
    const optim::values copies = optim::values_of(masters);
    std::size_t next = 0, copy = 0;
    const Model arrays{};
    visit_kind<Wrt>(arrays, [&](auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      graph::value& p = list[next++];
      const graph::value given = graph::convert(p, optim::update_type<V>);
      if constexpr (V::master == V::element) {
        p = given;
      } else {
        const graph::value kept = copies[copy++];
        p = graph::select(graph::binary(graph::op::eq, optim::stored(kept, p), p), kept, given);
      }
    });
    return list;
  }

  /// New master copies.
  constexpr void keep_masters(const optim::values& updated) {
    if constexpr (count.copied > 0) {
      optim::values copies;
      std::size_t next = 0;
      const Model arrays{};
      visit_kind<Wrt>(arrays, [&](auto& v) {
        using V = std::remove_cvref_t<decltype(v)>;
        if (V::master != V::element) copies.push_back(updated[next]);
        ++next;
      });
      optim::assign(masters, copies);
    }
  }

  /// State and master copies.
  constexpr optim::values held() const {
    optim::values all;
    visit_held(*this, [&](const auto& v) { all.push_back(optim::value_of(v)); });
    return all;
  }
  static constexpr void visit_held(auto& self, auto f) {
    visit_variables(self.state, f);
    visit_variables(self.masters, f);
  }

  /// Writes the update of one parameter after that of another.
  constexpr void one_by_one(graph::graph& here, int first, optim::values& updates, const optim::values& before) {
    graph::list<int> roots;
    for (const graph::value& v : updates) roots.push_back(v.id);
    graph::list<optim::replacement> changes;
    std::size_t next = 0;
    visit_held(*this, [&](auto& v) {
      if (v.handle.owner == &here) changes.push_back({before[next].id, v.handle.id});
      ++next;
    });
    const graph::list<int> place = optim::regroup(here, first, roots, changes);
    for (graph::value& v : updates) v.id = place[static_cast<std::size_t>(v.id)];
    visit_held(*this, [&](auto& v) {
      if (v.handle.owner == &here) v.handle.id = place[static_cast<std::size_t>(v.handle.id)];
    });
  }

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

/// The optimiser with memory for its state, which starts as its transformations say.
template <class Wrt, class Layout, class Model, class Mesh, class Transformation>
auto make_optimizer(const bound<Model, Mesh>& model, Transformation transformation) {
  optimizer_state_of<Wrt, Model, Mesh, Transformation, Layout> made{std::move(transformation), {}, {}};
  const auto make = [&](auto& v) {
    using V = std::remove_cvref_t<decltype(v)>;
    v.data = runtime::make_storage(resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().result,
                                   Mesh::value);
  };
  visit_variables(made.state, make);
  visit_variables(made.masters, make);
  std::vector<runtime::storage_ptr> params, with_master;
  visit_kind<Wrt>(model, [&](const auto& v) {
    using V = std::remove_cvref_t<decltype(v)>;
    params.push_back(v.data);
    if constexpr (V::master != V::element) with_master.push_back(v.data);
  });
  optim::start_state(made.transformation, made.state, params);
  optim::copy_arrays(made.masters, with_master);
  return made;
}

/// `optimizer<param>(model, optim::adam(1e-2))`: state for every variable of kind Wrt of the model. Without Wrt it does
/// not compile.
template <class Wrt = void, class Model, class Mesh, class Transformation>
auto optimizer(const bound<Model, Mesh>& model, Transformation transformation) {
  if constexpr (std::is_void_v<Wrt>) {
    diagnose(report<message::optimizer_wrt, no_details<Model>>);
    return poison{};
  } else if constexpr (count_of_kind<Wrt, Model>() == 0) {
    diagnose(report<message::optimizer_nothing, no_details<Model>>);
    return poison{};
  } else {
    return make_optimizer<Wrt, as_parameters>(model, std::move(transformation));
  }
}

/// `optimizer<param, zero1<"data">>(model, optim::adam(1e-2))`: parameters lie as the model says, state is cut over the
/// axis as well, in the first dimension that it divides (arrays without one have state as they are). A step scatters
/// gradients, updates a share of each parameter on each device, and gathers parameters.
template <class Wrt, class Layout, class Model, class Mesh, class Transformation>
requires requires { typename Layout::template selection<Wrt, Mesh>; }
auto optimizer(const bound<Model, Mesh>& model, Transformation transformation) {
  if constexpr (count_of_kind<Wrt, Model>() == 0) {
    diagnose(report<message::optimizer_nothing, no_details<Model>>);
    return poison{};
  } else {
    return make_optimizer<Wrt, Layout>(model, std::move(transformation));
  }
}

/// A model that init did not make is on no mesh: the build stops.
template <class Wrt = void, class Model, class Transformation>
requires(!is_bound<Model>) poison optimizer(const Model&, const Transformation&) {
  if constexpr (!Poison<Model>) diagnose(report<message::optimizer_init, no_details<Model>>);
  return {};
}

}  // namespace tessera::nn
