# The target `docs` (make docs): pages of the installed headers, build/<preset>/docs/html. A warning of
# Doxygen fails it.
find_program(HEDDLE_DOXYGEN doxygen)  # package doxygen
if(NOT HEDDLE_DOXYGEN)
  return()
endif()
configure_file(cmake/Doxyfile.in "${PROJECT_BINARY_DIR}/Doxyfile" @ONLY)
add_custom_target(docs
  COMMAND ${CMAKE_COMMAND} -E rm -rf "${PROJECT_BINARY_DIR}/docs"
  COMMAND ${CMAKE_COMMAND} --install "${PROJECT_BINARY_DIR}" --component headers
    --prefix "${PROJECT_BINARY_DIR}/docs"
  COMMAND ${HEDDLE_DOXYGEN} "${PROJECT_BINARY_DIR}/Doxyfile"
  COMMENT "Pages of the public headers" VERBATIM)
