# SPDX-License-Identifier: Apache-2.0
# Builds one consumer in a clean folder and runs it:
#   cmake -DKIND=find_package|add_subdirectory|fetch_content -DSOURCE=<tessera> -DBUILD=<its build folder>
#         -DCOMPILER=<c++> -DGENERATOR=<generator> -P check.cmake
# Nothing of the library's own build is used, save what `cmake --install` put into a prefix that is made here.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "consumers: ${KIND}: failed: ${ARGN}")
  endif()
endfunction()

set(work "${BUILD}/consumers/${KIND}")
file(REMOVE_RECURSE "${work}")
file(COPY "${SOURCE}/tests/consumers/${KIND}/" DESTINATION "${work}/source")

if(KIND STREQUAL "find_package")
  run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${work}/prefix")
  set(where "-DCMAKE_PREFIX_PATH=${work}/prefix")
else()
  # A copy without the build folder: the consumer sees what a checkout holds, and could not write into this one.
  foreach(part IN ITEMS CMakeLists.txt cmake include LICENSE)
    file(COPY "${SOURCE}/${part}" DESTINATION "${work}/tessera")
  endforeach()
  set(where "-DTESSERA_SOURCE=${work}/tessera")
endif()

run("${CMAKE_COMMAND}" -S "${work}/source" -B "${work}/build" -G "${GENERATOR}"
  "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_BUILD_TYPE=Debug "${where}")
run("${CMAKE_COMMAND}" --build "${work}/build")
run("${work}/build/consumer")
file(REMOVE_RECURSE "${work}")
