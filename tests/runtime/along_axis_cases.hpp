// SPDX-License-Identifier: Apache-2.0
// Uses of operations that walk along one dimension, for tests of gradients and meshes.
#pragma once

#include "runtime/support.hpp"

#include <tessera/ops/sort.hpp>

#include <stdexcept>

namespace runtime_test {

using graph::running;

inline op_case running_case(running kind, std::vector<std::int64_t> extents, int axis, bool reverse) {
  return {"running " + std::to_string(static_cast<int>(kind)) + " along " + std::to_string(axis) +
              (reverse ? " from the end" : ""),
          {kind == running::logsumexp ? input{std::move(extents)} : input{std::move(extents), -3, 4, true}},
          [=](std::span<const value> x, const spec_value*) {
            const bool linear = kind == running::sum || kind == running::lag;
            if (x[0].type().dims[axis].axes != 0) throw std::logic_error("the dimension is cut");
            if (x[0].type().unreduced != 0 && !linear) throw std::logic_error("a sum is pending");
            return graph::cumulative(x[0], kind, axis, reverse);
          },
          false,
          kind == running::logsumexp};
}

inline op_case recurrence_case(std::vector<std::int64_t> extents, int axis, bool reverse, bool shifted) {
  return {std::string("recurrence ") + (reverse ? "from the end " : "") + (shifted ? "shifted" : ""),
          {{extents, -3, 4, true}, {extents, -3, 4, true}},
          [=](std::span<const value> x, const spec_value*) {
            if (x[0].type().dims[axis].axes != 0 || !x[0].type().same_spec(x[1].type()))
              throw std::logic_error("the dimension is cut");
            return graph::recurrence(x[0], x[1], axis, reverse, shifted);
          }};
}

inline std::vector<op_case> running_cases(std::int64_t u) {
  std::vector<op_case> all;
  for (bool reverse : {false, true}) {
    for (running kind : {running::sum, running::prod, running::max, running::min, running::logsumexp, running::lag}) {
      all.push_back(running_case(kind, {u, 3}, 1, reverse));
      all.push_back(running_case(kind, {4, u}, 0, reverse));
    }
    for (bool shifted : {false, true}) all.push_back(recurrence_case({u, 4}, 1, reverse, shifted));
  }
  all.push_back({"running sum of all elements",
                 {{{u, 3}, -3, 4, true}},
                 [](std::span<const value> x, const spec_value*) {
                   const aval types[] = {x[0].type()};
                   const aval type = graph::expect(ops::flat_cumulative_rule<running::sum>(types, x[0].mesh()));
                   return ops::flat_cumulative_operation<"cumsum", running::sum>::write(false)(std::array{x[0]}, type);
                 },
                 false,
                 true});
  return all;
}

template <bool Descending>
op_case sort_case(std::vector<std::int64_t> extents, int axis, std::int64_t count) {
  return {"sort along " + std::to_string(axis),
          {{std::move(extents), -3, 4, true}},
          [=](std::span<const value> x, const spec_value*) {
            if (x[0].type().dims[axis].axes != 0) throw std::logic_error("the dimension is cut");
            if (x[0].type().unreduced != 0) throw std::logic_error("a sum is pending");
            return tessera::ops::in_order(x[0], graph::argsort(x[0], axis, count, Descending), axis);
          }};
}

inline std::vector<op_case> sort_cases(std::int64_t u) {
  return {sort_case<false>({u, 5}, 1, 5), sort_case<true>({u, 5}, 1, 2), sort_case<true>({4, u}, 0, 4)};
}

}  // namespace runtime_test
