// SPDX-License-Identifier: Apache-2.0
// Normalisation over groups of channels.
#pragma once

#include <tessera/nn/layer_norm.hpp>
#include <tessera/ops/shape.hpp>

#include <utility>

namespace tessera {

/// How many groups the channels of a group_norm are in.
template <std::int64_t Count>
struct num_groups {
  static constexpr nn::option about = nn::option::num_groups;
  static constexpr std::int64_t value = Count;
};

namespace nn {

/// Groups x[batch, ..., Features] are normalised one by one, over all dimensions between batch and channels and the
/// channels of the group: y = (x - mean) / sqrt(var + epsilon) scale + bias, float32[batch, ..., Features] -> the same
/// type. Options: `num_groups<32>`, which divides Features, and those of layer_norm. The channels are uncut, or every
/// group lies within a block. Collectives: two all-reduces of a number a group where dimensions in between are cut.
/// Source: Wu and He 2018; flax.nnx.GroupNorm.
template <std::int64_t Features, class... Options>
struct group_norm {
  using name = layer_name<"group_norm", Features>;
  using allowed = allows<name, option::num_groups, option::epsilon, option::use_scale, option::use_bias, option::scale,
                         option::bias, option::scale_init, option::bias_init, option::param_dtype>;
  static_assert(allowed::template check<Options...>());
  static constexpr std::int64_t in_features = Features;
  static constexpr std::int64_t out_features = Features;
  static constexpr std::int64_t groups = option_or<option::num_groups, num_groups<32>, Options...>::value;
  static_assert(groups > 0 && Features % groups == 0, "nn::group_norm: num_groups<...> divides the features");
  static constexpr double added = option_or<option::epsilon, epsilon<1e-6>, Options...>::value;
  using arrays = norm_arrays<name, Features, Options...>;

  typename arrays::scale_type scale;
  typename arrays::bias_type bias;
  TESSERA_MODULE(group_norm, scale, bias)

  constexpr auto operator()(const ArrayLike auto& x) const {
    return with_features<group_norm>(x, [this](const auto& given) {
      return in_float32<typename arrays::dtypes>(given, [this](const auto& in) { return this->by_group(in); });
    });
  }

 private:
  template <Expr X>
  constexpr auto by_group(const X& x) const {
    constexpr aval type = X::type;
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      const auto grouped = reshape<type.dims[I].extent..., groups, Features / groups>(x);
      const auto normal = normalised<(I == 0 ? -1 : static_cast<int>(I))..., -1>(grouped);
      return scaled_and_shifted(reshape<type.dims[I].extent..., Features>(normal), scale, bias);
    }
    (std::make_index_sequence<static_cast<std::size_t>(type.rank - 1)>{});
  }

  /// Over the dimensions named behind the first, which stands for the batch.
  template <int, int... Dims>
  static constexpr auto normalised(const auto& x) {
    const auto centred = x - mean<Dims...>(x, keepdims);
    return centred * rsqrt(mean<Dims...>(square(centred), keepdims) + added);
  }
};

}  // namespace nn
}  // namespace tessera
