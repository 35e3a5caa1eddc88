# Each folder examples/<name> with a main.cpp is one program, build/<preset>/example_<name>. They use
# the public headers only, like any other project would.
find_package(CLI11 REQUIRED)
file(GLOB example_mains CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*/main.cpp")
foreach(main IN LISTS example_mains)
  cmake_path(GET main PARENT_PATH folder)
  cmake_path(GET folder FILENAME name)
  file(GLOB example_sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  add_executable(example_${name} ${example_sources})
  heddle_target(example_${name})
  # As in the command line, CLI11 lives in headers.
  target_compile_options(example_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_link_libraries(example_${name} PRIVATE heddle CLI11::CLI11 heddle_fmt)
endforeach()
