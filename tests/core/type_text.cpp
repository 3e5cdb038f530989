// SPDX-License-Identifier: Apache-2.0
#include <tessera/core/type_text.hpp>
#include <tessera/graph/expr.hpp>
#include <tessera/runtime/tensor.hpp>

#include <catch2/catch.hpp>

namespace ts = tessera;
using ts::axes, ts::none, ts::P;

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;

TEST_CASE("A tensor type prints as dtype, extents and axes, a constant") {
  STATIC_REQUIRE(ts::type_text<ts::tensor<ts::f32, ts::shape<32, 256>, P<"data", "model">, cluster>>() ==
                 "float32[32@data,256@model]");
  STATIC_REQUIRE(ts::type_text<ts::tensor<ts::f32, ts::shape<32, 256>, P<none, "model">, cluster>>() ==
                 "float32[32,256@model]");
  STATIC_REQUIRE(ts::type_text<ts::tensor<ts::i32, ts::shape<32>, P<axes<"data", "model">>, cluster>>() ==
                 "int32[32@(data,model)]");
  STATIC_REQUIRE(ts::type_text<ts::tensor<ts::u32, ts::shape<32>, P<axes<"model", "data">>, cluster>>() ==
                 "uint32[32@(model,data)]");
  STATIC_REQUIRE(ts::type_text<ts::tensor<ts::f64, ts::shape<>>>() == "float64[]");
  STATIC_REQUIRE(ts::type_text<ts::tensor<ts::bool_, ts::shape<0, 3>>>() == "bool[0,3]");
}

TEST_CASE("A mesh axis of size 1 is not erased from a type") {
  using thin = ts::mesh<ts::axis<"data", 8>, ts::axis<"stage", 1>>;
  using cut = ts::tensor<ts::f32, ts::shape<8>, P<"stage">, thin>;
  STATIC_REQUIRE(ts::type_text<cut>() == "float32[8@stage]");
  STATIC_REQUIRE(!(cut::type == ts::tensor<ts::f32, ts::shape<8>, P<>, thin>::type));
}

TEST_CASE("A handle prints as the tensor it stands for") {
  using array = ts::tensor<ts::f32, ts::shape<32, 256>, P<"data", "model">, cluster>;
  STATIC_REQUIRE(ts::type_text<ts::expr<array::type, cluster>>() == ts::type_text<array>());
}
