# cmake --install: headers, library, program, and the files behind find_package(heddle).
include(CMakePackageConfigHelpers)

set(HEDDLE_PACKAGE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/heddle")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/heddle" "${HEDDLE_PUBLIC_HEADERS}/heddle"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT headers FILES_MATCHING PATTERN "*.h")
install(FILES "${HEDDLE_GENERATED}/heddle/ops.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/heddle"
  COMPONENT headers)
install(FILES ${HEDDLE_OP_HEADERS} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/heddle/ops"
  COMPONENT headers)
install(TARGETS heddle EXPORT heddle-targets)
# A component has its targets in a file of its own: who does not ask for it needs nothing of CUDA.
if(HEDDLE_CUDA_ENABLED)
  install(TARGETS heddle_cuda EXPORT heddle-cuda-targets)
  install(EXPORT heddle-cuda-targets NAMESPACE heddle:: DESTINATION "${HEDDLE_PACKAGE_DIR}")
endif()
if(TARGET heddle_cli)
  # The program alone: cmake --install BUILD --component program.
  install(TARGETS heddle_cli COMPONENT program)
endif()
if(TARGET heddle_mpi)
  install(TARGETS heddle_mpi LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
# Completion for shells and the manual page are what the installed program says of itself, on a machine
# that runs it.
if(TARGET heddle_cli AND NOT CMAKE_CROSSCOMPILING)
  install(CODE "
    set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
    foreach(kind bash zsh fish man)
      set(bash share/bash-completion/completions/heddle)
      set(zsh share/zsh/site-functions/_heddle)
      set(fish share/fish/vendor_completions.d/heddle.fish)
      set(man share/man/man1/heddle.1)
      cmake_path(GET \${kind} PARENT_PATH folder)
      file(MAKE_DIRECTORY \"\${root}/\${folder}\")
      execute_process(COMMAND \"\${root}/${CMAKE_INSTALL_BINDIR}/heddle\" --lang en completion \${kind}
        OUTPUT_FILE \"\${root}/\${\${kind}}\" COMMAND_ERROR_IS_FATAL ANY)
      message(STATUS \"Installing: \${root}/\${\${kind}}\")
    endforeach()" COMPONENT program)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
    COMPONENT program FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN "*.svg" PATTERN "site" EXCLUDE)
endif()
# To read: the program has them inside (library.cmake).
install(DIRECTORY "${PROJECT_SOURCE_DIR}/recipes" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
  COMPONENT program FILES_MATCHING PATTERN "*.toml")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

install(EXPORT heddle-targets NAMESPACE heddle:: DESTINATION "${HEDDLE_PACKAGE_DIR}")
configure_package_config_file(cmake/heddle-config.cmake.in
  "${PROJECT_BINARY_DIR}/heddle-config.cmake" INSTALL_DESTINATION "${HEDDLE_PACKAGE_DIR}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/heddle-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/heddle-config.cmake"
  "${PROJECT_BINARY_DIR}/heddle-config-version.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/Findutf8proc.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/Findpcre2.cmake" DESTINATION "${HEDDLE_PACKAGE_DIR}")
