// SPDX-License-Identifier: Apache-2.0
#include <tessera/analysis/print.hpp>
#include <tessera/transform/plan.hpp>

#include "transform/support.hpp"

#include <string>

namespace ts = tessera;
using namespace support;

constexpr ts::graph::program small() {
  graph g = over(grid);
  const value x = parameter(g, array({{8, data}, {16, model}}));
  const value w = parameter(g, array({{16, model}, {4, 0}}));
  result(g, ts::graph::reduce(op::reduce_max, x, 1, false));
  result(g, ts::graph::unary(op::tanh, w) * 0.5, 1);
  result(g, ts::graph::reshard(x, array({{8, 0}, {16, model}})));
  return ts::transform::lower(g);
}

constexpr std::string_view expected =
    "arg0 float32[8@data,16@model]\n"
    "arg1 float32[16@model,4]\n"
    "  temp+0 = reduce 1x1x4x4 (arg0) on each of data,model\n"
    "  arg1 = fused 16 {tanh mul} (arg1, const0) on each of model\n"
    "  result2 = all_gather 1x4x4 (arg0) over data on each of model\n"
    "  result0 = all_reduce (temp+0) over data\n"
    "result0 float32[16@model]\n"
    "result1 float32[16@model,4] in place of arg1\n"
    "result2 float32[8,16@model]\n"
    "temp 64 bytes a device\n";

template <std::size_t Capacity>
constexpr bool prints(std::string_view wanted) {
  const auto printed = ts::analysis::print<Capacity>(small(), grid);
  return std::string_view(printed.chars.data(), printed.size) == wanted;
}

TEST_CASE("A program prints its arguments, its steps with sizes, operations and axes, its results and its arena") {
  CHECK_BOTH(prints<4096>(expected));
  const auto printed = ts::analysis::print<4096>(small(), grid);
  CHECK(std::string(printed.chars.data(), printed.size) == std::string(expected));
}

/// What fits into Capacity characters is there, and the size is that of the whole.
template <std::size_t Capacity>
constexpr bool prints_part() {
  const auto printed = ts::analysis::print<Capacity>(small(), grid);
  return std::string_view(printed.chars.data(), Capacity) == expected.substr(0, Capacity) &&
         printed.size == expected.size();
}

TEST_CASE("What does not fit is cut off and still counted, so that a text of any length can be given its room") {
  CHECK_BOTH(prints_part<40>());
  CHECK_BOTH(prints_part<0>());
}
