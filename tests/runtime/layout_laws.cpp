// SPDX-License-Identifier: Apache-2.0
// Gradients of operations that take parts of arrays and put arrays together agree with differences, and any mesh gives
// the one-device answer.
#include "runtime/differences.hpp"
#include "runtime/layout_cases.hpp"
#include "runtime/mesh_independence.hpp"

using namespace runtime_test;

TEST_CASE("gradients of parts and of arrays put together agree with differences") { check_all(layout_cases(2)); }

TEST_CASE("parts of arrays and arrays put together give the one-device answer on every mesh") {
  check_meshes(layout_cases(8), 100);
}
