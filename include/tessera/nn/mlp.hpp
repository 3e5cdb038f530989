// SPDX-License-Identifier: Apache-2.0
// Fully connected layers with an activation between them.
#pragma once

#include <tessera/nn/linear_general.hpp>
#include <tessera/ops/activations.hpp>

#include <tuple>
#include <utility>

namespace tessera {

/// The mesh axis that cuts what is wide inside a block: hidden features, heads.
template <text Axis>
struct tensor_parallel {
  static constexpr nn::option about = nn::option::tensor_parallel;
  template <bool Rows>
  using spec = std::conditional_t<Rows, partition_spec<cut<Axis>>, partition_spec<cut<>, cut<Axis>>>;
};

namespace nn {

/// Nothing is cut.
struct no_tensor_parallel {
  static constexpr option about = option::tensor_parallel;
  template <bool>
  using spec = P<>;
};

template <class Widths, auto Activation = gelu, class... Options>
struct mlp;

/// Linear layers from width to width, Activation (gelu unless told) behind all but the last: `mlp<shape<784, 128, 10>,
/// relu>` is float32[..., 784] -> float32[..., 10]. Options: `use_bias<false>`, `kernel_init<...>`, `bias_init<...>`,
/// `param_dtype<f64>`, `compute_dtype<bf16>`, `precision<...>` of all layers; `tensor_parallel<"model">`: layers 0, 2,
/// ... have their outputs cut, layers 1, 3, ... their inputs, so that each pair costs one all-reduce forward and one
/// backward (a last layer without partner is uncut). Variables: `layers[i].kernel`, `layers[i].bias`. Errors, gradient,
/// memory: those of linear_general. Source: Shoeybi et al. 2019 for the cuts.
template <std::int64_t First, std::int64_t... Rest, auto Activation, class... Options>
struct mlp<shape<First, Rest...>, Activation, Options...> {
  using name = layer_name<"mlp", First, Rest...>;
  using allowed = allows<name, option::use_bias, option::kernel_init, option::bias_init, option::param_dtype,
                         option::tensor_parallel>;
  static_assert(allowed::template check<Options...>());
  static_assert(sizeof...(Rest) > 0, "nn::mlp has one layer or more");
  static constexpr std::size_t count = sizeof...(Rest);
  static constexpr auto widths = shape<First, Rest...>::extents;
  static constexpr std::int64_t in_features = First;
  static constexpr std::int64_t out_features = widths[count];

  using cuts = option_or<option::tensor_parallel, no_tensor_parallel, Options...>;
  template <std::size_t I>
  using spec_of_layer = std::conditional_t<I % 2 == 0 && I + 1 == count, P<>, typename cuts::template spec<I % 2 == 1>>;
  template <std::size_t I>
  using layer = linear_general<shape<widths[I]>, shape<widths[I + 1]>, tessera::kernel<spec_of_layer<I>>,
                               option_or<option::use_bias, use_bias<true>, Options...>,
                               option_or<option::kernel_init, kernel_init<initializers::lecun_normal()>, Options...>,
                               option_or<option::bias_init, bias_init<initializers::zeros()>, Options...>,
                               typename numbers<Options...>::as_option>;
  template <std::size_t... I>
  static std::tuple<layer<I>...> layers_of(std::index_sequence<I...>);

  decltype(layers_of(std::make_index_sequence<count>{})) layers;
  TESSERA_MODULE(mlp, layers)

  constexpr auto operator()(const ArrayLike auto& x) const {
    return with_features<mlp>(x, [this](const auto& in) { return this->template from<0>(in); });
  }

 private:
  template <std::size_t I>
  constexpr auto from(const auto& x) const {
    const auto y = std::get<I>(layers)(x);
    if constexpr (I + 1 == count) return y;
    else return from<I + 1>(Activation(y));
  }
};

}  // namespace nn
}  // namespace tessera
