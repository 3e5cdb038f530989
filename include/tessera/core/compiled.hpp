// SPDX-License-Identifier: Apache-2.0
// Functions that are compiled once for all of a program's files: with TESSERA_PRECOMPILED_KERNELS files have only their
// declarations, and the one file that defines TESSERA_INSTANTIATE_KERNELS has them. Without either they are inline.
#pragma once

#if defined(TESSERA_INSTANTIATE_KERNELS)
#define TESSERA_COMPILED
#elif !defined(TESSERA_PRECOMPILED_KERNELS)
#define TESSERA_COMPILED inline
#endif
