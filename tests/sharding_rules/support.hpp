// SPDX-License-Identifier: Apache-2.0
// What the generated tests of the sharding rules are written with: looking at results.
#pragma once

// A refused operation gives a type that names its message, and says nothing.
#define TESSERA_SILENT_REFUSALS

#include "sharding_rules/types.hpp"

#include <catch2/catch.hpp>

/// Whether a result stands for this message.
template <class Result>
constexpr bool refuses(ts::message wanted) {
  if constexpr (requires { Result::failure; }) return Result::failure == wanted;
  else return false;
}
