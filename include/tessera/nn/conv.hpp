// SPDX-License-Identifier: Apache-2.0
// Convolution layers, and pools that stand in a list of layers.
#pragma once

#include <tessera/graph/visit.hpp>
#include <tessera/nn/input.hpp>
#include <tessera/ops/conv.hpp>
#include <tessera/ops/elementwise.hpp>

#include <tuple>

namespace tessera::nn {

template <window_padding Padding>
inline constexpr option about<window_padding_t<Padding>> = option::padding;
template <std::int64_t... Sizes>
inline constexpr option about<strides_t<Sizes...>> = option::strides;
template <std::int64_t... Sizes>
inline constexpr option about<dilation_t<Sizes...>> = option::dilation;
template <std::int64_t Count>
inline constexpr option about<feature_group_count_t<Count>> = option::feature_group_count;

/// Calls f(options...) with those that are options of windows.
template <class... Options>
constexpr auto with_window_options(auto f) {
  constexpr auto only = []<class O>(std::type_identity<O>) {
    if constexpr (WindowOption<O>) return std::tuple<O>{};
    else return std::tuple<>{};
  };
  return std::apply(f, std::tuple_cat(only(std::type_identity<Options>{})...));
}

template <std::int64_t In, std::int64_t Out, class Window, class... Options>
struct conv;

/// y = conv(x, kernel) + bias over windows of these extents: float32[batch, height, width, In] -> float32[batch, ...,
/// Out]; `conv<3, 16, shape<3, 3>, strides_t<2, 2>>`, or one spatial dimension. Options: `window_padding_t<...>`
/// (same), `strides_t<...>`, `dilation_t<...>`, `feature_group_count_t<...>`, `kernel<P<...>>`, `bias<P<...>>`,
/// `use_bias<false>`, `kernel_init<...>` (lecun_normal), `bias_init<...>` (zeros), `param_dtype<f64>`,
/// `compute_dtype<bf16>`, `precision<...>`. Variables: kernel (window..., In / groups, Out), bias (Out). Cuts,
/// gradient, memory and collectives: those of `tessera::conv`; a cut kernel needs `out_sharding<...>`. Source:
/// flax.nnx.Conv.
template <std::int64_t In, std::int64_t Out, std::int64_t... Window, class... Options>
struct conv<In, Out, shape<Window...>, Options...> {
  using name = layer_name<"conv", In, Out, Window...>;
  using allowed =
      allows<name, option::padding, option::strides, option::dilation, option::feature_group_count, option::kernel,
             option::bias, option::use_bias, option::kernel_init, option::bias_init, option::param_dtype>;
  static_assert(allowed::template check<Options...>());
  static constexpr std::int64_t in_features = In;
  static constexpr std::int64_t out_features = Out;
  static constexpr std::int64_t groups = ops::window_options_of<Options...>(window_padding::same).groups;
  static_assert(groups > 0 && In % groups == 0, "nn::conv: feature_group_count divides the input's channels");
  using dtypes = numbers<Options...>;
  static constexpr dtype element = dtypes::storage;
  static constexpr bool has_bias = option_or<option::use_bias, use_bias<true>, Options...>::value;

  using kernel_spec = spec_or<option::kernel, P<>, Options...>;
  using bias_spec = spec_or<option::bias, typename spec_entry_of<kernel_spec, sizeof...(Window) + 1>::type, Options...>;
  using kernel_type =
      variable<param, element, shape<Window..., In / groups, Out>, kernel_spec,
               option_or<option::kernel_init, tessera::kernel_init<initializers::lecun_normal()>, Options...>::value,
               role::weight, dtypes::master>;
  using bias_type = std::conditional_t<
      has_bias,
      variable<param, element, shape<Out>, bias_spec,
               option_or<option::bias_init, tessera::bias_init<initializers::zeros()>, Options...>::value, role::bias,
               dtypes::master>,
      absent>;

  kernel_type kernel;
  bias_type bias;
  TESSERA_MODULE(conv, kernel, bias)

  constexpr auto operator()(const ArrayLike auto& x, OutSharding auto... out) const {
    return with_features<conv>(x, [&](const auto& in) {
      const auto y = with_window_options<Options...>([&](auto... options) {
        return tessera::conv(dtypes::summed(in), dtypes::summed(kernel), options..., out...);
      });
      if constexpr (has_bias) return dtypes::computed(y) + dtypes::computed(bias);
      else return dtypes::computed(y);
    });
  }
};

/// The pools of ops/conv.hpp as layers without variables: `nn::max_pool<shape<2, 2>, strides_t<2, 2>>`.
template <class Window, WindowOption... Options>
struct max_pool {
  constexpr auto operator()(const ArrayLike auto& x) const { return tessera::max_pool<Window>(x, Options{}...); }
};
template <class Window, WindowOption... Options>
struct avg_pool {
  constexpr auto operator()(const ArrayLike auto& x) const { return tessera::avg_pool<Window>(x, Options{}...); }
};

}  // namespace tessera::nn
