# One binary runs on any x86-64 machine: only the files named here are compiled for more than the
# baseline, each level as an object library `heddle_isa_<level>`. What they define is reached through
# function tables, after asking the CPU; scripts/check_isa_symbols.sh sees to it that nothing else
# of them can be.

# Levels that kernels of ops are compiled for, then those that only files named for them use.
set(HEDDLE_KERNEL_ISAS generic avx2 avx512 avx512_bf16)
set(HEDDLE_ISAS ${HEDDLE_KERNEL_ISAS} amx)
set(HEDDLE_F64_ISAS generic avx2 avx512)  # that have kernels for f64

# aes, pclmul and the rest: what Highway's AVX2 and AVX3 targets assume. Every CPU with AVX2 has them.
set(HEDDLE_FLAGS_generic "")
set(HEDDLE_FLAGS_avx2 -mavx2 -mfma -mbmi -mbmi2 -mf16c -mlzcnt -mmovbe -maes -mpclmul)
set(HEDDLE_FLAGS_avx512 ${HEDDLE_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd)
set(HEDDLE_FLAGS_avx512_bf16 ${HEDDLE_FLAGS_avx512} -mavx512bf16)
set(HEDDLE_FLAGS_amx ${HEDDLE_FLAGS_avx512_bf16} -mamx-tile -mamx-bf16)

# The level a hand-written file is for, by its name; empty for a file without one.
function(heddle_isa_of_file path out)
  set(isa "")
  if(path MATCHES "/backend/cpu/(gemm|probe)/(.*)$")
    set(name "${CMAKE_MATCH_2}")
    if(name MATCHES "(^|[/_.])amx([/_.]|$)")
      set(isa amx)
    elseif(name MATCHES "avx512_bf16")
      set(isa avx512_bf16)
    elseif(name MATCHES "avx512")
      set(isa avx512)
    elseif(name MATCHES "avx2")
      set(isa avx2)
    elseif(name MATCHES "generic")
      set(isa generic)
    endif()
  elseif(path MATCHES "/ops/[^/]+/amx/")
    set(isa amx)
  endif()
  set(${out} "${isa}" PARENT_SCOPE)
endfunction()

# Whether the machine that builds can run a level.
function(heddle_runs_here isa out)
  set(flag_avx2 avx2)
  set(flag_avx512 avx512f)
  set(flag_avx512_bf16 avx512_bf16)
  set(flag_amx amx_bf16)
  set(runs TRUE)
  if(DEFINED flag_${isa} AND EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
    if(NOT " ${flags} " MATCHES " ${flag_${isa}} ")
      set(runs FALSE)
    endif()
  endif()
  set(${out} ${runs} PARENT_SCOPE)
endfunction()

# heddle_isa_library(<isa> <sources>...): does nothing without sources.
function(heddle_isa_library isa)
  if(NOT ARGN)
    return()
  endif()
  set(target heddle_isa_${isa})
  add_library(${target} OBJECT ${ARGN})
  heddle_target(${target})
  heddle_sections(${target})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include"
    "${PROJECT_SOURCE_DIR}/src" "${HEDDLE_GENERATED}")
  # -O3 in every build type: kernels that are not inlined are hundreds of times slower, and what the
  # compiler leaves out of line is shared with code for other machines. Sanitized kernels would take
  # minutes each to compile with -O3. The baseline is for machines from before 2013: there the size
  # counts, which every program carries, but for copies, which other levels leave to it.
  set(optimise -O3)
  if(isa STREQUAL "generic")
    set(optimise -Os)
  endif()
  if(HEDDLE_SANITIZE)
    set(optimise -O1)
    # No test here runs kernels that this machine cannot, so sanitizers have nothing to see in them,
    # and sanitized kernels are slow to compile.
    heddle_runs_here(${isa} runs)
    if(NOT runs)
      set_target_properties(${target} PROPERTIES HEDDLE_UNSANITIZED ON)
    endif()
  endif()
  target_compile_options(${target} PRIVATE ${HEDDLE_FLAGS_${isa}} ${optimise})
  # No exception passes through a kernel, so users need no tables of how to leave one.
  target_compile_options(${target} PRIVATE
    $<$<CONFIG:Release>:-fno-exceptions -fno-asynchronous-unwind-tables -fno-unwind-tables>)
  # Highway compiles for exactly one target. Its emulation is asked for as the generic target (g++ 12
  # gets its scalar one all the same, being on Highway's list of compilers that break the emulation):
  # it has vectors of 16 bytes, which the compiler maps to SSE2.
  set(f64 0)
  if(isa IN_LIST HEDDLE_F64_ISAS)
    set(f64 1)
  endif()
  target_compile_definitions(${target} PRIVATE HEDDLE_ISA=${isa} HEDDLE_F64=${f64}
    $<IF:$<STREQUAL:${isa},generic>,HWY_COMPILE_ONLY_EMU128,HWY_COMPILE_ONLY_STATIC>)
  # Hidden, for kernels are nobody's but the library's own, also where that is a shared one.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden)
  if(HEDDLE_UNITY)  # of the sources that ops.cmake has put into groups
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endif()
endfunction()
