// SPDX-License-Identifier: Apache-2.0
// xsimd, to be included from here alone: g++ 12 takes the deliberately undefined operands inside its own AVX-512 header
// for uninitialised variables (its bug 105593) and would warn wherever a vector function is inlined.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

#include <xsimd/xsimd.hpp>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
