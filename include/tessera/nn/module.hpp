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

template <class T>
void fill_blocks(runtime::storage& to, const initializer& init, random::key key) {
  std::int64_t extents[max_rank];
  for (int d = 0; d < to.type.rank; ++d) extents[d] = to.type.dims[d].extent;
  const std::span<const std::int64_t> whole(extents, static_cast<std::size_t>(to.type.rank));
  for (std::int64_t shard = 0; shard < to.shards; ++shard)
    runtime::for_each_run(to.type, to.mesh, to.varying, shard,
                          [&](std::int64_t from, std::int64_t at, std::int64_t bytes) {
                            const std::span<T> out(reinterpret_cast<T*>(to.block(shard) + at),
                                                   static_cast<std::size_t>(bytes) / sizeof(T));
                            init.fill(out, key, whole, static_cast<std::uint64_t>(from) / sizeof(T));
                          });
}

TESSERA_COMPILED runtime::storage_ptr initialised(const aval& type, const mesh_value& mesh, const initializer& init,
                                                  random::key key) {
  runtime::storage_ptr data = runtime::make_storage(type, mesh);
  if (type.type == dtype::f32) fill_blocks<float>(*data, init, key);
  if (type.type == dtype::f64) fill_blocks<double>(*data, init, key);
  return data;
}

TESSERA_COMPILED void report_uninitialised() {
  throw value_error("nn::to_vector: the variable holds no array; initialise its module with init first");
}

#endif

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
      constexpr aval type = resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().result;
      v.data = nn::initialised(type, Mesh::value, V::init, streams("params"));
    });
  }
  return model;
}

}  // namespace tessera
