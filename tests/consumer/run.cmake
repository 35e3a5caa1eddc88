# Installs the build at HEDDLE_BUILD to a fresh prefix, then configures, builds and runs this folder
# against it, as a user's project would.
file(REMOVE_RECURSE "${WORK}")
foreach(command
    "${CMAKE_COMMAND};--install;${HEDDLE_BUILD};--prefix;${WORK}/prefix"
    "${CMAKE_COMMAND};-S;${CMAKE_CURRENT_LIST_DIR};-B;${WORK}/build;-G;Ninja;-DCMAKE_PREFIX_PATH=${WORK}/prefix;-DCMAKE_CXX_COMPILER=${HEDDLE_COMPILER};-DCMAKE_BUILD_TYPE=Release;-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF"
    "${CMAKE_COMMAND};--build;${WORK}/build"
    "${WORK}/build/consumer")
  execute_process(COMMAND ${command} RESULT_VARIABLE result OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN command " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
endforeach()
message("${output}")
