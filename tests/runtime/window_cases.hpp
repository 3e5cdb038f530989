// SPDX-License-Identifier: Apache-2.0
// Uses of convolutions and pools, for tests of gradients and meshes.
#pragma once

#include "runtime/support.hpp"

#include <tessera/ops/conv.hpp>

namespace runtime_test {

using valid_t = window_padding_t<window_padding::valid>;
using same_t = window_padding_t<window_padding::same>;

template <class... Options>
value write_conv_of(std::span<const value> v, const spec_value* out) {
  const aval types[] = {v[0].type(), v[1].type()};
  aval plain[] = {types[0], types[1]};
  for (aval& a : plain)
    for (int d = 0; d < a.rank; ++d) a.dims[d].axes = 0;
  const ruling natural = ops::conv_rule<Options...>(out == nullptr ? types : plain, v[0].mesh());
  const aval type = graph::expect(out != nullptr ? with_spec(natural.result, *out, v[0].mesh()) : natural);
  return ops::write_conv<Options...>(std::array{v[0], v[1]}, type);
}

template <bool Mean, class Window, class... Options>
value write_pool_of(std::span<const value> v, const spec_value* out) {
  aval types[] = {v[0].type()};
  if (out != nullptr)
    for (int d = 0; d < types[0].rank; ++d) types[0].dims[d].axes = 0;
  const ruling natural = ops::pool_rule<Mean, Window, Options...>(types, v[0].mesh());
  const aval type = graph::expect(out != nullptr ? with_spec(natural.result, *out, v[0].mesh()) : natural);
  return ops::write_pool<Mean, Window, Options...>(std::array{v[0]}, type);
}

template <class... Options>
op_case conv_case(const std::string& name, std::vector<std::int64_t> x, std::vector<std::int64_t> kernel) {
  return {name,
          {{std::move(x), -3, 4, true}, {std::move(kernel), -3, 4, true}},
          [](std::span<const value> v, const spec_value* out) { return write_conv_of<Options...>(v, out); },
          true};
}

template <bool Mean, class Window, class... Options>
op_case pool_case(const std::string& name, std::vector<std::int64_t> x) {
  return {
      name,
      {{std::move(x), -9, 9, true}},
      [](std::span<const value> v, const spec_value* out) { return write_pool_of<Mean, Window, Options...>(v, out); },
      true,
      true};
}

inline std::vector<op_case> window_cases(std::int64_t u) {
  return {
      conv_case<>("convolution", {u, u, 2 * u, u}, {3, 2, u, u}),
      conv_case<valid_t, strides_t<2, 1>>("convolution without padding", {u, 2 * u, 2 * u, 2}, {2, 3, 2, u}),
      conv_case<dilation_t<2>, strides_t<2>>("convolution of a sequence, dilated", {u, 2 * u, u}, {3, u, 2}),
      conv_case<strides_t<2>>("convolution of patches that do not overlap", {u, 2 * u, u}, {2, u, u}),
      conv_case<feature_group_count_t<2>>("convolution of a sequence in groups", {u, 2 * u, 4}, {3, 2, 4}),
      conv_case<feature_group_count_t<4>, valid_t>("convolution channel by channel", {u, u, 2 * u, 4}, {2, 2, 1, 8}),
      conv_case<>("convolution one by one", {u, u, u, u}, {1, 1, u, u}),
      pool_case<false, shape<2, 2>, strides_t<2, 2>>("largest", {u, 2 * u, 2 * u, u}),
      pool_case<false, shape<3>, same_t>("largest of a sequence, overlapping", {u, 2 * u, 2}),
      pool_case<true, shape<2, 3>, same_t, strides_t<2, 2>>("mean", {u, u, 2 * u, 1}),
      pool_case<true, shape<2>, strides_t<2>>("mean of pairs", {u, 2 * u, u})};
}

}  // namespace runtime_test
