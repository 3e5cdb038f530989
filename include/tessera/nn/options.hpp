// SPDX-License-Identifier: Apache-2.0
// Options of layers: types behind a layer's sizes, in any order, each once at most.
#pragma once

#include <tessera/core/aval.hpp>
#include <tessera/core/diagnose.hpp>
#include <tessera/core/partition_spec.hpp>
#include <tessera/nn/initializers.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tessera {

namespace nn {

/// What an option is about.
enum class option : std::uint8_t {
  unknown,
  kernel,
  out_kernel,
  bias,
  scale,
  embedding,
  use_bias,
  use_scale,
  kernel_init,
  bias_init,
  scale_init,
  embedding_init,
  param_dtype,
  compute_dtype,
  precision,
  epsilon,
  momentum,
  num_groups,
  num_kv_heads,
  qkv_features,
  rotary,
  tensor_parallel,
  broadcast_dims,
  use_running_average,
  padding,
  strides,
  dilation,
  feature_group_count
};

}  // namespace nn

/// How an array of the layer is cut: `kernel<P<none, "model">>`; a bias is cut as its kernel's output dimension
/// otherwise, everything else is uncut.
template <class Spec>
struct kernel : std::type_identity<Spec> {
  static constexpr nn::option about = nn::option::kernel;
};
template <class Spec>
struct bias : std::type_identity<Spec> {
  static constexpr nn::option about = nn::option::bias;
};
template <class Spec>
struct scale : std::type_identity<Spec> {
  static constexpr nn::option about = nn::option::scale;
};
template <class Spec>
struct embedding : std::type_identity<Spec> {
  static constexpr nn::option about = nn::option::embedding;
};

/// Whether the layer has a bias, or a scale, at all: `use_bias<false>`.
template <bool Used>
struct use_bias : std::bool_constant<Used> {
  static constexpr nn::option about = nn::option::use_bias;
};
template <bool Used>
struct use_scale : std::bool_constant<Used> {
  static constexpr nn::option about = nn::option::use_scale;
};

/// How an array of the layer starts: `kernel_init<nn::initializers::he_normal()>`.
template <nn::initializer Init>
struct kernel_init {
  static constexpr nn::option about = nn::option::kernel_init;
  static constexpr nn::initializer value = Init;
};
template <nn::initializer Init>
struct bias_init {
  static constexpr nn::option about = nn::option::bias_init;
  static constexpr nn::initializer value = Init;
};
template <nn::initializer Init>
struct scale_init {
  static constexpr nn::option about = nn::option::scale_init;
  static constexpr nn::initializer value = Init;
};
template <nn::initializer Init>
struct embedding_init {
  static constexpr nn::option about = nn::option::embedding_init;
  static constexpr nn::initializer value = Init;
};

/// The dtype of the layer's parameters, float32 unless told.
template <dtype D>
struct param_dtype {
  static constexpr nn::option about = nn::option::param_dtype;
  static constexpr dtype value = D;
};

/// What a norm adds to a variance.
template <double Value>
struct epsilon {
  static constexpr nn::option about = nn::option::epsilon;
  static constexpr double value = Value;
};

/// How much of running statistics stays in a step.
template <double Value>
struct momentum {
  static constexpr nn::option about = nn::option::momentum;
  static constexpr double value = Value;
};

namespace nn {

template <class T>
concept LayerOption = requires {
  { T::about } -> std::convertible_to<option>;
};

template <class T>
inline constexpr option about = option::unknown;
template <LayerOption T>
inline constexpr option about<T> = T::about;

/// The option about something, or the default.
template <option About, class Default, class... Options>
struct find_option : std::type_identity<Default> {};
template <option About, class Default, class First, class... Rest>
struct find_option<About, Default, First, Rest...>
    : std::conditional_t<(about<First> == About), std::type_identity<First>, find_option<About, Default, Rest...>> {};
template <option About, class Default, class... Options>
using option_or = typename find_option<About, Default, Options...>::type;

/// The spec that an option gives, or the other one.
template <option About, class Otherwise, class... Options>
using spec_or = typename option_or<About, std::type_identity<Otherwise>, Options...>::type;

/// Stands where a layer has no such array.
struct absent {};

/// How messages call a layer: `linear<64, 10>`.
template <text Name, std::int64_t... Sizes>
struct layer_name {
  static constexpr void write(text_buffer& out) {
    out << Name.view() << '<';
    std::string_view between;
    ((out << between << Sizes, between = ", "), ...);
    out << '>';
  }

  /// `linear<64, 10> of float32[32,65]`
  template <class X>
  static constexpr text_buffer of() {
    text_buffer out;
    write(out);
    out << " of ";
    write_aval(out, X::type, X::mesh_type::value);
    return out;
  }
};

/// Whether an option is one of a layer that has `known`: the dtype of parameters goes with that of the computation.
constexpr bool is_option(option given, option known) {
  const bool of_dtypes = given == option::compute_dtype || given == option::precision;
  return given == known || (of_dtypes && known == option::param_dtype);
}

/// Whether two options say the same thing: a precision says all dtypes.
constexpr bool repeats(option a, option b) {
  const auto within = [](option o) { return o == option::param_dtype || o == option::compute_dtype; };
  return a == b || (a == option::precision && within(b)) || (b == option::precision && within(a));
}

/// Whether the options are among those a layer has, each once at most; otherwise the build stops.
template <class Name, option... Allowed>
struct allows {
  template <class... Options>
  static constexpr bool fit() {
    const option given[] = {about<Options>..., option::unknown};
    for (std::size_t i = 0; i < sizeof...(Options); ++i) {
      if ((!is_option(given[i], Allowed) && ...)) return false;
      for (std::size_t j = 0; j < i; ++j)
        if (repeats(given[j], given[i])) return false;
    }
    return true;
  }

  template <class... Options>
  static constexpr bool check() {
    if constexpr (!fit<Options...>())
      diagnose(report<message::layer_option, [] {
        text_buffer out;
        Name::write(out);
        return out;
      }>);
    return true;
  }
};

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

}  // namespace nn
}  // namespace tessera
