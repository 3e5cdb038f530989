// SPDX-License-Identifier: Apache-2.0
// A fully connected layer.
#pragma once

#include <tessera/nn/precision.hpp>
#include <tessera/graph/visit.hpp>
#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/matmul.hpp>
#include <tessera/ops/reshard.hpp>

namespace tessera::nn {

/// y = x kernel + bias: float32[..., In] -> float32[..., Out], Out cut as the kernel's second dimension, or all of it
/// as `out_sharding<...>` says. Options: `kernel<P<...>>`, `bias<P<...>>`, `use_bias<false>`, `kernel_init<...>`
/// (lecun_normal), `bias_init<...>` (zeros), `param_dtype<f64>`, `compute_dtype<bf16>`,
/// `precision<f32, bf16>`. Gradient, memory and collectives: those of matmul and
/// of a broadcast sum. An input whose last extent is not In does not compile. Source: flax.nnx.Linear.
template <std::int64_t In, std::int64_t Out, class... Options>
struct linear {
  using name = layer_name<"linear", In, Out>;
  using allowed = allows<name, option::kernel, option::bias, option::use_bias, option::kernel_init, option::bias_init,
                         option::param_dtype>;
  static_assert(allowed::template check<Options...>());
  static constexpr std::int64_t in_features = In;
  static constexpr std::int64_t out_features = Out;
  using dtypes = numbers<Options...>;
  static constexpr dtype element = dtypes::storage;
  static constexpr bool has_bias = option_or<option::use_bias, use_bias<true>, Options...>::value;

  using kernel_spec = spec_or<option::kernel, P<>, Options...>;
  using bias_spec = spec_or<option::bias, typename spec_entry_of<kernel_spec, 1>::type, Options...>;
  using kernel_type =
      variable<param, element, shape<In, Out>, kernel_spec,
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
  TESSERA_MODULE(linear, kernel, bias)

  /// Whether the last extent is In or, in the body of a shard_map, that of the block of the kernel there.
  template <class X>
  static constexpr bool takes() {
    if constexpr (X::type.rank < 2) return false;
    const ruling held = ops::operand_on<kernel_type, typename X::mesh_type, element>();
    return X::type.dims[X::type.rank - 1].extent == (held.ok() ? held.result.dims[0].extent : In);
  }

  /// The type of the result, or why there is none: said where the layer is called.
  template <class X, class OutSpec>
  static constexpr auto deduce() {
    if constexpr (Poison<X>) {
      return std::type_identity<poison>{};
    } else if constexpr (RuntimeArray<X>) {
      return std::type_identity<ops::result_of<"matmul", ops::matmul_rule<OutSpec>, X, kernel_type>>{};
    } else if constexpr (!takes<X>()) {
      return std::type_identity<refusal<message::layer_features, &name::template of<X>>>{};
    } else {
      using left = typename dtypes::template summed_t<X>;
      using product =
          ops::result_of<"matmul", ops::matmul_rule<OutSpec>, left, typename dtypes::template summed_t<kernel_type>>;
      if constexpr (Poison<product> || !has_bias) return std::type_identity<product>{};
      else
        return std::type_identity<
            ops::result_of<"add", ops::add_rule, product, typename dtypes::template summed_t<bias_type>>>{};
    }
  }
  template <class X, class OutSpec = void>
  using result_type = typename decltype(deduce<X, OutSpec>())::type;

  template <Expr X>
  requires(!Poison<result_type<X>>) constexpr auto operator()(const X& x,
                                                              call_site where = call_site::current()) const {
    return plus_bias(matmul(dtypes::summed(x), dtypes::summed(kernel), where));
  }
  template <Expr X, class Spec>
  requires(!Poison<result_type<X, Spec>>) constexpr auto operator()(const X& x, out_sharding_t<Spec> out,
                                                                    call_site where = call_site::current()) const {
    return plus_bias(matmul(dtypes::summed(x), dtypes::summed(kernel), out, where));
  }
  template <Variable X>
  constexpr auto operator()(const X& x, auto... out) const {
    return (*this)(reshard<typename X::spec_type>(x), out...);
  }
  template <Poison X>
  constexpr poison operator()(const X&, auto...) const {
    return {};
  }
  template <class X>
  requires((Expr<X> || RuntimeArray<X>)&&Poison<result_type<X>>) result_type<X>
  operator()(const X&) const;
  template <class X, class Spec>
  requires((Expr<X> || RuntimeArray<X>)&&Poison<result_type<X, Spec>>) result_type<X, Spec>
  operator()(const X&, out_sharding_t<Spec>) const;

 private:
  constexpr auto plus_bias(const auto& y) const {
    if constexpr (has_bias) return dtypes::computed(y) + dtypes::computed(bias);
    else return dtypes::computed(y);
  }
};

}  // namespace tessera::nn
