// SPDX-License-Identifier: Apache-2.0
// A linear layer over several dimensions, whose result is cut as its input and its kernel are.
#pragma once

#include <tessera/graph/visit.hpp>
#include <tessera/nn/input.hpp>
#include <tessera/ops/elementwise.hpp>
#include <tessera/sharding/dot_general.hpp>

namespace tessera::nn {

/// A product over the last Summed dimensions of x and the first ones of a kernel.
template <int Summed>
struct projection {
  static constexpr sharding::dot_dims dims(int rank) {
    sharding::dot_dims made;
    for (int i = 0; i < Summed; ++i) {
      made.lhs_contracting = sharding::dim_append(made.lhs_contracting, rank - Summed + i);
      made.rhs_contracting = sharding::dim_append(made.rhs_contracting, i);
    }
    return made;
  }

  /// As x is cut in front and the kernel behind, where an axis is not in use already.
  static constexpr spec_value natural_spec(const aval& x, const aval& kernel) {
    spec_value spec;
    axis_set used = 0;
    const auto add = [&](axis_list axes) {
      spec.dims[spec.rank++] = (set_of(axes) & used) == 0 ? axes : 0;
      used = static_cast<axis_set>(used | set_of(axes));
    };
    for (int d = 0; d < x.rank - Summed; ++d) add(x.dims[d].axes);
    for (int d = Summed; d < kernel.rank && spec.rank < max_rank; ++d) add(kernel.dims[d].axes);
    return spec;
  }
};

template <int Summed, class OutSpec>
inline constexpr auto project_rule = ops::handles_marks{[](std::span<const aval> x, const mesh_value& mesh) {
  const spec_value natural = projection<Summed>::natural_spec(x[0], x[1]);
  const ops::chosen_spec<OutSpec> chosen(mesh);
  const spec_value* spec = chosen.get() == nullptr ? &natural : chosen.get();
  return sharding::dot_general(x[0], x[1], projection<Summed>::dims(x[0].rank), spec, mesh);
}};

template <int Summed>
inline constexpr auto write_project = [](const std::array<graph::value, 2>& x, const aval& type) {
  return graph::dot(x[0], x[1], projection<Summed>::dims(x[0].type().rank), type);
};

/// The dimensions first, first + 1, ... of a kernel.
template <std::size_t... I>
constexpr dimensions dimensions_from(int first, std::index_sequence<I...>) {
  return dimensions((first + static_cast<int>(I))...);
}

/// The entries of a spec from `Skip` on.
template <class Spec, std::size_t Skip>
struct spec_behind : std::type_identity<Spec> {};
template <class First, class... Rest, std::size_t Skip>
requires(Skip > 0) struct spec_behind<partition_spec<First, Rest...>, Skip>
    : spec_behind<partition_spec<Rest...>, Skip - 1> {
};

template <class In, class Out, class... Options>
struct linear_general;

/// y[..., o] = sum over i of x[..., i] kernel[i, o] + bias[o], where i and o are one or more dimensions each:
/// `linear_general<shape<64>, shape<4, 16>>` is float32[..., 64] -> float32[..., 4, 16]. The result is cut as x in
/// front and as the kernel behind, or as `out_sharding<...>` says; where dimensions that are summed over are cut, that
/// costs an all-reduce (a reduce-scatter with out_sharding), where only one side is, the other is sliced or it is
/// gathered. Options: those of linear; the fans of kernel_init are products over all i and all o. Errors, gradient: as
/// linear. Source: flax.nnx.LinearGeneral.
template <std::int64_t... In, std::int64_t... Out, class... Options>
struct linear_general<shape<In...>, shape<Out...>, Options...> {
  using name = layer_name<"linear_general", In..., Out...>;
  using allowed = allows<name, option::kernel, option::bias, option::use_bias, option::kernel_init, option::bias_init,
                         option::param_dtype>;
  static_assert(allowed::template check<Options...>());
  static constexpr int summed = sizeof...(In);
  using in_shape = shape<In...>;
  static constexpr std::int64_t in_features = in_shape::extents.back();
  static constexpr std::int64_t out_features = shape<Out...>::extents.back();
  using dtypes = numbers<Options...>;
  static constexpr dtype element = dtypes::storage;
  static constexpr bool has_bias = option_or<option::use_bias, use_bias<true>, Options...>::value;
  static constexpr initializer kernel_start() {
    initializer init =
        option_or<option::kernel_init, tessera::kernel_init<initializers::lecun_normal()>, Options...>::value;
    init.axes = {dimensions_from(0, std::make_index_sequence<sizeof...(In)>{}),
                 dimensions_from(summed, std::make_index_sequence<sizeof...(Out)>{})};
    return init;
  }

  using kernel_spec = spec_or<option::kernel, P<>, Options...>;
  using bias_spec = spec_or<option::bias, typename spec_behind<kernel_spec, sizeof...(In)>::type, Options...>;
  using kernel_type =
      variable<param, element, shape<In..., Out...>, kernel_spec, kernel_start(), role::weight, dtypes::master>;
  using bias_type = std::conditional_t<
      has_bias,
      variable<param, element, shape<Out...>, bias_spec,
               option_or<option::bias_init, tessera::bias_init<initializers::zeros()>, Options...>::value, role::bias,
               dtypes::master>,
      absent>;

  kernel_type kernel;
  bias_type bias;
  TESSERA_MODULE(linear_general, kernel, bias)

  constexpr auto operator()(const ArrayLike auto& x) const { return call<void>(x); }
  template <class Spec>
  constexpr auto operator()(const ArrayLike auto& x, out_sharding_t<Spec>) const {
    return call<Spec>(x);
  }

 private:
  template <class Spec>
  constexpr auto call(const auto& x) const {
    return with_features<linear_general>(x, [this](const auto& in) {
      const auto product = ops::apply<"matmul", project_rule<summed, Spec>>(write_project<summed>, dtypes::summed(in),
                                                                            dtypes::summed(kernel));
      if constexpr (has_bias) return dtypes::computed(product) + dtypes::computed(bias);
      else return dtypes::computed(product);
    });
  }
};

}  // namespace tessera::nn
