# Which commit a program was built from, for reports of what went wrong: a source of its own, written
# anew when HEAD moves, so that nothing else is compiled again. Without git, or outside of a clone, it
# is empty.
if(DEFINED OUTPUT)  # cmake -D OUTPUT=... -D SOURCE=... -P commit.cmake
  cmake_minimum_required(VERSION 3.25)  # a script has no policies of its own, and warns
  set(commit "")
  execute_process(COMMAND git -C "${SOURCE}" rev-parse --short=12 HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT
"// Made by cmake/commit.cmake.
#include \"commit.h\"

namespace heddle::cli {

const char* commit() { return \"@commit@\"; }

}  // namespace heddle::cli
")
  return()
endif()

function(heddle_commit output)
  set(moves "")  # HEAD does not change when its branch moves; its log does
  execute_process(COMMAND git -C "${PROJECT_SOURCE_DIR}" rev-parse --git-path logs/HEAD
    OUTPUT_VARIABLE log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  cmake_path(ABSOLUTE_PATH log BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
  if(failed EQUAL 0 AND EXISTS "${log}")
    set(moves "${log}")
  endif()
  add_custom_command(OUTPUT "${output}" DEPENDS ${moves} "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
    COMMAND ${CMAKE_COMMAND} -D "OUTPUT=${output}" -D "SOURCE=${PROJECT_SOURCE_DIR}"
      -P "${CMAKE_CURRENT_FUNCTION_LIST_FILE}" VERBATIM)
endfunction()
