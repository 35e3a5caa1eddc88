# fmt, compiled into the library once. As headers only, every file that formats a number compiled the
# whole of it again: cli/plan.cpp took 16 s and takes 4. Its shared library would be one more thing
# the program needs to run.
find_package(fmt REQUIRED)  # package libfmt-dev

add_library(heddle_fmt INTERFACE)
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  set(HEDDLE_FMT_SOURCE "${PROJECT_SOURCE_DIR}/cmake/fmt.cpp")
else()  # others may want other instances than fmt.cpp has
  set(HEDDLE_FMT_SOURCE "")
  target_link_libraries(heddle_fmt INTERFACE fmt::fmt-header-only)
endif()
