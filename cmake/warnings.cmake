# SPDX-License-Identifier: Apache-2.0
# The project's warning level, for its own tests, examples and benchmarks; never passed on to a user of the library.
set(TESSERA_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
add_library(tessera_warnings INTERFACE)
target_compile_options(tessera_warnings INTERFACE ${TESSERA_WARNINGS} $<$<BOOL:${TESSERA_WARNINGS_AS_ERRORS}>:-Werror>)
# g++ 12 sees an overlapping copy in every std::string that is put before another (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(tessera_warnings INTERFACE -Wno-restrict)
endif()
# g++ collects its garbage at every doubling of little memory; traces inside the compiler make much of it.
set(TESSERA_GNU_MEMORY --param=ggc-min-expand=200 --param=ggc-min-heapsize=1000000)
target_compile_options(tessera_warnings INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:${TESSERA_GNU_MEMORY}>")
