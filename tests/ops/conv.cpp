// SPDX-License-Identifier: Apache-2.0
#include <tessera/ops/conv.hpp>

#include "ops/support.hpp"

extern const array<ts::f32, shape<8, 12, 10, 3>, P<"x">> images;
extern const array<ts::f32, shape<8, 12, 10, 3>, P<"x", "y">> strips;
extern const array<ts::f32, shape<8, 12, 10, 8>, P<"x", none, none, "y">> channels_y;
extern const array<ts::f32, shape<3, 3, 3, 16>> kernel3;
extern const array<ts::f32, shape<3, 3, 3, 16>, P<none, none, none, "y">> outputs_y;
extern const array<ts::f32, shape<3, 3, 8, 16>, P<none, none, "y">> inputs_y;
extern const array<ts::f32, shape<2, 3, 3, 16>> kernel23;
extern const array<ts::f32, shape<16, 128, 8>, P<"x", "y">> sequences;
extern const array<ts::f32, shape<5, 8, 10>> kernel1;
extern const array<ts::i32, shape<8, 12, 10, 3>> int_images;
extern const array<ts::i32, shape<3, 3, 3, 16>> int_kernel;
extern const array<ts::bool_, shape<8, 12, 10, 3>> masks;

using strides22 = ts::strides_t<2, 2>;
template <class... Options>
inline constexpr auto& rule = ts::ops::conv_rule<Options...>;
template <bool Mean, class Window, class... Options>
inline constexpr auto& pool = ts::ops::pool_rule<Mean, Window, Options...>;

extern const array<ts::f32, shape<3, 3, 2, 16>> grouped_kernel;
TEST_CASE("Groups of channels each have a kernel of their own") {
  STATIC_REQUIRE(TYPE(ts::conv(channels_y, grouped_kernel, ts::feature_group_count<4>, ts::out_sharding<P<"x">>)) ==
                 "float32[8@x,12,10,16]");
  STATIC_REQUIRE(fault<rule<ts::feature_group_count_t<4>>, decltype(channels_y), decltype(grouped_kernel)> ==
                 message::conv_sharding);
  STATIC_REQUIRE(fault<rule<ts::feature_group_count_t<2>>, decltype(channels_y), decltype(grouped_kernel)> ==
                 message::conv_groups);
  STATIC_REQUIRE(fault<rule<ts::feature_group_count_t<3>>, decltype(images), decltype(grouped_kernel)> ==
                 message::conv_groups);
}

TEST_CASE("A convolution keeps batch and spatial cuts, its extents follow padding, strides and dilation") {
  STATIC_REQUIRE(TYPE(ts::conv(images, kernel3)) == "float32[8@x,12,10,16]");
  STATIC_REQUIRE(TYPE(ts::conv(images, kernel3, ts::valid)) == "float32[8@x,10,8,16]");
  STATIC_REQUIRE(TYPE(ts::conv(images, kernel23, ts::same, ts::strides<5, 3>)) == "float32[8@x,3,4,16]");
  STATIC_REQUIRE(TYPE(ts::conv(images, kernel23, ts::valid, ts::dilation<4, 2>)) == "float32[8@x,8,6,16]");
  STATIC_REQUIRE(TYPE(ts::conv(strips, kernel3)) == "float32[8@x,12@y,10,16]");
  STATIC_REQUIRE(TYPE(ts::conv(sequences, kernel1)) == "float32[16@x,128@y,10]");
  STATIC_REQUIRE(TYPE(ts::conv(int_images, int_kernel)) == "int32[8,12,10,16]");
}

TEST_CASE("Cut kernels and channels need out_sharding") {
  STATIC_REQUIRE(fault<rule<>, decltype(images), decltype(outputs_y)> == message::conv_sharding);
  STATIC_REQUIRE(fault<rule<>, decltype(channels_y), decltype(inputs_y)> == message::conv_sharding);
  STATIC_REQUIRE(TYPE(ts::conv(images, outputs_y, ts::out_sharding<P<"x", none, none, "y">>)) ==
                 "float32[8@x,12,10,16@y]");
  STATIC_REQUIRE(TYPE(ts::conv(channels_y, inputs_y, ts::out_sharding<P<"x">>)) == "float32[8@x,12,10,16]");
  STATIC_REQUIRE(fault<rule<ts::window_padding_t<ts::window_padding::valid>>, decltype(strips), decltype(kernel3)> ==
                 message::spec_indivisible);
}

TEST_CASE("A pool keeps all cuts that still divide") {
  STATIC_REQUIRE(TYPE(ts::max_pool<shape<2, 2>>(images, ts::strides<2, 2>)) == "float32[8@x,6,5,3]");
  STATIC_REQUIRE(TYPE(ts::avg_pool<shape<3, 3>>(channels_y)) == "float32[8@x,10,8,8@y]");
  STATIC_REQUIRE(TYPE(ts::max_pool<shape<2>>(sequences, ts::same, ts::strides<2>)) == "float32[16@x,64@y,8]");
  STATIC_REQUIRE(TYPE(ts::max_pool<shape<2, 2>>(strips, ts::strides<3, 2>, ts::out_sharding<P<none, "y">>)) ==
                 "float32[8,4@y,5,3]");
  STATIC_REQUIRE(fault<pool<false, shape<2, 2>, strides22>, decltype(strips)> == message::spec_indivisible);
}

TEST_CASE("What has no windows has no type") {
  STATIC_REQUIRE(fault<rule<>, decltype(images), decltype(int_kernel)> == message::conv_dtype);
  STATIC_REQUIRE(fault<rule<>, decltype(whole), decltype(kernel3)> == message::conv_rank);
  STATIC_REQUIRE(fault<rule<>, decltype(images), decltype(kernel1)> == message::conv_kernel);
  STATIC_REQUIRE(fault<rule<>, decltype(channels_y), decltype(kernel3)> == message::conv_kernel);
  STATIC_REQUIRE(fault<rule<ts::strides_t<2>>, decltype(images), decltype(kernel3)> == message::conv_options);
  STATIC_REQUIRE(fault<rule<ts::dilation_t<1, 0>>, decltype(images), decltype(kernel3)> == message::conv_options);
  STATIC_REQUIRE(fault<pool<false, shape<2>>, decltype(images)> == message::conv_options);
  STATIC_REQUIRE(fault<pool<false, shape<13, 2>>, decltype(images)> == message::conv_window);
  STATIC_REQUIRE(fault<pool<true, shape<2, 2>>, decltype(int_images)> == message::pool_dtype);
  STATIC_REQUIRE(fault<pool<false, shape<2, 2>>, decltype(masks)> == message::pool_dtype);
}
