// SPDX-License-Identifier: Apache-2.0
// Residual layers x + gelu(x W1) W2, one behind the other: written out, and as a stack that is scanned over.
#pragma once

#include <tessera/tessera.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace remat {

namespace ts = tessera;
using ts::P;

template <ts::dtype E, std::int64_t... Extents>
using weight = ts::nn::variable<ts::nn::param, E, ts::shape<Extents...>, P<>, ts::nn::initializers::normal(0.02)>;

inline constexpr auto residual_layer = [](auto x, auto w1, auto w2) {
  auto h = ts::checkpoint_name<"pre_act">(ts::matmul(x, w1));
  return x + ts::matmul(ts::gelu(h), w2);
};

/// One layer, D wide, and H inside, of numbers of type E.
template <std::int64_t D, std::int64_t H, ts::dtype E = ts::f32>
struct mlp_layer {
  weight<E, D, H> w1;
  weight<E, H, D> w2;
  TESSERA_MODULE(mlp_layer, w1, w2)

  constexpr auto operator()(auto x) const { return residual_layer(x, w1, w2); }
};

/// The weights of L layers, side by side.
template <std::int64_t L, std::int64_t D, std::int64_t H, ts::dtype E = ts::f32>
struct mlp_weights {
  weight<E, L, D, H> w1;
  weight<E, L, H, D> w2;
  TESSERA_MODULE(mlp_weights, w1, w2)
};

/// The layers as text would have them, one after the other.
template <auto Layer, std::int64_t L, std::int64_t D, std::int64_t H, ts::dtype E>
constexpr auto unrolled(const mlp_weights<L, D, H, E>& weights, auto x) {
  return [&]<std::size_t... I>(auto h, std::index_sequence<I...>) {
    ((h = Layer(h, ts::slice<static_cast<std::int64_t>(I)>(weights.w1),
                ts::slice<static_cast<std::int64_t>(I)>(weights.w2))),
     ...);
    return h;
  }
  (x, std::make_index_sequence<static_cast<std::size_t>(L)>{});
}

inline constexpr auto checkpointed_layer = [](auto x, auto w1, auto w2) {
  return ts::checkpoint(residual_layer)(x, w1, w2);
};
inline constexpr auto mean_square = [](auto x) { return ts::mean(ts::square(x)); };

/// Losses of the written-out layers: as they are, with one checkpoint round all of them, with one round each.
inline constexpr auto plain_loss = [](auto& weights, auto x) {
  return mean_square(unrolled<residual_layer>(weights, x));
};
inline constexpr auto whole_loss = [](auto& weights, auto x) { return ts::checkpoint(plain_loss)(weights, x); };
inline constexpr auto layerwise_loss = [](auto& weights, auto x) {
  return mean_square(unrolled<checkpointed_layer>(weights, x));
};

/// How a layer of a stack is called: as it is, or with a checkpoint round it.
inline constexpr auto call_layer = [](auto& layer, auto x) { return layer(x); };
template <auto Policy>
inline constexpr auto call_checkpointed = [](auto& layer, auto x) { return ts::checkpoint<Policy>(layer)(x); };

/// The loss of a stack of layers.
template <auto Call>
inline constexpr auto stack_loss = [](auto& layers, auto x) { return mean_square(layers.apply(Call, x)); };

/// The same layers as objects: two linear layers each, with biases and options.
template <std::int64_t D, std::int64_t H, class... Options>
struct linear_block {
  ts::nn::linear<D, H, Options...> up;
  ts::nn::linear<H, D, Options...> down;
  TESSERA_MODULE(linear_block, up, down)

  constexpr auto operator()(auto x) const { return x + down(ts::gelu(up(x))); }
};
template <std::size_t L, std::int64_t D, std::int64_t H, class... Options>
struct deep_mlp {
  std::array<linear_block<D, H, Options...>, L> blocks;
  TESSERA_MODULE(deep_mlp, blocks)
};
template <auto Call>
inline constexpr auto object_loss = [](auto& model, auto x) {
  for (auto& block : model.blocks) x = Call(block, x);
  return mean_square(x);
};

/// The variables in gradients, as arrays in their order.
template <class T>
constexpr auto as_arrays(const T& grads) {
  if constexpr (ts::Variable<T>) {
    return std::tuple(ts::reshard<typename T::spec_type>(grads));
  } else if constexpr (ts::is_sequence<T>) {
    return std::apply([](const auto&... each) { return std::tuple_cat(as_arrays(each)...); }, grads);
  } else if constexpr (requires { grads.stacked; }) {
    return as_arrays(grads.stacked);
  } else if constexpr (ts::Module<T>) {
    return boost::hana::unpack(T::hana_accessors_impl::apply(), [&](const auto&... members) {
      return std::tuple_cat(as_arrays(boost::hana::second(members)(grads))...);
    });
  } else {
    return std::tuple<>{};
  }
}

template <auto Loss>
inline constexpr auto gradient =
    [](auto& model, auto... inputs) { return as_arrays(ts::grad(Loss)(model, inputs...)); };
template <auto Loss>
inline constexpr auto value_and_gradient = [](auto& model, auto... inputs) {
  auto [value, grads] = ts::value_and_grad(Loss)(model, inputs...);
  return std::pair(value, as_arrays(grads));
};

/// A wide block between narrow ends: the loss of gelu(x W1) W2 against targets.
inline constexpr auto wide_block = [](auto x, auto w1, auto w2) { return ts::matmul(ts::gelu(ts::matmul(x, w1)), w2); };
template <bool Checkpointed>
inline constexpr auto wide_loss = [](auto weights, auto x, auto targets) {
  const auto& [w1, w2] = weights;
  if constexpr (Checkpointed) return mean_square(ts::checkpoint(wide_block)(x, w1, w2) - targets);
  else return mean_square(wide_block(x, w1, w2) - targets);
};
template <bool Checkpointed>
inline constexpr auto wide_step = [](auto w1, auto w2, auto x, auto targets) {
  auto [value, grads] = ts::value_and_grad(wide_loss<Checkpointed>)(std::tuple(w1, w2), x, targets);
  return std::pair(value, grads);
};

/// x + tanh(x W) for each of the weights; with K > 0 a checkpoint round every K layers, as a scan within a scan.
template <std::int64_t K>
inline constexpr auto grouped_loss = [](auto w, auto x) {
  constexpr auto layer = [](auto h, auto weight) { return std::pair(h + ts::tanh(ts::matmul(h, weight)), ts::none); };
  if constexpr (K == 0) {
    return mean_square(ts::scan(layer, x, w).first);
  } else {
    constexpr auto group = [](auto h, auto weights) { return ts::scan(layer, h, weights).first; };
    constexpr auto& dims = decltype(w)::type.dims;
    const auto groups = ts::reshape<dims[0].extent / K, K, dims[1].extent, dims[2].extent>(w);
    return mean_square(
        ts::scan([&](auto h, auto weights) { return std::pair(ts::checkpoint(group)(h, weights), ts::none); }, x,
                 groups)
            .first);
  }
};
template <std::int64_t K>
inline constexpr auto grouped_gradient = [](auto w, auto x) { return ts::grad(grouped_loss<K>)(w, x); };

}  // namespace remat
