// SPDX-License-Identifier: Apache-2.0
// expect: tessera: fits: the program needs more bytes than a device has; shard or checkpoint what is largest
// note: [needs 62468 bytes, has 40960; largest 32 KiB arg0 float32[64@data,256], 16 KiB temporary float32[4096] of dot
//       32x128x8x1, 8 KiB arg1 float32[256,8], 4 KiB arg2 float32[8,128]]
// note-clang: needs 62468 bytes, has 40960; largest 32 KiB arg0 float32[64@data,256], 16 KiB temporary float32[4096] of dot
//       32x128x8x1, 8 KiB arg1 float32[256,8], 4 KiB arg2 float32[8,128]
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/analysis/fits.hpp>

using ts::operator""_KiB;

using batch = ts::tensor<ts::f32, ts::shape<64, 256>, P<"data">, cluster>;
using narrow = ts::tensor<ts::f32, ts::shape<256, 8>, P<>, cluster>;
using wide = ts::tensor<ts::f32, ts::shape<8, 128>, P<>, cluster>;

inline constexpr auto step = [](auto x, auto w1, auto w2) {
  return ts::sum(ts::square(ts::matmul(ts::matmul(x, w1), w2)));
};
static_assert(ts::fits<ts::lowered<step, batch, narrow, wide>>(CURE((40_KiB), (64_KiB))));
