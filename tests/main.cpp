// SPDX-License-Identifier: Apache-2.0
// Catch2's main function, compiled once and linked into every test.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
