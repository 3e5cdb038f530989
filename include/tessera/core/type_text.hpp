// SPDX-License-Identifier: Apache-2.0
// The printed form of a type, as a constant.
#pragma once

#include <tessera/core/aval.hpp>

#include <string_view>

namespace tessera {

template <aval A, class Mesh>
inline constexpr auto aval_text = exact_text<[] {
  text_buffer out;
  write_aval(out, A, Mesh::value);
  return out;
}>();

/// `float32[32@data,256@model]` for a tensor, an expression or anything else with an abstract value over a mesh.
template <class T>
constexpr std::string_view type_text() {
  return aval_text<T::type, typename T::mesh_type>.view();
}

}  // namespace tessera
