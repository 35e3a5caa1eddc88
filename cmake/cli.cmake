# The command line: build/<preset>/heddle. (The library has the target name `heddle`.)
file(GLOB_RECURSE cli_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cli/*.cpp")
list(FILTER cli_sources EXCLUDE REGEX "/test[^/]*\\.cpp$")
if(NOT cli_sources)
  return()
endif()

# These two are used as headers only, so that the program needs nothing but the C library.
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
# Archives before shared libraries, as in library.cmake.
set(library_suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
if(PROJECT_IS_TOP_LEVEL AND NOT BUILD_SHARED_LIBS)
  list(PREPEND CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()
find_package(edit REQUIRED)  # package libedit-dev; cmake/Findedit.cmake finds it
set(CMAKE_FIND_LIBRARY_SUFFIXES ${library_suffixes})

include(help_topics)
heddle_help_topics("${PROJECT_BINARY_DIR}/generated/help_topics.cpp")
include(commit)
heddle_commit("${PROJECT_BINARY_DIR}/generated/commit.cpp")
add_executable(heddle_cli ${cli_sources} "${PROJECT_BINARY_DIR}/generated/help_topics.cpp"
  "${PROJECT_BINARY_DIR}/generated/commit.cpp")
heddle_target(heddle_cli)
heddle_unity(heddle_cli cli)
# In a unit with others, every commit would compile these again.
set_source_files_properties("${PROJECT_BINARY_DIR}/generated/commit.cpp" PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON)
set_target_properties(heddle_cli PROPERTIES OUTPUT_NAME heddle)
target_include_directories(heddle_cli PRIVATE "${PROJECT_SOURCE_DIR}/cli")
target_compile_definitions(heddle_cli PRIVATE HEDDLE_VERSION="${PROJECT_VERSION}")
target_link_libraries(heddle_cli PRIVATE heddle_tools heddle ${HEDDLE_COMPONENTS} CLI11::CLI11
  heddle_fmt nlohmann_json::nlohmann_json edit::edit)
# The program opens it beside itself, and what is built for `make run` is what `make install` installs.
if(TARGET heddle_mpi)
  add_dependencies(heddle_cli heddle_mpi)
endif()
# CLI11 lives in headers, and nothing here is worth optimising.
target_compile_options(heddle_cli PRIVATE -O1)
if(BUILD_SHARED_LIBS)
  set_target_properties(heddle_cli PROPERTIES INSTALL_RPATH "\$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
elseif(NOT HEDDLE_SANITIZE)
  # Addresses of the C library are looked up at the start and then read-only, as Debian asks of programs
  # that read files of others.
  target_link_options(heddle_cli PRIVATE -static-libstdc++ -static-libgcc LINKER:-z,relro,-z,now)
endif()
