// SPDX-License-Identifier: Apache-2.0
// What a user's first file looks like: the types alone, then all of the library.
#include <tessera/types.hpp>
#include <tessera/tessera.hpp>

#include <cstdio>
#include <string>
#include <string_view>

namespace ts = tessera;

using batch = ts::tensor<ts::f32, ts::shape<32, 64>, ts::P<"data">, ts::mesh<ts::axis<"data", 2>>>;
static_assert(ts::type_text<batch>() == std::string_view{"float32[32@data,64]"});

int main() { std::puts(std::string{ts::type_text<batch>()}.c_str()); }
