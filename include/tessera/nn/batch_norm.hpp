// SPDX-License-Identifier: Apache-2.0
// Normalisation over the batch, with running statistics.
#pragma once

#include <tessera/nn/layer_norm.hpp>
#include <tessera/nn/mode.hpp>

#include <utility>

namespace tessera {

/// Whether a batch_norm uses its running statistics while it trains too.
template <bool Used>
struct use_running_average : std::bool_constant<Used> {
  static constexpr nn::option about = nn::option::use_running_average;
};

namespace nn {

/// y = (x - mean) / sqrt(var + epsilon) scale + bias, mean and variance of each feature over all other dimensions:
/// float32[..., Features] -> the same type. They are those of the whole batch also where it is cut over a mesh, E[x]
/// and max(E[x^2] - E[x]^2, 0) in one all-reduce. Each call moves the running statistics `mean` and `var` (batch_stat,
/// 0 and 1 at first), running = momentum running + (1 - momentum) batch, with the biased variance; an empty batch
/// leaves them unchanged. After `nn::eval(model)`, or with `use_running_average<true>`, they are used instead and left
/// alone. Options: `momentum<0.99>`, `epsilon<1e-5>` and those of layer_norm; the statistics are cut as the scale, and
/// float32 at least.
/// Gradient: through mean and variance of the batch, with two all-reduces in one where it is cut. Saved for it: x.
/// Source: Ioffe and Szegedy 2015; flax.nnx.BatchNorm.
template <std::int64_t Features, class... Options>
struct batch_norm {
  using name = layer_name<"batch_norm", Features>;
  using allowed =
      allows<name, option::momentum, option::use_running_average, option::epsilon, option::use_scale, option::use_bias,
             option::scale, option::bias, option::scale_init, option::bias_init, option::param_dtype>;
  static_assert(allowed::template check<Options...>());
  static constexpr std::int64_t in_features = Features;
  static constexpr std::int64_t out_features = Features;
  static constexpr double added = option_or<option::epsilon, epsilon<1e-5>, Options...>::value;
  static constexpr double stays = option_or<option::momentum, momentum<0.99>, Options...>::value;
  static constexpr bool always_running =
      option_or<option::use_running_average, use_running_average<false>, Options...>::value;
  using arrays = norm_arrays<name, Features, Options...>;
  using statistics_spec = spec_or<option::scale, P<>, Options...>;

  typename arrays::scale_type scale;
  typename arrays::bias_type bias;
  static constexpr dtype statistics = accumulator(arrays::element);
  variable<batch_stat, statistics, shape<Features>, statistics_spec> mean;
  variable<batch_stat, statistics, shape<Features>, statistics_spec, initializers::ones()> var;
  TESSERA_MODULE(batch_norm, scale, bias, mean, var)

  constexpr auto operator()(const ArrayLike auto& x) {
    return with_features<batch_norm>(x, [this](const auto& given) {
      return in_float32<typename arrays::dtypes>(given, [this](const auto& in) {
        constexpr aval type = std::remove_cvref_t<decltype(in)>::type;
        if constexpr (!always_running && type.size() > 0) {
          if (!evaluates(*this)) return by_batch(in);
        }
        return normalised(in, beside(in, mean), beside(in, var));
      });
    });
  }

 private:
  constexpr auto normalised(const auto& x, const auto& centre, const auto& spread) const {
    return scaled_and_shifted((x - centre) * rsqrt(spread + added), scale, bias);
  }

  template <class X>
  constexpr auto by_batch(const X& x) {
    return [&]<int... D>(std::integer_sequence<int, D...>) {
      const auto centre = tessera::mean<D...>(x);
      const auto spread = maximum(tessera::mean<D...>(square(x)) - square(centre), 0.0);
      mean = stays * mean + (1 - stays) * reshard<statistics_spec>(astype<statistics>(centre));
      var = stays * var + (1 - stays) * reshard<statistics_spec>(astype<statistics>(spread));
      return normalised(x, centre, spread);
    }
    (std::make_integer_sequence<int, X::type.rank - 1>{});
  }
};

}  // namespace nn
}  // namespace tessera
