// SPDX-License-Identifier: Apache-2.0
// The other of two files that include every header of the library.
#include <every_header.hpp>

#include <string_view>

std::string_view type_seen_by_second() {
  using batch = tessera::tensor<tessera::f32, tessera::shape<32, 64>, tessera::P<"data">,
                                tessera::mesh<tessera::axis<"data", 2>>>;
  return tessera::type_text<batch>();
}
