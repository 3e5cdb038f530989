# SPDX-License-Identifier: Apache-2.0
# tessera_add_kernels(<name>): a static library with the usual kernels and the executor, compiled once with the flags of
# this folder. What links it (and so sees TESSERA_PRECOMPILED_KERNELS) does not compile them again.
function(tessera_add_kernels name)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT
    "#define TESSERA_INSTANTIATE_KERNELS\n#include <tessera/runtime/instances.hpp>\n")
  add_library(${name} STATIC "${source}")
  target_link_libraries(${name} PUBLIC tessera::tessera)
  target_compile_definitions(${name} INTERFACE TESSERA_PRECOMPILED_KERNELS)
endfunction()
