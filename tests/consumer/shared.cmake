# libheddle as a shared library: the preset `shared`, built from SOURCE in its build/shared, installed to
# WORK, and used by run.cmake's projects.
execute_process(COMMAND ${CMAKE_COMMAND} --preset shared WORKING_DIRECTORY ${SOURCE}
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build --preset shared WORKING_DIRECTORY ${SOURCE}
  COMMAND_ERROR_IS_FATAL ANY)
set(HEDDLE_BUILD ${SOURCE}/build/shared)
set(ENV{LD_LIBRARY_PATH} ${WORK}/prefix/lib)  # for what was compiled without CMake
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

run(readelf -d ${WORK}/prefix/lib/libheddle.so)
if(NOT output MATCHES "soname: \\[libheddle\\.so\\.[0-9]+\\.[0-9]+\\]")
  message(FATAL_ERROR "the shared library should have a soname: ${output}")
endif()
# Names of Heddle alone, and none of its kernels.
run(nm -D --defined-only --format=posix ${WORK}/prefix/lib/libheddle.so)
if(NOT output MATCHES "\n_ZN6heddle")
  message(FATAL_ERROR "the shared library shows nothing of Heddle")
elseif(output MATCHES "\n(_ZNK?(3fmt|8nlohmann|4toml|St|6heddle3cpu6avx512)[^ ]*)")
  message(FATAL_ERROR "the shared library shows ${CMAKE_MATCH_1}")
endif()
