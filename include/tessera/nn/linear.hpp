// SPDX-License-Identifier: Apache-2.0
// A fully connected layer.
#pragma once

#include <tessera/nn/variable.hpp>
#include <tessera/graph/visit.hpp>
#include <tessera/ops/elementwise.hpp>
#include <tessera/ops/matmul.hpp>
#include <tessera/ops/reshard.hpp>

namespace tessera {

/// An option of layers: how the kernel is cut, `kernel<P<none, "model">>`.
template <class Spec>
struct kernel {};

/// An option of layers: how the bias is cut; otherwise as the kernel's output dimension.
template <class Spec>
struct bias {};

namespace nn {

/// The spec an option gives, or the other one.
template <template <class> class Option, class Otherwise, class... Options>
struct option_spec : std::type_identity<Otherwise> {};
template <template <class> class Option, class Otherwise, class Spec, class... Rest>
struct option_spec<Option, Otherwise, Option<Spec>, Rest...> : std::type_identity<Spec> {};
template <template <class> class Option, class Otherwise, class First, class... Rest>
struct option_spec<Option, Otherwise, First, Rest...> : option_spec<Option, Otherwise, Rest...> {};

/// 1 for an option made by this template, else 0.
template <template <class> class Option, class Given>
inline constexpr int is_option = 0;
template <template <class> class Option, class Spec>
inline constexpr int is_option<Option, Option<Spec>> = 1;

/// Whether the options are a kernel's and a bias's spec, each at most once; otherwise the build stops.
template <class Layer, class... Options>
constexpr bool check_linear_options() {
  constexpr int kernels = (0 + ... + is_option<tessera::kernel, Options>);
  constexpr int biases = (0 + ... + is_option<tessera::bias, Options>);
  if constexpr (kernels > 1 || biases > 1 || kernels + biases != static_cast<int>(sizeof...(Options)))
    diagnose(report<message::linear_option, no_details<Layer>>);
  return true;
}

/// Entry `I` of a spec as a spec of its own.
template <class Spec, std::size_t I>
struct spec_entry_of : std::type_identity<P<>> {};
template <class First, class... Rest>
struct spec_entry_of<partition_spec<First, Rest...>, 0>
    : std::conditional<First::count == 0, P<>, partition_spec<First>> {};
template <class First, class... Rest, std::size_t I>
requires(I > 0) struct spec_entry_of<partition_spec<First, Rest...>, I>
    : spec_entry_of<partition_spec<Rest...>, I - 1> {
};

/// y = x kernel + bias: float32[..., In] -> float32[..., Out], Out cut as the kernel's second dimension, or all of it
/// as `out_sharding<...>` says. Options: `kernel<P<...>>`, `bias<P<...>>`. Kernel: lecun_normal, bias: zeros. Gradient,
/// memory and collectives: those of matmul and of a broadcast sum. An input whose last extent is not In does not
/// compile. Source: flax.nnx.Linear.
template <std::int64_t In, std::int64_t Out, class... Options>
struct linear {
  using kernel_spec = typename option_spec<tessera::kernel, P<>, Options...>::type;
  using bias_spec = typename option_spec<tessera::bias, typename spec_entry_of<kernel_spec, 1>::type, Options...>::type;
  static constexpr bool options_checked = check_linear_options<linear, Options...>();
  static_assert(options_checked);

  using kernel_type = variable<param, dtype::f32, shape<In, Out>, kernel_spec, initializers::lecun_normal()>;
  using bias_type = variable<param, dtype::f32, shape<Out>, bias_spec>;

  kernel_type kernel;
  bias_type bias;
  TESSERA_MODULE(linear, kernel, bias)

  /// Whether the last extent is In or, in the body of a shard_map, that of the block of the kernel there.
  template <class X>
  static constexpr bool takes() {
    if constexpr (X::type.rank < 2) return false;
    const ruling held = ops::operand_on<kernel_type, typename X::mesh_type, dtype::f32>();
    return X::type.dims[X::type.rank - 1].extent == (held.ok() ? held.result.dims[0].extent : In);
  }

  /// `linear<64, 10> of float32[32,65]`
  template <class X>
  static constexpr text_buffer features_details() {
    return text_buffer{} << "linear<" << In << ", " << Out << "> of " << type_text<X>();
  }

  /// The type of the result, or why there is none: said where the layer is called.
  template <class X, class OutSpec>
  static constexpr auto deduce() {
    if constexpr (Poison<X>) {
      return std::type_identity<poison>{};
    } else if constexpr (RuntimeArray<X>) {
      return std::type_identity<ops::result_of<"matmul", ops::matmul_rule<OutSpec>, X, kernel_type>>{};
    } else if constexpr (!takes<X>()) {
      return std::type_identity<refusal<message::linear_features, &features_details<X>>>{};
    } else {
      using product = ops::result_of<"matmul", ops::matmul_rule<OutSpec>, X, kernel_type>;
      using sum = ops::result_of<"add", ops::add_rule, product, bias_type>;
      return std::type_identity<std::conditional_t<Poison<product>, product, sum>>{};
    }
  }
  template <class X, class OutSpec = void>
  using result_type = typename decltype(deduce<X, OutSpec>())::type;

  template <Expr X>
  requires(!Poison<result_type<X>>) constexpr auto operator()(const X& x) const { return matmul(x, kernel) + bias; }
  template <Expr X, class Spec>
  requires(!Poison<result_type<X, Spec>>) constexpr auto operator()(const X& x, out_sharding_t<Spec> out) const {
    return matmul(x, kernel, out) + bias;
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
};

}  // namespace nn
}  // namespace tessera
