# Installs the build at HEDDLE_BUILD to a fresh prefix, then configures, builds and runs this folder
# against it, as a user's project would, and the examples. Where the program is installed too, it trains
# a small model, which the project then writes a text with; the library must train and write the same.
file(REMOVE_RECURSE "${WORK}")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${HEDDLE_BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build -G Ninja
  -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${HEDDLE_COMPILER}
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
run(${CMAKE_COMMAND} --build ${WORK}/build)

# The examples, each a project of its own. The time that their compilation takes is told: to include
# Heddle should be cheap.
string(REPEAT "the cat sat on the mat\n" 200 text)
file(WRITE ${WORK}/text.txt "${text}")
foreach(example train own_layer own_op load_and_write train_recipe maps_to_json)
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/../../examples/${example} -B ${WORK}/${example}
    -G Ninja -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${HEDDLE_COMPILER}
    -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Wshadow -Werror"
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
  string(TIMESTAMP begin "%s%f")
  run(${CMAKE_COMMAND} --build ${WORK}/${example} --target CMakeFiles/${example}.dir/main.cpp.o)
  string(TIMESTAMP end "%s%f")
  math(EXPR milliseconds "(${end} - ${begin}) / 1000")
  message("${example}: compiled in ${milliseconds} ms")
  run(${CMAKE_COMMAND} --build ${WORK}/${example})
endforeach()
run(${WORK}/train/train ${WORK}/text.txt 40 ${WORK}/tiny.safetensors)
if(NOT output MATCHES "step 40  loss ([0-9.]+)" OR CMAKE_MATCH_1 GREATER 2 OR NOT EXISTS ${WORK}/tiny.safetensors)
  message(FATAL_ERROR "the example train should have learned: ${output}")
endif()
run(${WORK}/own_layer/own_layer)
run(${WORK}/own_op/own_op)
if(NOT output MATCHES "differences agree")
  message(FATAL_ERROR "the example own_op should have checked its gradient: ${output}")
endif()

# Every header that was installed, with nothing but what was installed beside it.
file(GLOB_RECURSE headers RELATIVE ${WORK}/prefix/include ${WORK}/prefix/include/*.h)
list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"\n")
file(WRITE ${WORK}/every_header.cpp ${headers})
run(${HEDDLE_COMPILER} -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wshadow -Werror
  -I${WORK}/prefix/include ${WORK}/every_header.cpp)

file(WRITE ${WORK}/small.toml "[model]\nkind = \"decoder\"\nlayers = 1\nwidth = 32\n\
[model.attention]\nheads = 2\nposition = \"rope\"\n\
[data]\ntext = \"${WORK}/text.txt\"\ntokenizer = \"char\"\ncontext = 16\n\
[train]\nsteps = 60\nbatch = 8\nwarmup = 5\n")
set(model)
set(program ${WORK}/prefix/bin/heddle)
if(EXISTS ${program})
  set(model ${WORK}/model)
  run(${program} train ${WORK}/small.toml --out ${model})
endif()
run(${WORK}/build/consumer_without_f64 ${model})
if(EXISTS ${WORK}/prefix/lib/libheddle.a AND NOT output MATCHES "f64: .*linked without kernels for f64")
  message(FATAL_ERROR "a program with HEDDLE_F64 OFF should have no kernels for f64, and say so: ${output}")
endif()
run(${WORK}/build/consumer ${model})
if(NOT output MATCHES "f64: 17 39")
  message(FATAL_ERROR "a program should compute in f64 without being asked to: ${output}")
endif()
# Whoever asks for a GPU is told which of the three is missing: the library in this program, CUDA in
# this build, or the driver of this machine.
if(EXISTS ${WORK}/prefix/lib/libheddle_cuda.a)
  if(NOT output MATCHES "linked without heddle::cuda")
    message(FATAL_ERROR "a program without heddle::cuda should say so: ${output}")
  endif()
  run(${WORK}/build/consumer_cuda)
  if(NOT output MATCHES "cuda:0|NVIDIA driver" OR output MATCHES "linked without")
    message(FATAL_ERROR "to link heddle::cuda should be enough for GPUs: ${output}")
  endif()
elseif(NOT output MATCHES "this build has no CUDA backend")
  message(FATAL_ERROR "a build without CUDA should say so: ${output}")
endif()
if(model)
  run(${WORK}/load_and_write/load_and_write ${model} "the cat ")
endif()
message("${output}")

# A recipe trained by a program, and where its model looks.
run(${WORK}/train_recipe/train_recipe ${WORK}/small.toml ${WORK}/own_model 60 "the cat ")
if(NOT output MATCHES "step 60  loss ([0-9.]+)" OR CMAKE_MATCH_1 GREATER 2 OR
    NOT output MATCHES "60 steps, 7680 tokens\n(the cat .+)$")
  message(FATAL_ERROR "the example train_recipe should have learned: ${output}")
endif()
set(written "${CMAKE_MATCH_1}")
if(model)
  run(${CMAKE_COMMAND} -E compare_files ${model}/model.safetensors
    ${WORK}/own_model/model.safetensors)
  run(${program} generate ${model} --prompt "the cat " --tokens 40 --temperature 0)
  if(NOT output STREQUAL written)
    message(FATAL_ERROR "program and library should write the same: ${output}\n${written}")
  endif()
endif()
run(${WORK}/maps_to_json/maps_to_json ${WORK}/own_model "the cat")
string(JSON layers LENGTH "${output}" layers)
string(JSON heads LENGTH "${output}" layers 0 heads)
string(JSON queries LENGTH "${output}" layers 0 heads 1)
string(JSON alone GET "${output}" layers 0 heads 1 0 0)  # the first token sees itself alone
string(JSON hidden GET "${output}" layers 0 heads 1 0 6)
if(NOT "${layers} ${heads} ${queries} ${alone} ${hidden}" STREQUAL "1 2 7 1 0")
  message(FATAL_ERROR "the maps should be causal, 1 layer of 2 heads over 7 tokens: ${output}")
endif()

# A program that writes carries no more than it can use: no kernels of gradients, 1.8 MB, and none that
# compute layers in f64, 0.5. The aim is 4 MB; docs/building.md says what the bytes are.
run(${HEDDLE_STRIP} -o ${WORK}/stripped ${WORK}/load_and_write/load_and_write)
file(SIZE ${WORK}/stripped bytes)
if(bytes GREATER 4800000)
  message(FATAL_ERROR "the smallest program that writes has ${bytes} bytes, 4,800,000 at most")
endif()
message("load_and_write: ${bytes} bytes, stripped")

# Without CMake: what pkg-config says is enough to compile, to link and to run, with GPUs too.
find_program(pkg_config pkg-config)
if(pkg_config)
  set(ENV{PKG_CONFIG_PATH} ${WORK}/prefix/lib/pkgconfig)
  set(modules heddle)
  if(EXISTS ${WORK}/prefix/lib/pkgconfig/heddle-cuda.pc)
    list(APPEND modules heddle-cuda)
  endif()
  foreach(module IN LISTS modules)
    foreach(linking "" --static)
      run(${pkg_config} --cflags --libs ${linking} ${module})
      separate_arguments(flags UNIX_COMMAND "${output}")
      run(${HEDDLE_COMPILER} -std=c++20 ${CMAKE_CURRENT_LIST_DIR}/main.cpp -o ${WORK}/by_${module}
        ${flags})
    endforeach()
    run(${WORK}/by_${module} ${model})
    if(module STREQUAL "heddle-cuda" AND output MATCHES "linked without")
      message(FATAL_ERROR "pkg-config heddle-cuda should be enough for GPUs: ${output}")
    endif()
  endforeach()
endif()
