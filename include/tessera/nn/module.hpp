// SPDX-License-Identifier: Apache-2.0
// Modules on a mesh: initialising them, and their variables as lists.
#pragma once

#include <tessera/core/compiled.hpp>
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

/// New memory with what an initialiser says, block by block, so that any mesh gets the same array; zeros where the
/// elements are no floating-point numbers.
runtime::storage_ptr initialised(const aval& type, const mesh_value& mesh, const initializer& init, random::key key);

/// The same with one key a layer, for arrays of layers side by side: the first `stacked` dimensions number the layers.
runtime::storage_ptr initialised_layers(const aval& type, const mesh_value& mesh, const initializer& init,
                                        std::span<const random::key> keys, int stacked);

/// Appends the keys of the layers of a stacked variable, whose stack draws from `key`, and those of stacks within.
template <class V>
void append_layer_keys(std::vector<random::key>& keys, random::key key) {
  for (const random::key layer : random::split(key, V::layers)) {
    const random::key own = random::fold_in(layer, V::draw);
    if constexpr (requires { V::layer_variable::layers; }) append_layer_keys<typename V::layer_variable>(keys, own);
    else keys.push_back(own);
  }
}

/// How many stacks a variable is in.
template <class V>
constexpr int stacks_around() {
  if constexpr (requires { V::layers; }) return 1 + stacks_around<typename V::layer_variable>();
  else return 0;
}

/// Raises value_error: a variable holds no array.
[[noreturn]] void report_uninitialised();

/// A checked copy of a variable's elements on the host, row-major.
template <class Variable>
std::vector<storage_t<Variable::element>> to_vector(const Variable& v) {
  if (!v.data) report_uninitialised();
  std::vector<storage_t<Variable::element>> host(static_cast<std::size_t>(Variable::shape_type::size));
  runtime::copy_to_host(*v.data, host.data());
  return host;
}

#if defined(TESSERA_COMPILED)

/// Fills an array of layers: layer i is an array of its own, drawn with keys[i].
template <class T>
void fill_blocks(runtime::storage& to, const initializer& init, std::span<const random::key> keys, int stacked) {
  std::int64_t extents[max_rank];
  for (int d = stacked; d < to.type.rank; ++d) extents[d - stacked] = to.type.dims[d].extent;
  const std::span<const std::int64_t> layer(extents, static_cast<std::size_t>(to.type.rank - stacked));
  std::size_t size = 1;
  for (const std::int64_t extent : layer) size *= static_cast<std::size_t>(extent);
  const auto fill = [&](std::span<T> out, std::size_t first) {
    while (!out.empty()) {
      const std::size_t here = std::min(out.size(), size - first % size);
      init.fill(out.first(here), keys[first / size], layer, first % size);
      out = out.subspan(here);
      first += here;
    }
  };
  for (std::int64_t shard = 0; shard < to.shards; ++shard)
    runtime::for_each_run(
        to.type, to.mesh, to.varying, shard, [&](std::int64_t from, std::int64_t at, std::int64_t bytes) {
          fill({reinterpret_cast<T*>(to.block(shard) + at), static_cast<std::size_t>(bytes) / sizeof(T)},
               static_cast<std::size_t>(from) / sizeof(T));
        });
}

TESSERA_COMPILED runtime::storage_ptr initialised(const aval& type, const mesh_value& mesh, const initializer& init,
                                                  random::key key) {
  return initialised_layers(type, mesh, init, {&key, 1}, 0);
}

TESSERA_COMPILED runtime::storage_ptr initialised_layers(const aval& type, const mesh_value& mesh,
                                                         const initializer& init, std::span<const random::key> keys,
                                                         int stacked) {
  runtime::storage_ptr data = runtime::make_storage(type, mesh);
  if (type.type == dtype::f32) fill_blocks<float>(*data, init, keys, stacked);
  if (type.type == dtype::f64) fill_blocks<double>(*data, init, keys, stacked);
  return data;
}

TESSERA_COMPILED void report_uninitialised() {
  throw value_error("nn::to_vector: the variable holds no array; initialise its module with init first");
}

#endif

}  // namespace tessera::nn

namespace tessera {

/// A module with every variable initialised, cut over Mesh: `init<mlp, cluster>(nn::rngs{.params = 0})`. Each variable
/// draws one key from the stream `params`, in the order of construction, whether its initialiser uses it or not; a stack
/// of layers draws one and splits it among them. A variable whose spec does not fit the mesh does not compile. Source:
/// Flax NNX.
template <class Model, class Mesh = mesh<>>
nn::bound<Model, Mesh> init(nn::rngs streams) {
  check_module<Model>();
  nn::bound<Model, Mesh> model;
  if constexpr (fits<Model, Mesh>()) {
    random::key of_stack{};
    visit_variables(static_cast<Model&>(model), [&](auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      constexpr aval type = resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().result;
      if constexpr (constexpr int stacked = nn::stacks_around<V>(); stacked == 0) {
        v.data = nn::initialised(type, Mesh::value, V::init, streams("params"));
      } else {
        if (V::leaf == 0) of_stack = streams("params");
        std::vector<random::key> keys;
        nn::append_layer_keys<V>(keys, of_stack);
        v.data = nn::initialised_layers(type, Mesh::value, V::init, keys, stacked);
      }
    });
  }
  return model;
}

}  // namespace tessera
