// SPDX-License-Identifier: Apache-2.0
// Loops and branches whose bodies are traced once: scan, fori_loop, while_loop, cond.
#pragma once

#include <tessera/ops/cond.hpp>
#include <tessera/ops/scan.hpp>
#include <tessera/ops/while_loop.hpp>
