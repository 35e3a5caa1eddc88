# cmake --install: headers, library, program, and the files behind find_package(heddle).
include(CMakePackageConfigHelpers)

set(HEDDLE_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/heddle")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/heddle" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h")
install(FILES "${HEDDLE_GENERATED}/heddle/ops.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/heddle")
install(FILES ${HEDDLE_OP_HEADERS} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/heddle/ops")
install(TARGETS heddle EXPORT heddle-targets)
if(TARGET heddle_cli)
  install(TARGETS heddle_cli)
endif()
# Where `heddle compare --recipe NAME` finds them: ../share/heddle/recipes from the program.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/recipes" DESTINATION "${CMAKE_INSTALL_DATADIR}/heddle"
  FILES_MATCHING PATTERN "*.toml")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

install(EXPORT heddle-targets NAMESPACE heddle:: DESTINATION "${HEDDLE_PACKAGE_DIR}")
configure_package_config_file(cmake/heddle-config.cmake.in
  "${PROJECT_BINARY_DIR}/heddle-config.cmake" INSTALL_DESTINATION "${HEDDLE_PACKAGE_DIR}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/heddle-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/heddle-config.cmake"
  "${PROJECT_BINARY_DIR}/heddle-config-version.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/Findutf8proc.cmake" DESTINATION "${HEDDLE_PACKAGE_DIR}")
