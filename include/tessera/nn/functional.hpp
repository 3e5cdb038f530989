// SPDX-License-Identifier: Apache-2.0
// Modules in the functional style: parameters that init returns and apply takes, with keys by path.
#pragma once

#include <tessera/nn/module.hpp>
#include <tessera/nn/path_key.hpp>
#include <tessera/nn/state.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::nn {

/// The layers around a variable as functional-style scopes name them: `blocks[2].up.kernel` is in `blocks_2`, `up`.
inline std::vector<std::string> scopes_of(std::string_view path) {
  std::vector<std::string> names;
  std::string name;
  for (const char c : path) {
    if (c == '.') names.push_back(std::exchange(name, {}));
    else if (c == '[') name += '_';
    else if (c != ']') name += c;
  }
  return names;
}

/// A model as a pair of functions, for code from Linen or Haiku: `functional<mlp, cluster>::init(key)` gives the
/// parameters as a state, `functional<mlp, cluster>::apply(params, x)` the result, in a step and, on tensors, outside.
/// Each parameter's key is path_key(root, names of the layers around it, its number among the parameters of its layer,
/// from 1), so members named `Dense_0`, `Dense_1`, ... draw what Linen's do. Other variables start as their
/// initialisers say, and apply leaves them. Errors: a stack of layers, whose parameters lie side by side, has no path
/// for each; use tessera::init. Source: flax.linen.Module.init, apply.
template <class Model, class Mesh = mesh<>>
struct functional {
  using model_type = bound<Model, Mesh>;
  using state_type = state_of<everything, model_type>;

  static state_type init(random::key root) {
    check_module<Model>();
    model_type model;
    if constexpr (fits<Model, Mesh>()) {
      std::vector<std::vector<std::string>> scopes;
      visit_paths(model, [&](const member_path& p, const auto&) { scopes.push_back(scopes_of(p.view())); });
      std::vector<std::vector<std::string>> drawn;
      std::size_t next = 0;
      visit_variables(model, [&](auto& v) {
        using V = std::remove_cvref_t<decltype(v)>;
        static_assert(stacks_around<V>() == 0,
                      "nn::functional: parameters of a stack have no paths; use tessera::init");
        const std::vector<std::string>& scope = scopes[next++];
        random::key key{};
        if constexpr (std::same_as<typename V::variable_kind, param>) {
          drawn.push_back(scope);
          const auto number = static_cast<std::uint32_t>(std::count(drawn.begin(), drawn.end(), scope));
          const std::vector<std::string_view> names(scope.begin(), scope.end());
          key = path_key(root, names, number);
        }
        constexpr aval type = resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().result;
        v.data = initialised_layers(type, Mesh::value, V::init, {&key, 1}, 0);
      });
    }
    return state(model);
  }

  template <class State, class... Args>
  static constexpr auto apply(const State& params, Args&&... args) {
    model_type model = merge(graphdef<model_type>{}, params);
    return model(std::forward<Args>(args)...);
  }
};

}  // namespace tessera::nn
