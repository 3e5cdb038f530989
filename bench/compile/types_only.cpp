// SPDX-License-Identifier: Apache-2.0
// The smallest useful file: it checks a spec while compiling and needs nothing else. bench/run.sh compile times it.
#include <tessera/types.hpp>

#include <string_view>

namespace ts = tessera;

using cluster = ts::mesh<ts::axis<"data", 2>, ts::axis<"model", 4>>;
using batch = ts::tensor<ts::f32, ts::shape<32, 256>, ts::P<"data", "model">, cluster>;

static_assert(ts::type_text<batch>() == std::string_view{"float32[32@data,256@model]"});
