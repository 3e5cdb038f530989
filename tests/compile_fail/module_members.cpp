// SPDX-License-Identifier: Apache-2.0
// expect: tessera: module: there are more than 39 members; put some into a module of their own
// note: 40 members
#include "arrays.hpp"
#include "cure.hpp"

#include <tessera/nn/module.hpp>

using member = ts::nn::variable<ts::nn::param, ts::f32, ts::shape<1>>;
struct model {
  member m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22, m23,
      m24, m25, m26, m27, m28, m29, m30, m31, m32, m33, m34, m35, m36, m37, m38, m39;
  TESSERA_MODULE(model, m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                 m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31, m32, m33, m34, m35, m36, m37,
                 m38 CURE((, m39), ()))
};
auto made() { return ts::init<model, cluster>(ts::nn::rngs{.params = 0}); }
