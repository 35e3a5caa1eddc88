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
set(op_includes "")
set(op_names "")

if(NOT EXISTS "${HEDDLE_OPS_DEF}")
  message(FATAL_ERROR "src/ops/ops.def, the list of ops, is missing")
endif()
file(STRINGS "${HEDDLE_OPS_DEF}" lines)
foreach(line IN LISTS lines)
  string(STRIP "${line}" line)
  if(line STREQUAL "" OR line MATCHES "^//")
    continue()
  endif()
  if(NOT line MATCHES "^HEDDLE_(OP|COMPOSITE)\\(([a-z0-9_]+), *([A-Za-z0-9]+)\\)( *//.*)?$")
    message(FATAL_ERROR "src/ops/ops.def: expected HEDDLE_OP(snake_name, PascalName) or "
      "HEDDLE_COMPOSITE(...), got: ${line}")
  endif()
  set(kind "${CMAKE_MATCH_1}")
  set(op "${CMAKE_MATCH_2}")
  set(Op "${CMAKE_MATCH_3}")
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

  # The declaration comes first: it gives the table external linkage and the type that is expected.
  set(unit "${HEDDLE_GENERATED}/kernels/${op}.cpp")
  file(CONFIGURE OUTPUT "${unit}" @ONLY CONTENT [[
#include "ops/@op@/@op@.kernels.h"

namespace heddle::cpu::HEDDLE_ISA {
extern const @Op@Kernels @op@_kernels;
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
  string(APPEND kernel_declarations "extern const ${Op}Kernels ${op}_kernels;\n")
  string(APPEND kernel_definitions "
template <>
const ${Op}Kernels& native_kernels<${Op}Kernels>(Isa isa) {
  if (isa >= Isa::avx512_bf16) return avx512_bf16::${op}_kernels;
  if (isa == Isa::avx512) return avx512::${op}_kernels;
  return isa == Isa::avx2 ? avx2::${op}_kernels : generic::${op}_kernels;
}
")
endforeach()

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
file(CONFIGURE OUTPUT "${HEDDLE_GENERATED}/ops/kernel_tables.cpp" @ONLY CONTENT [[
// Generated from src/ops/ops.def: the kernels of every op for an instruction set.
#include "backend/cpu/kernels.h"
@kernel_includes@
namespace heddle::cpu {

@namespaces@@kernel_definitions@
}  // namespace heddle::cpu
]])
# Every <name>.cpu.cpp says which calls it has routines for.
file(GLOB routine_files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/ops/*/*.cpu.cpp")
set(routine_declarations "")
set(routine_calls "")
foreach(file IN LISTS routine_files)
  get_filename_component(name "${file}" NAME)
  string(REPLACE ".cpu.cpp" "" name "${name}")
  string(APPEND routine_declarations "void add_${name}_routines();\n")
  string(APPEND routine_calls "  add_${name}_routines();\n")
endforeach()
file(CONFIGURE OUTPUT "${HEDDLE_GENERATED}/ops/cpu_routines.cpp" @ONLY CONTENT [[
// Generated by cmake/ops.cmake from src/ops/*/*.cpu.cpp.
#include "backend/cpu/routines.h"

namespace heddle::cpu {

@routine_declarations@
void add_routines() {
@routine_calls@}

}  // namespace heddle::cpu
]])
file(CONFIGURE OUTPUT "${HEDDLE_GENERATED}/heddle/ops.h" @ONLY CONTENT [[
// Every op. Generated from src/ops/ops.def.
#pragma once

@op_includes@]])
file(CONFIGURE OUTPUT "${HEDDLE_GENERATED}/op_names.inc" @ONLY CONTENT "@op_names@")
