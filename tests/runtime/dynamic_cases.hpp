// SPDX-License-Identifier: Apache-2.0
// Uses of parts whose place is known at run time, for tests of gradients and meshes.
#pragma once

#include "runtime/support.hpp"

#include <tessera/ops/dynamic_slice.hpp>
#include <tessera/ops/repeat.hpp>

#include <stdexcept>

namespace runtime_test {

inline input start_input(std::int64_t low, std::int64_t high) {
  return {{}, static_cast<double>(low), static_cast<double>(high), true, dtype::i32};
}

/// A part of sizes (u, 1, u) of an array (2u, u, u).
inline std::vector<op_case> dynamic_cases(std::int64_t u) {
  std::vector<op_case> cases;
  const auto starts = [](std::span<const value> v, std::size_t from) {
    return std::array{v[0], v[from], v[from + 1], v[from + 2]};
  };
  const auto part_type = [u](aval whole) {
    whole.dims[0].extent = u;
    whole.dims[1].extent = 1;
    return whole;
  };
  cases.push_back({"dynamic slice",
                   {{{2 * u, u, u}, -9, 9, true}, start_input(-u, 2 * u), start_input(0, u), start_input(-9, 9)},
                   [=](std::span<const value> v, const spec_value* out) {
                     const ruling part = ops::dynamic_part(v[0].type(), part_type(v[0].type()), out, v[0].mesh());
                     const aval type = graph::expect(out == nullptr ? part : with_spec(part.result, *out, v[0].mesh()));
                     return ops::write_dynamic_slice(starts(v, 1), type);
                   },
                   true});
  cases.push_back({"dynamic update",
                   {{{2 * u, u, u}, -9, 9, true},
                    {{u, 1, u}, -9, 9, true},
                    start_input(-u, 2 * u),
                    start_input(0, u),
                    start_input(-9, 9)},
                   [](std::span<const value> v, const spec_value* out) {
                     if (out == nullptr) {
                       const aval operands[] = {v[0].type(), v[1].type(), v[2].type(), v[3].type(), v[4].type()};
                       graph::expect(ops::dynamic_update_rule<void>(operands, v[0].mesh()));
                     }
                     const aval type =
                         out == nullptr ? v[0].type() : graph::expect(with_spec(v[0].type(), *out, v[0].mesh()));
                     return ops::write_dynamic_update(std::array{v[0], v[1], v[2], v[3], v[4]}, type);
                   },
                   true});
  cases.push_back({"roll by a run-time shift",
                   {{{u, 2 * u}, -9, 9, true}, start_input(-9, 9)},
                   [](std::span<const value> v, const spec_value* out) {
                     const aval operands[] = {v[0].type(), v[1].type()};
                     const aval type = graph::expect(out == nullptr ? ops::roll_by_rule<-1, void>(operands, v[0].mesh())
                                                                    : with_spec(v[0].type(), *out, v[0].mesh()));
                     return ops::write_roll_by<-1>(std::array{v[0], v[1]}, type);
                   },
                   true});
  cases.push_back({"dynamic update of a row",
                   {{{2 * u, u}, -9, 9, true}, {{u}, -9, 9, true}, start_input(-u, u)},
                   [](std::span<const value> v, const spec_value*) {
                     const aval operands[] = {v[0].type(), v[1].type(), v[2].type()};
                     return ops::write_update_in_dim<0, true>(
                         std::array{v[0], v[1], v[2]},
                         graph::expect(ops::update_in_dim_rule<0, true, void>(operands, v[0].mesh())));
                   }});
  return cases;
}

}  // namespace runtime_test
