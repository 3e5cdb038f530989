// SPDX-License-Identifier: Apache-2.0
// What the library's headers cost by themselves.
#include <tessera/tessera.hpp>
