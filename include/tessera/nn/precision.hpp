// SPDX-License-Identifier: Apache-2.0
// In which element types a layer keeps its parameters, computes, sums, and is updated.
#pragma once

#include <tessera/nn/options.hpp>
#include <tessera/nn/variable.hpp>
#include <tessera/ops/convert.hpp>

namespace tessera {

/// What a layer computes in and gives: inputs and parameters are converted to it. Without it nothing is converted, and
/// an input of another dtype than the parameters' does not compile. Source: `dtype` of flax.nnx layers.
template <dtype D>
struct compute_dtype {
  static constexpr nn::option about = nn::option::compute_dtype;
  static constexpr dtype value = D;
};

/// All of it in one word, an option of every layer with parameters: `linear<512, 512, precision<f32, bf16>>` keeps
/// float32 and computes in bfloat16. Parameters are Storage; inputs and parameters are converted to Compute, which
/// results have; products are summed in Accumulate; optimisers keep a copy of each parameter in Master and update that,
/// if it is another type than Storage. Sums and masters of 16-bit numbers are float32 unless told; sums are never
/// narrower than that.
template <dtype Storage, dtype Compute = Storage, dtype Accumulate = accumulator(Compute),
          dtype Master = accumulator(Storage)>
struct precision {
  static_assert(is_floating(Storage) && is_floating(Compute) && is_floating(Accumulate) && is_floating(Master),
                "nn::precision: storage, compute, accumulate and master are floating-point types");
  static_assert(info(Accumulate).size >= info(accumulator(Compute)).size,
                "nn::precision: sums are kept in float32 at least, and in no less than what is computed in");
  static_assert(Master == Storage || info(Master).size > info(Storage).size,
                "nn::precision: a master copy is wider than the parameter, or of the same type: then there is none");
  static constexpr nn::option about = nn::option::precision;
  static constexpr dtype storage = Storage;
  static constexpr dtype compute = Compute;
  static constexpr dtype accumulate = Accumulate;
  static constexpr dtype master = Master;
};

namespace nn {

/// What options of a layer say about element types.
template <class... Options>
struct numbers {
  static constexpr bool converts =
      ((about<Options> == option::precision || about<Options> == option::compute_dtype) || ...);
  static constexpr dtype param = option_or<option::param_dtype, param_dtype<dtype::f32>, Options...>::value;
  using policy = option_or<option::precision,
                           precision<param, option_or<option::compute_dtype, compute_dtype<param>, Options...>::value>,
                           Options...>;
  static constexpr dtype storage = policy::storage;
  static constexpr dtype compute = policy::compute;
  static constexpr dtype accumulate = policy::accumulate;
  static constexpr dtype master = policy::master;

  /// The same, as one option of the layers within a layer.
  using as_option = std::conditional_t<converts, policy, param_dtype<storage>>;

  /// A floating-point array as the layer computes with it.
  template <ArrayLike X>
  static constexpr auto computed(const X& x) {
    if constexpr (converts && ops::element_of<X>() != compute && is_floating(ops::element_of<X>()))
      return astype<compute>(x);
    else return x;
  }

  /// An operand of a sum of products; 16-bit operands are summed in float32 as they are.
  template <ArrayLike X>
  static constexpr auto summed(const X& x) {
    if constexpr (converts && accumulate != accumulator(compute)) return astype<accumulate>(computed(x));
    else return computed(x);
  }

  /// What statistics of an array of element type D are computed in: float32 at least.
  static constexpr dtype statistics(dtype d) {
    const dtype least = accumulator(d);
    return converts && info(accumulate).size > info(least).size ? accumulate : least;
  }

  template <class X>
  using computed_t = decltype(computed(std::declval<const X&>()));
  template <class X>
  using summed_t = decltype(summed(std::declval<const X&>()));
};

}  // namespace nn
}  // namespace tessera
