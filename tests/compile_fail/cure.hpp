// SPDX-License-Identifier: Apache-2.0
// CURE((bad), (good)): the one place where a file that must not compile differs from its control, which must.
#pragma once

#define TESSERA_BARE(...) __VA_ARGS__
#ifdef TESSERA_CONTROL
#define CURE(bad, good) TESSERA_BARE good
#else
#define CURE(bad, good) TESSERA_BARE bad
#endif
