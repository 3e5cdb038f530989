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
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(TESSERA_COMPILED)
#include <algorithm>
#endif

namespace tessera::runtime {

template <class Bound, class... Args>
auto call_module(Bound& model, Args&... args);

}  // namespace tessera::runtime

namespace tessera::nn {

/// A module whose variables are cut over a mesh; otherwise the module itself. Called with tensors, outside a step, it
/// runs at once and gives tensors, with the bits of a step; runtime/call.hpp has that.
template <class Model, class Mesh>
struct bound : Model {
  using model_type = Model;
  using mesh_type = Mesh;

  template <class... Args>
  requires(!(RuntimeArray<Args> || ...)) constexpr decltype(auto) operator()(Args&&... args) {
    return static_cast<Model&>(*this)(std::forward<Args>(args)...);
  }
  template <class... Args>
  requires(!(RuntimeArray<Args> || ...)) constexpr decltype(auto) operator()(Args&&... args) const {
    return static_cast<const Model&>(*this)(std::forward<Args>(args)...);
  }
  template <class... Args>
  requires(RuntimeArray<Args> || ...) auto operator()(Args&&... args) { return runtime::call_module(*this, args...); }
  template <class... Args>
  requires(RuntimeArray<Args> || ...) auto operator()(Args&&... args) const {
    return runtime::call_module(*this, args...);
  }
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

/// New memory with what an initialiser says, block by block, so that any mesh gets the same array. With one key a
/// layer, for arrays of layers side by side: the first `stacked` dimensions number the layers. Integers are constants.
runtime::storage_ptr initialised_layers(const aval& type, const mesh_value& mesh, const initializer& init,
                                        std::span<const random::key> keys, int stacked);

/// New memory that holds keys, two words each.
runtime::storage_ptr keys_side_by_side(const aval& type, const mesh_value& mesh, std::span<const random::key> keys);

/// How many stacks a variable is in.
template <class V>
constexpr int stacks_around() {
  if constexpr (requires { V::layers; }) return 1 + stacks_around<typename V::layer_variable>();
  else return 0;
}

/// The streams that the layers of a module draw from: those of the whole, and of each layer of the stacks around a
/// variable.
class layer_streams {
 public:
  explicit layer_streams(rngs& streams) : streams_(streams) {}

  /// Begins stacks of `layers` layers around the variables to come, within `depth` others.
  void begin(std::size_t depth, std::int64_t layers);

  /// How many layers a variable in `depth` stacks has.
  std::size_t layers(std::size_t depth) const { return depth == 0 ? 1 : levels_[depth - 1].size(); }

  /// A key for each layer of a variable in `depth` stacks.
  std::vector<random::key> draw(std::size_t depth, std::string_view stream);

 private:
  rngs& streams_;
  std::vector<std::vector<rngs>> levels_{};
};

/// Begins the stacks whose first variable V is.
template <class V>
void begin_stacks(layer_streams& streams, std::size_t depth = 0) {
  if constexpr (requires { V::layers; }) {
    if (V::leaf == 0) streams.begin(depth, V::layers);
    begin_stacks<typename V::layer_variable>(streams, depth + 1);
  }
}

/// The variable itself, or that of one layer of the stacks around it.
template <class V>
struct of_one_layer : std::type_identity<V> {};
template <class V>
requires requires { V::layers; }
struct of_one_layer<V> : of_one_layer<typename V::layer_variable> {};

/// Memory for a variable: what its initialiser says, or keys of a stream.
template <class V>
runtime::storage_ptr initial_array(const aval& type, const mesh_value& mesh, layer_streams& streams) {
  constexpr auto depth = static_cast<std::size_t>(stacks_around<V>());
  using own = typename of_one_layer<V>::type;
  begin_stacks<V>(streams);
  if constexpr (requires { own::stream; }) {
    return keys_side_by_side(type, mesh, streams.draw(depth, own::stream));
  } else {
    constexpr bool draws =
        std::same_as<typename V::variable_kind, param> || V::init.drawn != initializer::draw::constant;
    const std::vector<random::key> keys =
        draws ? streams.draw(depth, "params") : std::vector<random::key>(streams.layers(depth));
    return initialised_layers(type, mesh, V::init, keys, static_cast<int>(depth));
  }
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
  std::vector<T> whole(init.fills_at_once() ? keys.size() * size : 0);
  for (std::size_t i = 0; i < keys.size() && !whole.empty(); ++i)
    init.fill(std::span(whole).subspan(i * size, size), keys[i], layer, 0);
  const auto fill = [&](std::span<T> out, std::size_t first) {
    while (!out.empty()) {
      const std::size_t here = std::min(out.size(), size - first % size);
      if (whole.empty()) init.fill(out.first(here), keys[first / size], layer, first % size);
      else std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(first), here, out.begin());
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

/// Fills an array of integers with the constant of an initialiser.
template <class T>
void fill_integers(runtime::storage& to, const initializer& init) {
  const auto value = static_cast<T>(init.drawn == initializer::draw::constant ? init.gain : 0);
  for (std::int64_t shard = 0; shard < to.shards; ++shard)
    std::fill_n(reinterpret_cast<T*>(to.block(shard)), static_cast<std::size_t>(to.block_bytes) / sizeof(T), value);
}

TESSERA_COMPILED runtime::storage_ptr initialised_layers(const aval& type, const mesh_value& mesh,
                                                         const initializer& init, std::span<const random::key> keys,
                                                         int stacked) {
  runtime::storage_ptr data = runtime::make_storage(type, mesh);
  if (type.type == dtype::f32) fill_blocks<float>(*data, init, keys, stacked);
  if (type.type == dtype::f64) fill_blocks<double>(*data, init, keys, stacked);
  if (type.type == dtype::i32) fill_integers<std::int32_t>(*data, init);
  if (type.type == dtype::u32) fill_integers<std::uint32_t>(*data, init);
  return data;
}

TESSERA_COMPILED runtime::storage_ptr keys_side_by_side(const aval& type, const mesh_value& mesh,
                                                        std::span<const random::key> keys) {
  std::vector<std::uint32_t> words;
  for (const random::key k : keys) words.insert(words.end(), {k.hi, k.lo});
  runtime::storage_ptr data = runtime::make_storage(type, mesh);
  runtime::copy_from_host(*data, words.data());
  return data;
}

TESSERA_COMPILED void layer_streams::begin(std::size_t depth, std::int64_t layers) {
  std::vector<rngs> inner;
  const auto divide = [&](rngs& around) {
    for (rngs& each : around.split(static_cast<std::size_t>(layers))) inner.push_back(std::move(each));
  };
  if (depth == 0) divide(streams_);
  else
    for (rngs& around : levels_[depth - 1]) divide(around);
  levels_.resize(depth);
  levels_.push_back(std::move(inner));
}

TESSERA_COMPILED std::vector<random::key> layer_streams::draw(std::size_t depth, std::string_view stream) {
  if (depth == 0) return {streams_(stream)};
  std::vector<random::key> keys;
  for (rngs& layer : levels_[depth - 1]) keys.push_back(layer(stream));
  return keys;
}

TESSERA_COMPILED void report_uninitialised() {
  throw value_error("nn::to_vector: the variable holds no array; initialise its module with init first");
}

#endif

}  // namespace tessera::nn

namespace tessera {

/// A module with every variable initialised, cut over Mesh: `init<mlp, cluster>(nn::rngs{.params = 0})`. In the order
/// of construction each parameter draws one key from the stream `params`, whether its initialiser uses it or not, and
/// each nn::key_stream one from the stream of its name; other variables draw none, unless their initialiser is random.
/// A stack of layers draws one key of each stream and splits it among the layers. A variable whose spec does not fit
/// the mesh does not compile. Source: Flax NNX.
template <class Model, class Mesh = mesh<>>
nn::bound<Model, Mesh> init(nn::rngs streams) {
  check_module<Model>();
  nn::bound<Model, Mesh> model;
  if constexpr (fits<Model, Mesh>()) {
    nn::layer_streams layers(streams);
    visit_variables(static_cast<Model&>(model), [&](auto& v) {
      using V = std::remove_cvref_t<decltype(v)>;
      constexpr aval type = resolve<V::element, typename V::shape_type, typename V::spec_type, Mesh>().result;
      v.data = nn::initial_array<V>(type, Mesh::value, layers);
    });
  }
  return model;
}

}  // namespace tessera
