# One binary runs on any machine of its architecture: only the files named here are compiled for more
# than the baseline, each level as an object library `heddle_isa_<level>`. What they define is reached
# through function tables, after asking the CPU; scripts/check_isa_symbols.sh sees to it that nothing
# else of them can be.
if(CMAKE_CXX_BYTE_ORDER STREQUAL "BIG_ENDIAN")
  message(FATAL_ERROR "Heddle is written for little-endian machines (its files and its bf16 are read as they "
    "lie in memory); ${CMAKE_SYSTEM_PROCESSOR} is big-endian.")
endif()

# The architecture, as files are named for it (heddle_architecture_of_file).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(HEDDLE_ARCHITECTURE x86_64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  set(HEDDLE_ARCHITECTURE arm64)
else()
  set(HEDDLE_ARCHITECTURE other)
  message(STATUS "Kernels for ${CMAKE_SYSTEM_PROCESSOR}: the generic level alone, which is slow")
endif()

# HEDDLE_KERNEL_ISAS: levels that kernels of ops are compiled for, the lowest first. HEDDLE_ISAS: then
# those that only files named for them use. HEDDLE_F64_ISAS: those that have kernels for f64. All are
# members of Isa (backend/cpu/isa.h).
if(HEDDLE_ARCHITECTURE STREQUAL "x86_64")
  set(HEDDLE_KERNEL_ISAS generic avx2 avx512 avx512_bf16)
  set(HEDDLE_ISAS ${HEDDLE_KERNEL_ISAS} amx)
  set(HEDDLE_F64_ISAS generic avx2 avx512)
  # aes, pclmul and the rest: what Highway's AVX2 and AVX3 targets assume. Every CPU with AVX2 has them.
  set(HEDDLE_FLAGS_avx2 -mavx2 -mfma -mbmi -mbmi2 -mf16c -mlzcnt -mmovbe -maes -mpclmul)
  set(HEDDLE_FLAGS_avx512 ${HEDDLE_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd)
  set(HEDDLE_FLAGS_avx512_bf16 ${HEDDLE_FLAGS_avx512} -mavx512bf16)
  set(HEDDLE_FLAGS_amx ${HEDDLE_FLAGS_avx512_bf16} -mamx-tile -mamx-bf16)
elseif(HEDDLE_ARCHITECTURE STREQUAL "arm64")
  set(HEDDLE_KERNEL_ISAS generic neon neon_bf16)
  set(HEDDLE_ISAS ${HEDDLE_KERNEL_ISAS})
  set(HEDDLE_F64_ISAS generic neon)
  set(HEDDLE_FLAGS_neon "")  # part of the baseline
  set(HEDDLE_FLAGS_neon_bf16 -march=armv8.2-a+bf16)
else()
  set(HEDDLE_KERNEL_ISAS generic)
  set(HEDDLE_ISAS generic)
  set(HEDDLE_F64_ISAS generic)
endif()
set(HEDDLE_FLAGS_generic "")

if(NOT HEDDLE_ARCHITECTURE STREQUAL "x86_64")
  # As on x86-64, whose baseline has no fused multiply-add and whose char has a sign: the same source
  # computes the same. Kernels ask for fused ones by name.
  target_compile_options(heddle_compile_options INTERFACE -ffp-contract=off -fsigned-char)
endif()

# The architecture a file is for, by its name; empty: any.
function(heddle_architecture_of_file path out)
  set(architecture "")
  if(path MATCHES "[/_](x86_64|arm64|other)\\.cpp$")
    set(architecture "${CMAKE_MATCH_1}")
  elseif(path MATCHES "/backend/cpu/(tiles|gemm/amx)/|/ops/[^/]+/(amx/|test_tiles)")
    set(architecture x86_64)  # AMX, its state, and tests of both
  endif()
  set(${out} "${architecture}" PARENT_SCOPE)
endfunction()

# heddle_keep_architecture(<list>): without the files for other architectures and their levels.
function(heddle_keep_architecture list)
  set(kept "")
  foreach(path IN LISTS ${list})
    heddle_architecture_of_file("${path}" architecture)
    heddle_isa_of_file("${path}" isa)
    if((NOT architecture OR architecture STREQUAL HEDDLE_ARCHITECTURE) AND (NOT isa OR isa IN_LIST HEDDLE_ISAS))
      list(APPEND kept "${path}")
    endif()
  endforeach()
  set(${list} "${kept}" PARENT_SCOPE)
endfunction()

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
    elseif(name MATCHES "neon_bf16")
      set(isa neon_bf16)
    elseif(name MATCHES "neon")
      set(isa neon)
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
  set(flag_neon_bf16 bf16)
  set(runs TRUE)
  if(DEFINED flag_${isa} AND EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo flags REGEX "^(flags|Features)" LIMIT_COUNT 1)
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
  if(HEDDLE_ARCHITECTURE STREQUAL "arm64")
    # Else Highway asks g++ for instructions of cryptography, which not every machine has: for its choice
    # at run time, which it makes by this header and which nobody here wants.
    target_compile_definitions(${target} PRIVATE TOOLCHAIN_MISS_SYS_AUXV_H)
    # g++ moves loads up before it hands out registers, and then has too few of them for a tile.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-schedule-insns>)
  endif()
  # Hidden, for kernels are nobody's but the library's own, also where that is a shared one.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden)
  if(HEDDLE_UNITY)  # of the sources that ops.cmake has put into groups
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endif()
endfunction()
