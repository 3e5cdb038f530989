// SPDX-License-Identifier: Apache-2.0
// expect: tessera: custom_op: the rule of the operation refuses these operands; see its documentation, or reshard them
// note: halve of float32[32@data,64]
#include "arrays.hpp"
#include "cure.hpp"

struct halve {
  static constexpr auto name = ts::text("halve");
  static constexpr ts::ruling rule(std::span<const ts::aval> x, const ts::mesh_value&) {
    return x[0].cut() == 0 ? ts::ruling{x[0]} : ts::refuse(ts::message::custom_op_refused, 0);
  }
  static void run(const ts::custom_call&) {}
};

using result = decltype(ts::custom_op<halve>(floats<ts::shape<32, 64>, P<CURE(("data"), ())>>));
static_assert(ts::ArrayLike<result>);
