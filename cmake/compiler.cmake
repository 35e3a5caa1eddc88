# What holds for every translation unit of Heddle. Nothing here reaches the users of the library:
# the flags are private to our targets.

# ccache, unless the user chose a launcher. Paths are taken relative to the source tree, so that
# another clone finds what this one compiled.
find_program(HEDDLE_CCACHE ccache)
if(PROJECT_IS_TOP_LEVEL AND HEDDLE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${HEDDLE_CCACHE})
endif()

# For editors, clang-tidy and the symbol check.
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_package(Threads REQUIRED)

add_library(heddle_compile_options INTERFACE)
target_compile_features(heddle_compile_options INTERFACE cxx_std_20)
target_compile_options(heddle_compile_options INTERFACE
  -Wall -Wextra -Wpedantic
  # Files that are compiled together would shadow each other's names: see unity.cmake.
  $<$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wshadow>
  $<$<BOOL:${HEDDLE_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: a false alarm at every "literal" + std::string.
  target_compile_options(heddle_compile_options INTERFACE -Wno-restrict)
endif()

# Behind what targets say themselves, so it has the last word.
if(NOT HEDDLE_OPTIMISE)
  target_compile_options(heddle_compile_options INTERFACE -O0)
endif()

if(HEDDLE_SANITIZE)
  # Not for levels that no test of this machine runs (isa.cmake).
  target_compile_options(heddle_compile_options INTERFACE
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:HEDDLE_UNSANITIZED>>>:-fsanitize=${HEDDLE_SANITIZE}>
    $<$<BOOL:$<TARGET_PROPERTY:HEDDLE_MEMORY_ONLY>>:-fno-sanitize=undefined>
    # Where a tensor is empty, the address of its first element is null and something, which nobody
    # reads. clang calls that an overflow, g++ only what wraps around.
    $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=pointer-overflow>
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(heddle_compile_options INTERFACE -fsanitize=${HEDDLE_SANITIZE})
endif()
# Bounds of the standard containers, wherever speed is not the point.
if(HEDDLE_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(heddle_compile_options INTERFACE _GLIBCXX_ASSERTIONS)
endif()

# What goes into the library, each function and constant in a section of its own: a program that links
# with --gc-sections has only what it uses, however files were compiled together.
function(heddle_sections name)
  target_compile_options(${name} PRIVATE -ffunction-sections -fdata-sections)
endfunction()

function(heddle_target name)
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:heddle_compile_options>)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()
