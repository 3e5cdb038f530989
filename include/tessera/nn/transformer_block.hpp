// SPDX-License-Identifier: Apache-2.0
// A block of a decoder: attention and an MLP, each behind a norm and added to what it reads.
#pragma once

#include <tessera/nn/attention.hpp>
#include <tessera/nn/layer_norm.hpp>
#include <tessera/nn/mlp.hpp>

namespace tessera::nn {

/// h = x + attention(norm1(x)), y = h + mlp(norm2(h)): float32[B, T, Features] -> the same type; attention of Heads
/// heads that look back alone, an MLP of Hidden features with gelu between. `block(x, mask)` adds masks, as of
/// attention. Options: `num_kv_heads<...>`, `rotary<...>`, `use_bias<false>`, `kernel_init<...>`, `param_dtype<f64>`,
/// `compute_dtype<bf16>`, `precision<...>` of all parts (x keeps its dtype), and `tensor_parallel<"model">`: heads and
/// hidden features are cut, which costs two all-reduces forward and two backward. Variables: those of `norm1`,
/// `attention`, `norm2`, `mlp`. For gradients with little memory:
/// `checkpoint(block)`, a `stack` of blocks. Source: Radford et al. 2019.
template <std::int64_t Features, std::int64_t Heads, std::int64_t Hidden, class... Options>
struct transformer_block {
  using name = layer_name<"transformer_block", Features, Heads, Hidden>;
  using allowed = allows<name, option::num_kv_heads, option::rotary, option::use_bias, option::kernel_init,
                         option::param_dtype, option::tensor_parallel>;
  static_assert(allowed::template check<Options...>());
  static constexpr std::int64_t in_features = Features;
  static constexpr std::int64_t out_features = Features;

  using element = typename numbers<Options...>::as_option;
  using biases = option_or<option::use_bias, use_bias<true>, Options...>;
  using kernels = option_or<option::kernel_init, kernel_init<initializers::lecun_normal()>, Options...>;
  using cuts = option_or<option::tensor_parallel, no_tensor_parallel, Options...>;
  using attention_type =
      multi_head_attention<Heads, Features, option_or<option::num_kv_heads, num_kv_heads<Heads>, Options...>,
                           option_or<option::rotary, rotary<0.0>, Options...>, biases, kernels, element,
                           tessera::kernel<typename cuts::template spec<false>>,
                           out_kernel<typename cuts::template spec<true>>>;

  layer_norm<Features, element> norm1;
  attention_type attention;
  layer_norm<Features, element> norm2;
  nn::mlp<shape<Features, Hidden, Features>, gelu, biases, kernels, element, cuts> mlp;
  TESSERA_MODULE(transformer_block, norm1, attention, norm2, mlp)

  template <ArrayLike X, class... Masks>
  constexpr auto operator()(const X& x, const Masks&... masks) const {
    return with_features<transformer_block>(x, [&](const auto& in) {
      const auto h = plus(in, attention(norm1(in), causal, masks...));
      return plus(h, mlp(norm2(h)));
    });
  }

 private:
  /// x + y in the dtype of x: what computes in 16 bits adds to a float32 stream.
  template <class X, class Y>
  static constexpr auto plus(const X& x, const Y& y) {
    if constexpr (Poison<Y>) return y;
    else if constexpr (X::type.type == Y::type.type) return x + y;
    else return x + astype<X::type.type>(y);
  }
};

}  // namespace tessera::nn
