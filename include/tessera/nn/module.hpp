// SPDX-License-Identifier: Apache-2.0
// Modules on a mesh: initialising them, and their variables as lists.
#pragma once

#include <tessera/core/error.hpp>
#include <tessera/graph/visit.hpp>
#include <tessera/nn/rngs.hpp>
#include <tessera/nn/variable.hpp>
#include <tessera/runtime/tensor.hpp>

#include <concepts>
#include <utility>
#include <vector>

namespace tessera::nn {

/// A module whose variables are cut over a mesh; otherwise the module itself.
template <class Model, class Mesh>
struct bound : Model {
  using model_type = Model;
  using mesh_type = Mesh;
};

template <class T>
inline constexpr bool is_bound = false;
template <class Model, class Mesh>
inline constexpr bool is_bound<bound<Model, Mesh>> = true;

/// Calls f for the variables of one kind, in order.
template <class Kind, class T, class F>
constexpr void visit_kind(T& object, F&& f) {
  visit_variables(object, [&](auto& v) {
    if constexpr (std::same_as<typename std::remove_cvref_t<decltype(v)>::variable_kind, Kind>) f(v);
  });
}

/// Fills the memory of a variable with what its initialiser says, block by block, so that any mesh gets the same array.
template <class Variable>
void initialise(Variable& v, const mesh_value& mesh, const aval& type, random::key key) {
  using T = storage_t<Variable::element>;
  v.data = runtime::make_storage(type, mesh);
  if constexpr (std::same_as<T, float> || std::same_as<T, double>) {
    for (std::int64_t shard = 0; shard < v.data->shards; ++shard)
      runtime::for_each_run(type, mesh, v.data->varying, shard,
                            [&](std::int64_t from, std::int64_t at, std::int64_t bytes) {
                              auto* to = reinterpret_cast<T*>(v.data->block(shard) + at);
                              const auto count = static_cast<std::size_t>(bytes) / sizeof(T);
                              Variable::init.fill(std::span<T>(to, count), key, Variable::shape_type::extents,
                                                  static_cast<std::uint64_t>(from) / sizeof(T));
                            });
  }
}

/// A checked copy of a variable's elements on the host, row-major.
template <class Variable>
std::vector<storage_t<Variable::element>> to_vector(const Variable& v) {
  if (!v.data) throw value_error("nn::to_vector: the variable holds no array; initialise its module with init first");
  std::vector<storage_t<Variable::element>> host(static_cast<std::size_t>(Variable::shape_type::size));
  runtime::copy_to_host(*v.data, host.data());
  return host;
}

}  // namespace tessera::nn

namespace tessera {

/// A module with every variable initialised, cut over Mesh: `init<mlp, cluster>(nn::rngs{.params = 0})`. Each variable
/// draws one key from the stream `params`, in the order of construction, whether its initialiser uses it or not. A
/// variable whose spec does not fit the mesh does not compile. Source: Flax NNX.
template <class Model, class Mesh = mesh<>>
nn::bound<Model, Mesh> init(nn::rngs streams) {
  check_module<Model>();
  nn::bound<Model, Mesh> model;
  if constexpr (fits<Model, Mesh>()) {
    visit_variables(static_cast<Model&>(model), [&](auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      nn::initialise(v, Mesh::value, resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().result,
                     streams("params"));
    });
  }
  return model;
}

}  // namespace tessera
