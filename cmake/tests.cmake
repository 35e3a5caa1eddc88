# Tests. Labels: `quick` for what a developer runs after every change, `slow` for the rest.
find_package(GTest REQUIRED)

# heddle_test(<name> <quick|slow> <timeout> <command>...)
function(heddle_test name label timeout)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout})
endfunction()

function(heddle_test_executable name)
  add_executable(${name} ${ARGN})
  heddle_target(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE heddle GTest::gtest GTest::gtest_main)
endfunction()

file(GLOB_RECURSE unit_sources CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/src/test*.cpp" "${PROJECT_SOURCE_DIR}/tests/unit/*.cpp")
list(FILTER unit_sources EXCLUDE REGEX "/src/ops/[^/]+/")
if(unit_sources)
  heddle_test_executable(unit_tests ${unit_sources})
  heddle_test(unit quick 120 unit_tests --gtest_filter=-*Slow*)
  heddle_test(unit_slow slow 600 unit_tests --gtest_filter=*Slow*)
endif()

file(GLOB_RECURSE harness_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/harness/*.cpp")
if(HEDDLE_OP_TESTS)
  heddle_test_executable(op_tests ${HEDDLE_OP_TESTS} ${harness_sources})
  heddle_test(ops quick 300 op_tests --gtest_filter=-*Slow*)
  heddle_test(ops_slow slow 900 op_tests --gtest_filter=*Slow*)
endif()
