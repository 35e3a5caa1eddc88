# The library: everything under src/ except tests.
find_package(hwy REQUIRED)  # package libhwy-dev
find_package(nlohmann_json REQUIRED)  # headers only, like Highway
include(fmt)
# toml++ as headers too: its CMake package would link the shared library.
find_path(HEDDLE_TOMLPLUSPLUS toml++/toml.h REQUIRED)  # package libtomlplusplus-dev

# What reads compressed data and images, and knows letters. Archives come before shared libraries,
# so that the program needs nothing but the C library to run. Users of the installed library have
# their own choice.
set(library_suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
if(PROJECT_IS_TOP_LEVEL)
  list(PREPEND CMAKE_FIND_LIBRARY_SUFFIXES .a)
endif()
find_package(ZLIB REQUIRED)  # package zlib1g-dev
find_package(PNG REQUIRED)   # package libpng-dev
find_package(JPEG REQUIRED)  # package libjpeg-dev
find_package(utf8proc REQUIRED)  # package libutf8proc-dev; cmake/Findutf8proc.cmake finds it
set(CMAKE_FIND_LIBRARY_SUFFIXES ${library_suffixes})

file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*.cpp")
list(FILTER sources EXCLUDE REGEX "/test[^/]*\\.cpp$")
list(FILTER sources EXCLUDE REGEX "/src/ops/[^/]+/")  # ops are listed by ops.def ...
file(GLOB_RECURSE support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/ops/support/*.cpp")
list(FILTER support EXCLUDE REGEX "/test[^/]*\\.cpp$")
list(APPEND sources ${support})                         # ... except for what they share

# PyTorch's side of the benchmarks travels inside of the program, as text.
set(rival "${PROJECT_SOURCE_DIR}/src/bench/torch_rival.py")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${rival}")
file(READ "${rival}" rival_script)
file(CONFIGURE OUTPUT "${HEDDLE_GENERATED}/bench/torch_rival_script.h" @ONLY CONTENT
[[// Generated from src/bench/torch_rival.py.
#pragma once
namespace heddle::bench {
inline constexpr const char* kTorchRivalScript = R"python(@rival_script@)python";
}
]])

foreach(isa IN LISTS HEDDLE_ISAS)
  set(isa_sources_${isa} "")
endforeach()
set(plain_sources "")
foreach(source IN LISTS sources)
  heddle_isa_of_file("${source}" isa)
  if(isa)
    list(APPEND isa_sources_${isa} "${source}")
  else()
    list(APPEND plain_sources "${source}")
  endif()
endforeach()

add_library(heddle STATIC ${plain_sources} ${HEDDLE_OP_SOURCES}
  "${HEDDLE_GENERATED}/ops/kernel_tables.cpp" ${HEDDLE_FMT_SOURCE})
add_library(heddle::heddle ALIAS heddle)
heddle_target(heddle)
set_target_properties(heddle PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_compile_features(heddle PUBLIC cxx_std_20)
target_include_directories(heddle
  PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${HEDDLE_GENERATED}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    # Generated headers of ops forward to src/ops in the tree, for this project alone.
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
target_include_directories(heddle SYSTEM PRIVATE "${HEDDLE_TOMLPLUSPLUS}")
target_link_libraries(heddle PUBLIC Threads::Threads
  PRIVATE ZLIB::ZLIB PNG::PNG JPEG::JPEG utf8proc::utf8proc
  $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> $<BUILD_INTERFACE:heddle_fmt>)

set(HEDDLE_ISA_TARGETS "")
foreach(isa IN LISTS HEDDLE_ISAS)
  if(isa IN_LIST HEDDLE_KERNEL_ISAS)
    list(APPEND isa_sources_${isa} ${HEDDLE_KERNEL_SOURCES})
  endif()
  heddle_isa_library(${isa} ${isa_sources_${isa}})
  if(TARGET heddle_isa_${isa})
    target_sources(heddle PRIVATE $<TARGET_OBJECTS:heddle_isa_${isa}>)
    list(APPEND HEDDLE_ISA_TARGETS heddle_isa_${isa})
  endif()
endforeach()
