# src/ops/ops.def is the only list of ops. From each line HEDDLE_OP(norm, Norm) follow the
# kernels to compile, the table that finds them, the public header and the test; HEDDLE_COMPOSITE is
# an op without kernels, made of other ops. A file that an op lacks stops the configuration; a kernel
# that it lacks stops the build.

set(HEDDLE_GENERATED "${PROJECT_BINARY_DIR}/generated")
set(HEDDLE_OPS_DEF "${PROJECT_SOURCE_DIR}/src/ops/ops.def")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${HEDDLE_OPS_DEF}")

set(HEDDLE_OPS "")              # names, in the order of ops.def
set(HEDDLE_OP_SOURCES "")       # src/ops/<op>/*.cpp without the test
set(HEDDLE_OP_TESTS "")         # src/ops/<op>/test.cpp
set(HEDDLE_KERNEL_SOURCES "")   # one generated unit per op, compiled for each of HEDDLE_KERNEL_ISAS
set(HEDDLE_OP_HEADERS "")       # src/ops/<op>/<op>.h

set(small_kernels "")
set(kernel_includes "")
set(kernel_declarations "")
set(kernel_definitions "")
set(f64_declarations "")
set(plain_f64_declarations "")  # of tables that every program has, at one level
set(f64_definitions "")
set(f64_opening "")
set(gradient_ops "")            # whose gradients have routines of their own
set(training_ops "")            # that only training calls
set(op_includes "")
set(op_names "")

# The body of a function that returns `table` as compiled for the highest of the levels (given lowest
# first, generic among them) that `isa` has.
function(heddle_highest_level table out)
  set(body "")
  foreach(level IN LISTS ARGN)
    if(level STREQUAL "generic")
      string(PREPEND body "  return generic::${table};\n")
    else()
      string(PREPEND body "  if (isa >= Isa::${level}) return ${level}::${table};\n")
    endif()
  endforeach()
  set(${out} "${body}" PARENT_SCOPE)
endfunction()

if(NOT EXISTS "${HEDDLE_OPS_DEF}")
  message(FATAL_ERROR "src/ops/ops.def, the list of ops, is missing")
endif()
file(STRINGS "${HEDDLE_OPS_DEF}" lines)
foreach(line IN LISTS lines)
  string(STRIP "${line}" line)
  if(line STREQUAL "" OR line MATCHES "^//")
    continue()
  endif()
  if(NOT line MATCHES "^HEDDLE_(OP|COMPOSITE)\\(([a-z0-9_]+), *([A-Za-z0-9]+)(, *([a-z0-9_ ]+))?\\)( *//.*)?$")
    message(FATAL_ERROR "src/ops/ops.def: expected HEDDLE_OP(snake_name, PascalName, words) or "
      "HEDDLE_COMPOSITE(...), got: ${line}")
  endif()
  set(kind "${CMAKE_MATCH_1}")
  set(op "${CMAKE_MATCH_2}")
  set(Op "${CMAKE_MATCH_3}")
  string(REPLACE " " ";" words "${CMAKE_MATCH_5}")
  foreach(word IN LISTS words)
    if(NOT word MATCHES "^(gradient|only_gradient|training|f64|plain_f64)$")
      message(FATAL_ERROR "src/ops/ops.def: ${op}: gradient, only_gradient, training, f64 or plain_f64, got: ${word}")
    endif()
  endforeach()
  if(op IN_LIST HEDDLE_OPS)
    message(FATAL_ERROR "src/ops/ops.def: ${op} is listed twice")
  endif()
  set(folder "${PROJECT_SOURCE_DIR}/src/ops/${op}")
  set(files ${op}.h ${op}.cpp test.cpp)
  if(kind STREQUAL "OP")
    list(APPEND files ${op}.kernels.h ${op}.cpu.h)
  endif()
  foreach(file ${files})
    if(NOT EXISTS "${folder}/${file}")
      message(FATAL_ERROR "op ${op} is listed in src/ops/ops.def, but src/ops/${op}/${file} is missing")
    endif()
  endforeach()

  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "/test[^/]*\\.cpp$")
  heddle_keep_architecture(sources)
  list(APPEND HEDDLE_OPS ${op})
  list(APPEND HEDDLE_OP_SOURCES ${sources})
  list(APPEND HEDDLE_OP_HEADERS "${folder}/${op}.h")
  list(APPEND HEDDLE_OP_TESTS "${folder}/test.cpp")

  file(CONFIGURE OUTPUT "${HEDDLE_GENERATED}/heddle/ops/${op}.h" @ONLY CONTENT [[
#pragma once
#include "ops/@op@/@op@.h"
]])
  string(APPEND op_includes "#include \"heddle/ops/${op}.h\"\n")
  string(APPEND op_names "\"${op}\",\n")
  if(kind STREQUAL "COMPOSITE")
    continue()
  endif()

  # One table, or one for the gradient as well: "type name".
  set(tables "${Op}Kernels ${op}_kernels")
  if("only_gradient" IN_LIST words)
    set(tables "")
  endif()
  if("gradient" IN_LIST words OR "only_gradient" IN_LIST words)
    list(APPEND tables "${Op}GradientKernels ${op}_gradient_kernels")
    list(APPEND gradient_ops ${op})
  endif()
  if("training" IN_LIST words)
    list(APPEND training_ops ${op})
  endif()
  # The declarations come first: they give tables external linkage and the type that is expected.
  set(declarations "")
  foreach(table IN LISTS tables)
    string(APPEND declarations "extern const ${table};\n")
  endforeach()
  set(f64_declaration "")
  if("f64" IN_LIST words OR "plain_f64" IN_LIST words)
    set(f64_declaration "extern const ${Op}Kernels ${op}_f64_kernels;\n")
    string(APPEND f64_declarations "${f64_declaration}")
    set(without "")
    if("plain_f64" IN_LIST words)
      string(APPEND plain_f64_declarations "${f64_declaration}")
      set(without "  if (!has_f64()) return generic::${op}_f64_kernels;\n")
    endif()
    string(APPEND kernel_definitions "
template <>
const ${Op}Kernels& f64_kernels<${Op}Kernels>(Isa isa) {
${without}  open_f64();
  return f64_tables<${Op}Kernels>(isa);
}
")
    heddle_highest_level("${op}_f64_kernels" choice ${HEDDLE_F64_ISAS})
    string(APPEND f64_definitions "
const ${Op}Kernels& ${op}_f64([[maybe_unused]] Isa isa) {
${choice}}
")
    string(APPEND f64_opening "  f64_tables<${Op}Kernels> = ${op}_f64;\n")
  endif()
  set(unit "${HEDDLE_GENERATED}/kernels/${op}.cpp")
  file(CONFIGURE OUTPUT "${unit}" @ONLY CONTENT [[
#include "ops/@op@/@op@.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
@declarations@#if HEDDLE_F64  // not where a level adds nothing to f64
@f64_declaration@#endif
}

#include "ops/@op@/@op@.cpu.h"
]])
  list(APPEND HEDDLE_KERNEL_SOURCES "${unit}")
  file(GLOB_RECURSE kernel_files CONFIGURE_DEPENDS "${folder}/*.cpu.h")
  list(LENGTH kernel_files kernel_file_count)
  if(kernel_file_count EQUAL 1)
    list(APPEND small_kernels "${unit}")
  endif()

  string(APPEND kernel_includes "#include \"ops/${op}/${op}.kernels.h\"\n")
  string(APPEND kernel_declarations "${declarations}")
  foreach(table IN LISTS tables)
    string(REPLACE " " ";" table "${table}")
    list(POP_FRONT table Kernels kernels)
    heddle_highest_level("${kernels}" choice ${HEDDLE_KERNEL_ISAS})
    string(APPEND kernel_definitions "
template <>
const ${Kernels}& native_kernels<${Kernels}>([[maybe_unused]] Isa isa) {
${choice}}
")
  endforeach()
endforeach()

# Of copies between rare types all levels use the baseline's (ops/copy/copy.cpu.h), which is compiled
# for size otherwise.
if(NOT HEDDLE_SANITIZE)
  set_source_files_properties("${HEDDLE_GENERATED}/kernels/copy.cpp" PROPERTIES COMPILE_OPTIONS -O3)
  list(REMOVE_ITEM small_kernels "${HEDDLE_GENERATED}/kernels/copy.cpp")
endif()

# Most kernels take less time to compile than Highway's headers take to read, so they are compiled
# together; an op whose kernels fill several files stays alone.
if(HEDDLE_UNITY)
  heddle_unity_groups(kernels 5 ${small_kernels})
endif()

# Kernels of ops stop at avx512_bf16: only products and attention use what amx adds, through pointers.
set(namespaces "")
foreach(isa IN LISTS HEDDLE_KERNEL_ISAS)
  string(APPEND namespaces "namespace ${isa} {\n${kernel_declarations}}  // namespace ${isa}\n")
endforeach()
string(APPEND namespaces "namespace generic {\n${plain_f64_declarations}}  // namespace generic\n")
file(CONFIGURE OUTPUT "${HEDDLE_GENERATED}/ops/kernel_tables.cpp" @ONLY CONTENT [[
// Generated from src/ops/ops.def: the kernels of every op for an instruction set.
#include "backend/cpu/f64.h"
#include "backend/cpu/kernels.h"
@kernel_includes@
namespace heddle::cpu {

@namespaces@@kernel_definitions@
}  // namespace heddle::cpu
]])

# Kernels for f64, behind a constant that linkers are asked for (backend/cpu/f64.h).
set(namespaces "")
foreach(isa IN LISTS HEDDLE_F64_ISAS)
  string(APPEND namespaces "namespace ${isa} {\n${f64_declarations}}  // namespace ${isa}\n")
endforeach()
file(CONFIGURE OUTPUT "${HEDDLE_GENERATED}/ops/f64_component.cpp" @ONLY CONTENT [[
// Generated from src/ops/ops.def: the kernels for f64 of ops that have a table for them.
#include "backend/cpu/f64.h"
@kernel_includes@
namespace heddle::cpu {

@namespaces@
namespace {
@f64_definitions@
void open() {
@f64_opening@  add_f64_products();
}

}  // namespace
}  // namespace heddle::cpu

const heddle::cpu::F64Component heddle_f64_component = {.open = heddle::cpu::open};
]])

# Every <name>.cpu.cpp says which calls it has routines for; those that only training needs are apart.
file(GLOB routine_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/ops/*/*.cpu.cpp")
set(routine_declarations "")
set(routine_calls "")
set(training_calls "")
foreach(file IN LISTS routine_files)
  get_filename_component(name "${file}" NAME)
  string(REPLACE ".cpu.cpp" "" name "${name}")
  string(APPEND routine_declarations "void add_${name}_routines();\n")
  if(name IN_LIST training_ops)
    string(APPEND training_calls "  add_${name}_routines();\n")
  else()
    string(APPEND routine_calls "  add_${name}_routines();\n")
  endif()
endforeach()
foreach(name IN LISTS gradient_ops)
  string(APPEND routine_declarations "void add_${name}_gradient_routines();\n")
  string(APPEND training_calls "  add_${name}_gradient_routines();\n")
endforeach()
file(CONFIGURE OUTPUT "${HEDDLE_GENERATED}/ops/cpu_routines.cpp" @ONLY CONTENT [[
// Generated by cmake/ops.cmake from src/ops/*/*.cpu.cpp.
#include "backend/cpu/routines.h"

namespace heddle::cpu {

@routine_declarations@
void add_routines() {
@routine_calls@}

void add_training_routines() {
@training_calls@}

}  // namespace heddle::cpu
]])
file(CONFIGURE OUTPUT "${HEDDLE_GENERATED}/heddle/ops.h" @ONLY CONTENT [[
// Every op. Generated from src/ops/ops.def.
#pragma once

@op_includes@]])
file(CONFIGURE OUTPUT "${HEDDLE_GENERATED}/op_names.inc" @ONLY CONTENT "@op_names@")
