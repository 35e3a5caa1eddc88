# The plug-in over MPI (src/distributed/mpi): a library of its own that the program opens when a run
# has several ranks, so that nothing else is linked to MPI.
set(HEDDLE_MPI AUTO CACHE STRING "Build the plug-in for runs over MPI: AUTO (where it is found), ON or OFF")
set_property(CACHE HEDDLE_MPI PROPERTY STRINGS AUTO ON OFF)

set(HEDDLE_MPI_ENABLED OFF)
if(NOT HEDDLE_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX ON)  # the C interface alone
  if(HEDDLE_MPI STREQUAL "ON")
    find_package(MPI REQUIRED COMPONENTS CXX)  # package libopenmpi-dev
  else()
    find_package(MPI QUIET COMPONENTS CXX)
  endif()
  set(HEDDLE_MPI_ENABLED ${MPI_CXX_FOUND})
endif()
if(NOT HEDDLE_MPI_ENABLED)
  message(STATUS "Runs over MPI: no plug-in (HEDDLE_MPI is ${HEDDLE_MPI})")
  return()
endif()

add_library(heddle_mpi MODULE "${PROJECT_SOURCE_DIR}/src/distributed/mpi/heddle_mpi.cpp")
heddle_target(heddle_mpi)
set_target_properties(heddle_mpi PROPERTIES CXX_VISIBILITY_PRESET hidden
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")  # beside the program
target_include_directories(heddle_mpi PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(heddle_mpi PRIVATE MPI::MPI_CXX)
if(NOT HEDDLE_SANITIZE)
  target_link_options(heddle_mpi PRIVATE -static-libstdc++ -static-libgcc)
endif()
