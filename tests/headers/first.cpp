// SPDX-License-Identifier: Apache-2.0
// One of two files that include every header of the library: what a header defines twice does not link.
#include <every_header.hpp>

#include <string_view>

std::string_view type_seen_by_second();

int main() {
  using batch = tessera::tensor<tessera::f32, tessera::shape<32, 64>, tessera::P<"data">,
                                tessera::mesh<tessera::axis<"data", 2>>>;
  return std::string_view{tessera::type_text<batch>()} == type_seen_by_second() ? 0 : 1;
}
