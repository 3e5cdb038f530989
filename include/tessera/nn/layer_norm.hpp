// SPDX-License-Identifier: Apache-2.0
// Normalisation over the last dimension.
#pragma once

#include <tessera/graph/visit.hpp>
#include <tessera/nn/input.hpp>
#include <tessera/ops/convert.hpp>
#include <tessera/ops/reduce.hpp>

namespace tessera::nn {

/// The scale and bias of a normalisation over Features features.
template <class Name, std::int64_t Features, class... Options>
struct norm_arrays {
  using dtypes = numbers<Options...>;
  static constexpr dtype element = dtypes::storage;
  static constexpr bool has_scale = option_or<option::use_scale, use_scale<true>, Options...>::value;
  static constexpr bool has_bias = option_or<option::use_bias, use_bias<true>, Options...>::value;
  static constexpr initializer first_scale =
      option_or<option::scale_init, scale_init<initializers::ones()>, Options...>::value;
  static constexpr initializer first_bias =
      option_or<option::bias_init, bias_init<initializers::zeros()>, Options...>::value;

  template <bool Used, class Spec, initializer Init, class Role>
  using vector =
      std::conditional_t<Used, variable<param, element, shape<Features>, Spec, Init, Role, dtypes::master>, absent>;
  using scale_type = vector<has_scale, spec_or<option::scale, P<>, Options...>, first_scale, role::scale>;
  using bias_type = vector<has_bias, spec_or<option::bias, P<>, Options...>, first_bias, role::bias>;
};

/// f(x), in float32 if x has 16 bits, and then rounded to those or to what the layer computes in: statistics of so few
/// digits would be none.
template <class Dtypes, Expr X, class F>
constexpr auto in_float32(const X& x, F f) {
  constexpr dtype own = X::type.type;
  constexpr dtype within = Dtypes::statistics(own);
  constexpr dtype result = Dtypes::converts ? Dtypes::compute : own;
  const auto y = [&] {
    if constexpr (within != own) return f(astype<within>(x));
    else return f(x);
  }();
  if constexpr (within != result) return astype<result>(y);
  else return y;
}

/// A parameter or statistic beside y, converted where dtypes differ.
template <class Y, class V>
constexpr auto beside(const Y&, const V& v) {
  if constexpr (V::element == Y::type.type) return v;
  else return astype<Y::type.type>(v);
}

/// y scale + bias, as far as there are such arrays.
constexpr auto scaled_and_shifted(const auto& y, const auto& scale, const auto& bias) {
  const auto scaled = [&] {
    if constexpr (Variable<decltype(scale)>) return y * beside(y, scale);
    else return y;
  }();
  if constexpr (Variable<decltype(bias)>) return scaled + beside(y, bias);
  else return scaled;
}

/// y = (x - mean(x)) / sqrt(var(x) + epsilon) scale + bias, mean and variance over the last dimension: float32[...,
/// Features] -> the same type. The variance is that of the differences, so it is never negative and a constant row
/// gives exactly the bias. It is computed in float32 at least, whatever x is. Options: `epsilon<1e-6>`,
/// `use_scale<false>`, `use_bias<false>`, `scale<P<...>>`,
/// `bias<P<...>>`, `scale_init<...>` (ones), `bias_init<...>` (zeros), `param_dtype<f64>`,
/// `compute_dtype<bf16>`, `precision<...>`. Gradient: that of the
/// operations; with u the cotangent times scale, rstd (u - mean(u) - y mean(u y)). Saved for it: x. Collectives: two
/// all-reduces of a number a row where the last dimension is cut. Source: flax.nnx.LayerNorm.
template <std::int64_t Features, class... Options>
struct layer_norm {
  using name = layer_name<"layer_norm", Features>;
  using allowed = allows<name, option::epsilon, option::use_scale, option::use_bias, option::scale, option::bias,
                         option::scale_init, option::bias_init, option::param_dtype>;
  static_assert(allowed::template check<Options...>());
  static constexpr std::int64_t in_features = Features;
  static constexpr std::int64_t out_features = Features;
  static constexpr double added = option_or<option::epsilon, epsilon<1e-6>, Options...>::value;
  using arrays = norm_arrays<name, Features, Options...>;

  typename arrays::scale_type scale;
  typename arrays::bias_type bias;
  TESSERA_MODULE(layer_norm, scale, bias)

  constexpr auto operator()(const ArrayLike auto& x) const {
    return with_features<layer_norm>(x, [this](const auto& given) {
      return in_float32<typename arrays::dtypes>(given, [this](const auto& in) {
        const auto centred = in - mean<-1>(in, keepdims);
        const auto variance = mean<-1>(square(centred), keepdims);
        return scaled_and_shifted(centred * rsqrt(variance + added), scale, bias);
      });
    });
  }
};

/// y = x / sqrt(mean(x^2) + epsilon) scale, the mean over the last dimension: float32[..., Features] -> the same type.
/// Options: `epsilon<1e-6>`, `use_scale<false>`, `scale<P<...>>`, `scale_init<...>` (ones), `param_dtype<f64>`. Saved
/// for the gradient: x. Collectives: one all-reduce of a number a row where the last dimension is cut. Source: Zhang
/// and Sennrich 2019; flax.nnx.RMSNorm.
template <std::int64_t Features, class... Options>
struct rms_norm {
  using name = layer_name<"rms_norm", Features>;
  using allowed =
      allows<name, option::epsilon, option::use_scale, option::scale, option::scale_init, option::param_dtype>;
  static_assert(allowed::template check<Options...>());
  static constexpr std::int64_t in_features = Features;
  static constexpr std::int64_t out_features = Features;
  static constexpr double added = option_or<option::epsilon, epsilon<1e-6>, Options...>::value;
  using arrays = norm_arrays<name, Features, Options...>;

  typename arrays::scale_type scale;
  TESSERA_MODULE(rms_norm, scale)

  constexpr auto operator()(const ArrayLike auto& x) const {
    return with_features<rms_norm>(x, [this](const auto& given) {
      return in_float32<typename arrays::dtypes>(given, [this](const auto& in) {
        return scaled_and_shifted(in * rsqrt(mean<-1>(square(in), keepdims) + added), scale, absent{});
      });
    });
  }
};

}  // namespace tessera::nn
