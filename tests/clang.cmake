# SPDX-License-Identifier: Apache-2.0
# The second compiler's pass: the same build compiles the type and trace tests with clang, by plain commands.
# What they open with is parsed once. Nothing but Boost's and Catch2's headers is on its command line, so a test here
# proves that it needs no more.
set(clang_dir "${CMAKE_CURRENT_BINARY_DIR}/clang")
set(clang_flags -std=c++20 -O1 -march=native ${TESSERA_CLANG_OPTIONS} ${TESSERA_WARNINGS}
  "-I${PROJECT_SOURCE_DIR}/include" "-I${CMAKE_CURRENT_SOURCE_DIR}"
  "-DTESSERA_REFERENCE_DIR=\"${CMAKE_CURRENT_SOURCE_DIR}/reference\"")
foreach(package_dir IN ITEMS ${Boost_INCLUDE_DIRS} "$<TARGET_PROPERTY:Catch2::Catch2,INTERFACE_INCLUDE_DIRECTORIES>")
  list(APPEND clang_flags "-idirafter${package_dir}")
endforeach()
set(TESSERA_CLANG_PASS OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND TESSERA_CLANG_COMPILER AND NOT CMAKE_BUILD_TYPE MATCHES "^[AT]san$")
  set(TESSERA_CLANG_PASS ON)
endif()

# clang_object(<object> <source> DEPENDS <file>... OPTIONS <option>...): the commands that compile one file with clang,
# its headers tracked.
function(clang_object object source)
  cmake_parse_arguments(PARSE_ARGV 2 given "" "" "DEPENDS;OPTIONS")
  cmake_path(GET object PARENT_PATH folder)
  file(MAKE_DIRECTORY "${folder}")
  add_custom_command(OUTPUT "${object}"
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} "${TESSERA_CLANG_COMPILER}" ${clang_flags}
      -MD -MF "${object}.d" -MT "${object}" ${given_OPTIONS} -c "${source}" -o "${object}"
    DEPENDS "${source}" ${given_DEPENDS} DEPFILE "${object}.d" COMMENT "Building ${object} with clang" VERBATIM)
endfunction()

# tessera_clang_test(<folder>.<name> <source>): as tessera_test, with clang.
function(tessera_clang_test name source)
  if(NOT TESSERA_CLANG_PASS)
    return()
  endif()
  set(object "${clang_dir}/${name}.o")
  set(program "${clang_dir}/${name}")
  cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  get_source_file_property(alone "${source}" SKIP_PRECOMPILE_HEADERS)
  if(alone)
    clang_object("${object}" "${source}")
  else()
    clang_object("${object}" "${source}" DEPENDS "${clang_dir}/precompiled.hpp.pch"
      OPTIONS -include "${clang_dir}/precompiled.hpp")
  endif()
  add_custom_command(OUTPUT "${program}"
    COMMAND "${TESSERA_CLANG_COMPILER}" "${object}" "${clang_dir}/main.o" -o "${program}"
    DEPENDS "${object}" "${clang_dir}/main.o" VERBATIM)
  string(REPLACE "." "_" target "clang_${name}")
  add_custom_target(${target} ALL DEPENDS "${program}")
  add_dependencies(${target} clang_main clang_precompiled)
  string(REGEX REPLACE "\\..*" "" folder "${name}")
  add_test(NAME clang.${name} COMMAND "${program}")
  set_tests_properties(clang.${name} PROPERTIES LABELS "clang;${folder}" TIMEOUT 900)
endfunction()

if(TESSERA_CLANG_PASS)
  clang_object("${clang_dir}/main.o" "${CMAKE_CURRENT_SOURCE_DIR}/main.cpp" OPTIONS -O0)
  add_custom_target(clang_main DEPENDS "${clang_dir}/main.o")
  list(TRANSFORM TESSERA_TEST_HEADERS_OF_types PREPEND "#include " OUTPUT_VARIABLE includes)
  list(JOIN includes "\n" includes)
  file(CONFIGURE OUTPUT "${clang_dir}/precompiled.hpp" CONTENT "${includes}\n" @ONLY)
  clang_object("${clang_dir}/precompiled.hpp.pch" "${clang_dir}/precompiled.hpp" OPTIONS -x c++-header)
  add_custom_target(clang_precompiled DEPENDS "${clang_dir}/precompiled.hpp.pch")
endif()
