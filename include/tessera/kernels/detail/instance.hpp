// SPDX-License-Identifier: Apache-2.0
// Whether a file has the kernels for usual element types, refers to them, or (TESSERA_INSTANCE undefined) compiles its
// own.
#pragma once

#if defined(TESSERA_INSTANTIATE_KERNELS)
#define TESSERA_INSTANCE template
#elif defined(TESSERA_PRECOMPILED_KERNELS)
#define TESSERA_INSTANCE extern template
#endif
