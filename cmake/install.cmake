# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: headers and a package that find_package(tessera) finds.
include(CMakePackageConfigHelpers)
set(TESSERA_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/tessera")

install(TARGETS tessera EXPORT tesseraTargets)
install(DIRECTORY include/tessera DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION "${TESSERA_CMAKE_DIR}")

configure_package_config_file(cmake/tesseraConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/tesseraConfig.cmake"
  INSTALL_DESTINATION "${TESSERA_CMAKE_DIR}")
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/tesseraConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tesseraConfig.cmake" cmake/tesseraKernels.cmake
  "${CMAKE_CURRENT_BINARY_DIR}/tesseraConfigVersion.cmake" DESTINATION "${TESSERA_CMAKE_DIR}")
