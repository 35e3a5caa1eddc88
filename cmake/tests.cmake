# Tests. Labels: `quick` for what a developer runs after every change, `slow` for the rest of what CI
# runs, `nightly` for what takes minutes: test presets leave it out (make nightly runs it).
find_package(GTest REQUIRED)
find_package(rapidcheck REQUIRED)  # package librapidcheck-dev
find_package(CLI11 REQUIRED)  # tests of the command line

# heddle_test(<name> <quick|slow|nightly> <timeout> <command>...)
function(heddle_test name label timeout)
  if(HEDDLE_SANITIZE)
    math(EXPR timeout "${timeout} * 5")
  endif()
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout})
  # Tests share the machine (ctest -j), all but those that measure it.
  if(label STREQUAL "nightly")
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()

# heddle_page_test(<name> <timeout> <fixture> <command>...): looks at pages that the fixture's setup
# made, or at pages of its models, in headless Chromium. Where there is none it is skipped, not passed.
function(heddle_page_test name timeout fixture)
  heddle_test(${name} slow ${timeout} ${ARGN})
  set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED "${fixture}" SKIP_RETURN_CODE 77)
endfunction()

function(heddle_test_executable name)
  add_executable(${name} ${ARGN})
  heddle_target(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name} PRIVATE heddle_mock heddle_tools heddle ${HEDDLE_COMPONENTS}
    GTest::gtest)
  # Tests run for seconds, and compiling them is half of a clean build: -O3 took a third longer.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  # Sanitizers are for the library. Tests are watched for what they do to memory, which is theirs and
  # the library's; neither optimised nor checked for undefined arithmetic (compiler.cmake) they compile
  # in 40 % of the time, which was most of a sanitized build.
  if(HEDDLE_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
    set_target_properties(${name} PROPERTIES HEDDLE_MEMORY_ONLY ON)
  endif()
endfunction()

find_package(Python3 COMPONENTS Interpreter)  # before the first test that asks for it

# The program as scripts and other programs start it: where it is for another machine, by a script that
# starts the emulator (which CMake does only for programs of tests themselves).
set(heddle_program $<TARGET_FILE:heddle_cli>)
if(TARGET heddle_cli AND CMAKE_CROSSCOMPILING)
  set(heddle_program "${PROJECT_BINARY_DIR}/emulated/heddle")
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
  file(GENERATE OUTPUT "${heddle_program}" CONTENT "#!/bin/sh
exec ${emulator} $<TARGET_FILE:heddle_cli> \"$@\"
" FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endif()

# A second device, on which nothing can be reached but through the seam.
file(GLOB mock_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/mock/*.cpp")
add_library(heddle_mock STATIC ${mock_sources})
heddle_target(heddle_mock)
target_include_directories(heddle_mock PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(heddle_mock PUBLIC heddle)

file(GLOB_RECURSE unit_sources CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/src/test*.cpp" "${PROJECT_SOURCE_DIR}/tests/unit/*.cpp"
  "${PROJECT_SOURCE_DIR}/tests/fuzz/test*.cpp")
list(APPEND unit_sources "${PROJECT_SOURCE_DIR}/tests/fuzz/read_models.cpp"
  "${PROJECT_SOURCE_DIR}/tests/fuzz/read_tokenizers.cpp")
list(FILTER unit_sources EXCLUDE REGEX "/src/ops/[^/]+/test\\.cpp$")  # of op_tests
heddle_keep_architecture(unit_sources)
# What of the command line can be tested without a process, and its tests.
file(GLOB_RECURSE cli_tests CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/cli/test*.cpp")
include(help_topics)
set(help_topics "${PROJECT_BINARY_DIR}/generated/help_topics.cpp")
heddle_help_topics("${help_topics}")  # also where the command line itself is not built
list(APPEND unit_sources ${cli_tests} "${PROJECT_SOURCE_DIR}/cli/help/chapter.cpp"
  "${PROJECT_SOURCE_DIR}/cli/help/help.cpp" "${help_topics}"
  "${PROJECT_SOURCE_DIR}/cli/language_option.cpp"
  "${PROJECT_SOURCE_DIR}/cli/help/parser_words.cpp" "${PROJECT_SOURCE_DIR}/cli/progress.cpp"
  "${PROJECT_SOURCE_DIR}/cli/help/suggest.cpp" "${PROJECT_SOURCE_DIR}/cli/word_stream.cpp")
if(unit_sources)
  heddle_test_executable(unit_tests ${unit_sources})
  target_include_directories(unit_tests PRIVATE "${PROJECT_SOURCE_DIR}/cli")
  target_link_libraries(unit_tests PRIVATE GTest::gtest_main rapidcheck rapidcheck_gtest heddle_fmt
    CLI11::CLI11)
  set_source_files_properties("${PROJECT_SOURCE_DIR}/tests/unit/source_tree.cpp" PROPERTIES
    COMPILE_DEFINITIONS "HEDDLE_SOURCE_TREE=\"${PROJECT_SOURCE_DIR}\""
    SKIP_UNITY_BUILD_INCLUSION ON)
  heddle_unity(unit_tests src/autograd src/base src/bench src/check src/compare src/data src/distributed src/generate
    src/io src/lab src/language src/model src/nn src/ops src/optim src/plan src/recipe src/report src/run
    src/tensor src/text src/train tests/unit)
  # Every sentence of the attention grammar, how memory grows, products of every shape on emulated
  # tiles, whole comparisons, every kind of model trained and resumed, every key of a recipe, random
  # attention, checks of extreme recipes: three times the time of the rest.
  set(exhaustive "Scores/*:AmxGemm.*:CompareTest.*:JobTest.EveryKind*:KeysTest.EveryKey*")
  string(APPEND exhaustive ":RandomAttention.*:CheckExtremes.*")
  set(lab_faults "Quick/LabFaults.*:Long/LabFaults.*")  # the lab's measurements on trial
  set(not_quick "${exhaustive}:${lab_faults}")
  if(CMAKE_CROSSCOMPILING)  # an emulated process cannot start itself again
    string(APPEND not_quick ":*DeathTest*")
  endif()
  heddle_test(unit quick 240 unit_tests --gtest_filter=-${not_quick})
  heddle_test(unit.exhaustive slow 300 unit_tests --gtest_filter=${exhaustive})
  # What of it an emulator does in minutes: products, whole models against PyTorch, threads, what the
  # system does.
  if(CMAKE_CROSSCOMPILING)
    heddle_test(unit.emulated quick 300 unit_tests
      "--gtest_filter=Gemm*:GoldenModels.*:Isas.*:Threads.*:Cores.*:Pages.*")
  endif()
  # Whether verdicts turn is nothing that sanitizers could say, and takes them five minutes.
  if(NOT HEDDLE_SANITIZE)
    heddle_test(lab.faults slow 300 unit_tests --gtest_filter=Quick/LabFaults.*)
  endif()
  heddle_test(lab.faults.slow nightly 3600 unit_tests --gtest_filter=Long/LabFaults.*)
  # Properties are tried on the same random cases every time, so that a change is judged by what it
  # changes; at night on others every time (a failure prints the seed, for RC_PARAMS=seed=...).
  set_tests_properties(unit unit.exhaustive PROPERTIES ENVIRONMENT RC_PARAMS=seed=17)
  set(properties "")
  foreach(source IN LISTS unit_sources)
    file(STRINGS "${source}" found REGEX "^RC_GTEST_PROP\\(")
    foreach(line IN LISTS found)
      string(REGEX REPLACE "^RC_GTEST_PROP\\(([^,]+), *([^,]+),.*" "\\1.\\2" name "${line}")
      string(APPEND properties "${name}:")
    endforeach()
  endforeach()
  heddle_test(unit.properties nightly 900 unit_tests --gtest_filter=${properties})
endif()

# Renders chat templates for tests/conformance/check_templates.py.
heddle_test_executable(render_template
  "${PROJECT_SOURCE_DIR}/tests/conformance/render_template.cpp")

# The same files by libFuzzer, for hours: tests/fuzz/fuzz_*.cpp say how.
option(HEDDLE_FUZZ "build programs for libFuzzer (needs clang)" OFF)
if(HEDDLE_FUZZ)
  foreach(kind models tokenizers)
    add_executable(fuzz_${kind} "${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_${kind}.cpp"
      "${PROJECT_SOURCE_DIR}/tests/fuzz/read_${kind}.cpp"
      "${PROJECT_SOURCE_DIR}/tests/unit/source_tree.cpp")
    heddle_target(fuzz_${kind})
    target_include_directories(fuzz_${kind} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    target_compile_options(fuzz_${kind} PRIVATE -fsanitize=fuzzer)
    target_link_options(fuzz_${kind} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(fuzz_${kind} PRIVATE heddle GTest::gtest ZLIB::ZLIB)
  endforeach()
endif()

# The harness names its suites after the ops; what is left over are its own tests, among them the one
# that every op has cases, so that no filter here can pass by matching nothing.
file(GLOB_RECURSE harness_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/harness/*.cpp")
if(HEDDLE_OP_TESTS)
  heddle_test_executable(op_tests ${HEDDLE_OP_TESTS} ${harness_sources})
  heddle_unity(op_tests src/ops)
  set(others "mutants.*")
  # Cases of several chunks, tiles or blocks: a tenth of all, and four fifths of the time.
  string(JOIN ":" large "*several*" "*many rows*" "*packed at a time*" "*long*" "*many keys*"
    "*601, 131*" "*301, 192*" "*301, 131*" "*2, 3, 400*" "*33, 20, 65*" "*32806*" "*16411*"
    "*StreamingChangesNothing*")
  foreach(op IN LISTS HEDDLE_OPS)
    heddle_test(op.${op} quick 120 op_tests --gtest_filter=${op}.*-${large})
    string(APPEND others ":${op}.*")
  endforeach()
  heddle_test(op.harness quick 120 op_tests --gtest_filter=-${others}:${large})
  heddle_test(op.large slow 300 op_tests --gtest_filter=${large}:-mutants.*)
  # Planted faults are for the harness to find; sanitizers have nothing to add, and take minutes.
  if(NOT HEDDLE_SANITIZE)
    heddle_test(op.mutants slow 300 op_tests --gtest_filter=mutants.*)
  endif()
endif()

# The CUDA backend's routines on the first GPU; where there is none it is skipped, not passed.
if(HEDDLE_CUDA_ENABLED)
  file(GLOB cuda_test_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/cuda/*.cpp")
  add_executable(cuda_tests ${cuda_test_sources})
  heddle_target(cuda_tests)
  target_link_libraries(cuda_tests PRIVATE heddle_mock heddle ${HEDDLE_COMPONENTS})
  heddle_test(cuda quick 120 cuda_tests)
  set_tests_properties(cuda PROPERTIES SKIP_RETURN_CODE 77)
endif()

# Training that is killed, interrupted or out of space, as a user's would be.
if(TARGET heddle_cli)
  file(GLOB reliability_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/reliability/*.cpp")
  heddle_test_executable(reliability_tests ${reliability_sources})
  heddle_test(reliability slow 300 reliability_tests ${heddle_program})
endif()

# Every claim of the lab that takes seconds comes to its verdict and its numbers, and the page of it
# is written.
if(TARGET heddle_cli)
  if(Python3_FOUND)
    heddle_test(lab.all slow 300 Python3::Interpreter
      ${PROJECT_SOURCE_DIR}/tests/e2e/lab_numbers.py ${heddle_program} ${PROJECT_BINARY_DIR})
    set_tests_properties(lab.all PROPERTIES RUN_SERIAL ON  # some claims are of time
      FIXTURES_SETUP lab_page)
    heddle_test(pages.lab slow 300 Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/pages/lab.py
      ${heddle_program} ${PROJECT_BINARY_DIR}/pages/lab)
    set_tests_properties(pages.lab PROPERTIES SKIP_RETURN_CODE 77 RUN_SERIAL ON)
  endif()
  # The others train models: minutes.
  heddle_test(lab.slow nightly 1800 heddle_cli lab all --slow)
endif()

# Whether the library as installed can be found and used by another project.
if(PROJECT_IS_TOP_LEVEL AND NOT HEDDLE_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  heddle_test(consumer slow 300 ${CMAKE_COMMAND}
    -D HEDDLE_BUILD=${PROJECT_BINARY_DIR}
    -D HEDDLE_COMPILER=${CMAKE_CXX_COMPILER}
    -D HEDDLE_STRIP=${CMAKE_STRIP}
    -D WORK=${PROJECT_BINARY_DIR}/consumer
    -P ${PROJECT_SOURCE_DIR}/tests/consumer/run.cmake)
  heddle_test(consumer.shared nightly 1800 ${CMAKE_COMMAND}
    -D SOURCE=${PROJECT_SOURCE_DIR}
    -D HEDDLE_COMPILER=${CMAKE_CXX_COMPILER}
    -D HEDDLE_STRIP=${CMAKE_STRIP}
    -D WORK=${PROJECT_BINARY_DIR}/consumer.shared
    -P ${PROJECT_SOURCE_DIR}/tests/consumer/shared.cmake)
endif()

# Sanitizers add symbols of their own to every object.
if(NOT HEDDLE_SANITIZE)
  foreach(isa IN LISTS HEDDLE_ISAS)
    if(TARGET heddle_isa_${isa} AND NOT "${HEDDLE_FLAGS_${isa}}" STREQUAL "")
      add_test(NAME isa_symbols_${isa} COMMAND_EXPAND_LISTS COMMAND
        ${CMAKE_COMMAND} -E env NM=${CMAKE_NM} ${PROJECT_SOURCE_DIR}/scripts/check_isa_symbols.sh ${isa}
        $<TARGET_OBJECTS:heddle_isa_${isa}>)
      set_tests_properties(isa_symbols_${isa} PROPERTIES LABELS quick TIMEOUT 60)
    endif()
  endforeach()
endif()

# A second program with a fault in a kernel (HEDDLE_FAULT), which `heddle check` must find.
if(Python3_FOUND AND TARGET heddle_cli AND NOT CMAKE_CROSSCOMPILING)
  add_executable(heddle_faulty $<TARGET_OBJECTS:heddle_cli>
    "${PROJECT_SOURCE_DIR}/tests/e2e/plant_fault.cpp")
  heddle_target(heddle_faulty)
  target_link_libraries(heddle_faulty PRIVATE heddle_tools heddle edit::edit ${HEDDLE_COMPONENTS})
  heddle_test(e2e.check slow 300 Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/e2e/check_recipes.py ${heddle_program}
    $<TARGET_FILE:heddle_faulty> ${PROJECT_SOURCE_DIR}/recipes)
  # A few of the random recipes that hundreds are made of by hand: sound, and with each fault.
  heddle_test(e2e.campaign slow 300 Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/campaign/recipes.py --heddle ${heddle_program}
    --count 6 --seed 1 --also 145 213 245 281 334 392 449 464 479)  # those were false alarms once
  heddle_test(e2e.faults slow 300 Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/campaign/faults.py --faulty $<TARGET_FILE:heddle_faulty> --each)
endif()
# Tiny models, trained and used through the program.
if(Python3_FOUND AND TARGET heddle_cli)
  heddle_test(e2e.use_models slow 120 Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/e2e/use_models.py ${heddle_program}
    ${PROJECT_BINARY_DIR}/e2e/use_models)
  set_tests_properties(e2e.use_models PROPERTIES FIXTURES_SETUP tiny_models)
  set(inspect Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/pages/inspect.py
    ${heddle_program} ${PROJECT_BINARY_DIR}/e2e/use_models)
  heddle_test(e2e.inspect slow 180 ${inspect} ${PROJECT_BINARY_DIR}/e2e/inspect numbers)
  set_tests_properties(e2e.inspect PROPERTIES FIXTURES_REQUIRED tiny_models)
  heddle_page_test(pages.inspect 180 tiny_models ${inspect} ${PROJECT_BINARY_DIR}/pages/inspect pages)
  # The same numbers from every command, with these models and one more.
  heddle_test(e2e.same_numbers slow 180 Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/e2e/same_numbers.py ${heddle_program}
    ${PROJECT_BINARY_DIR}/e2e/use_models)
  set_tests_properties(e2e.same_numbers PROPERTIES FIXTURES_REQUIRED tiny_models)
endif()
# A model as others publish them, trained further.
if(Python3_FOUND AND TARGET heddle_cli)
  heddle_test(e2e.fine_tune slow 120 Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/e2e/fine_tune.py ${heddle_program}
    ${PROJECT_BINARY_DIR}/e2e/fine_tune)
endif()
# A sanitizer's memory is not ours.
if(Python3_FOUND AND TARGET heddle_cli AND NOT HEDDLE_SANITIZE)
  heddle_test(e2e.process_memory slow 120 Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/e2e/process_memory.py ${heddle_program}
    ${PROJECT_BINARY_DIR}/e2e/process_memory)
  heddle_test(e2e.model_memory slow 120 Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/e2e/model_memory.py ${heddle_program}
    ${PROJECT_BINARY_DIR}/e2e/model_memory)
endif()
# Every option of every command.
if(Python3_FOUND AND TARGET heddle_cli)
  set(options Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/e2e/options.py
    ${heddle_program})
  heddle_test(e2e.options slow 600 ${options} ${PROJECT_BINARY_DIR}/e2e/options)
  # The table on trial: an option that the program ignores must be noticed.
  heddle_test(e2e.options_dropped nightly 3600 ${options} ${PROJECT_BINARY_DIR}/e2e/dropped --drop)
endif()
# Training on several processes; where there is no MPI it is skipped, not passed.
if(Python3_FOUND AND TARGET heddle_cli AND NOT HEDDLE_SANITIZE)
  set(ranks Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/e2e/ranks.py ${heddle_program})
  heddle_test(e2e.ranks slow 120 ${ranks} ${PROJECT_BINARY_DIR}/e2e/ranks few)
  heddle_test(e2e.ranks.all slow 600 ${ranks} ${PROJECT_BINARY_DIR}/e2e/ranks.all all)
  heddle_test(e2e.compare_ranks slow 600 Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/e2e/compare_ranks.py ${heddle_program}
    ${PROJECT_BINARY_DIR}/e2e/compare_ranks)
  set_tests_properties(e2e.ranks e2e.ranks.all e2e.compare_ranks PROPERTIES SKIP_RETURN_CODE 77)
endif()
# What commands print for people.
if(Python3_FOUND AND TARGET heddle_cli)
  heddle_test(e2e.printed slow 120 Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/e2e/printed.py ${heddle_program}
    ${PROJECT_BINARY_DIR}/e2e/printed)
endif()
# Mistakes that people make, and what they are told.
if(Python3_FOUND AND TARGET heddle_cli)
  heddle_test(e2e.mistakes slow 120 Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/e2e/mistakes.py ${heddle_program}
    ${PROJECT_BINARY_DIR}/e2e/mistakes)
endif()
# What `make run` does once everything is built.
if(Python3_FOUND AND TARGET heddle_cli)
  heddle_test(e2e.first_run slow 120 Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/e2e/first_run.py ${heddle_program} ${PROJECT_SOURCE_DIR}
    ${PROJECT_BINARY_DIR}/e2e/first_run)
endif()
# What READMEs and tutorials tell people to type.
if(Python3_FOUND AND TARGET heddle_cli AND PROJECT_IS_TOP_LEVEL AND NOT HEDDLE_SANITIZE
    AND NOT CMAKE_CROSSCOMPILING)
  heddle_test(e2e.documented slow 300 Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/e2e/documented.py ${heddle_program}
    ${PROJECT_BINARY_DIR}/e2e/documented ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  set_property(TEST e2e.documented APPEND PROPERTY ENVIRONMENT CXX=${CMAKE_CXX_COMPILER})
  heddle_test(e2e.package slow 400 Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/e2e/package.py
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${PROJECT_BINARY_DIR}/e2e/package)
  set_tests_properties(e2e.package PROPERTIES SKIP_RETURN_CODE 77)
endif()
# Comparisons: the same for all, killed and resumed, pages that a browser shows.
if(Python3_FOUND AND TARGET heddle_cli)
  set(compare Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/e2e/compare.py
    ${heddle_program} ${PROJECT_BINARY_DIR}/e2e/compare)
  heddle_test(e2e.compare slow 300 ${compare})
  set_tests_properties(e2e.compare PROPERTIES FIXTURES_SETUP comparisons)
  heddle_page_test(pages.compare 180 comparisons ${compare} pages)
endif()
if(Python3_FOUND AND NOT HEDDLE_SANITIZE)
  heddle_test(layers quick 60 Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/check_layers.py)
  heddle_test(checks quick 60 Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/test_checks.py)
  heddle_test(texts quick 60 Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/texts.py)
  heddle_test(chapters quick 60 Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/chapters.py)
  heddle_test(links quick 60 Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/links.py)
  heddle_test(site quick 60 Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/test_site.py)
  heddle_test(mutate quick 120 Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/test_mutate.py)
  if(EXISTS "${PROJECT_SOURCE_DIR}/.git")
    heddle_test(style quick 60 Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/check_style.py)
  endif()
endif()

if(Python3_FOUND AND TARGET heddle_cli)
  heddle_test(e2e.languages quick 120 Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/e2e/languages.py ${heddle_program})
  set(chinese ${PROJECT_BINARY_DIR}/e2e/chinese)
  heddle_test(e2e.languages_screens slow 300 Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/e2e/languages_screens.py ${heddle_program} ${chinese})
  set_tests_properties(e2e.languages_screens PROPERTIES FIXTURES_SETUP chinese_runs)
  heddle_page_test(pages.languages 180 "chinese_runs;lab_page" Python3::Interpreter
    ${PROJECT_SOURCE_DIR}/tests/pages/languages.py ${heddle_program} ${chinese}
    ${PROJECT_BINARY_DIR}/lab.html)
endif()

# What the tests above run (make test).
add_custom_target(test_programs)
foreach(program heddle heddle_mpi unit_tests op_tests cuda_tests reliability_tests heddle_cli heddle_faulty)
  if(TARGET ${program})
    add_dependencies(test_programs ${program})
  endif()
endforeach()

# Side by side, one thread each is faster than two that wait for each other; results are the same.
# (What a test says about threads it sets itself.)
foreach(name reliability unit.exhaustive op.mutants e2e.use_models e2e.check e2e.compare e2e.campaign
    e2e.faults e2e.options e2e.options_dropped e2e.printed e2e.mistakes)
  if(TEST ${name})
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT HEDDLE_THREADS=1)
  endif()
endforeach()

# The longest first, so that threads end together. ctest knows them only from its second run on.
set(cost 100)
foreach(name reliability unit.exhaustive e2e.use_models op.mutants unit e2e.check e2e.compare)
  if(TEST ${name})
    set_tests_properties(${name} PROPERTIES COST ${cost})
    math(EXPR cost "${cost} - 10")
  endif()
endforeach()
