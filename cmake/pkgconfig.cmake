# heddle.pc and heddle-cuda.pc: for programs that are not built by CMake. They find themselves, wherever
# the prefix is moved to.
set(HEDDLE_PKGCONFIG_DIR "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH HEDDLE_PC_PREFIX "/prefix/${HEDDLE_PKGCONFIG_DIR}" "/prefix")

# An archive says nothing of what it needs, so that everybody who links it must name it; a shared
# library has it inside.
# Its kernels for f64 are asked for by name; who wants none: pkg-config --define-variable=f64= ...
if(BUILD_SHARED_LIBS)
  set(HEDDLE_PC_PRIVATE ".private")
  set(HEDDLE_PC_F64 "")
else()
  set(HEDDLE_PC_PRIVATE "")
  set(HEDDLE_PC_F64 "-Wl,-u,heddle_f64_component")
endif()
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/heddle.pc" @ONLY CONTENT
[[prefix=${pcfiledir}/@HEDDLE_PC_PREFIX@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
f64=@HEDDLE_PC_F64@

Name: heddle
Description: @PROJECT_DESCRIPTION@ (compile with -std=c++20)
Version: @PROJECT_VERSION@
Requires@HEDDLE_PC_PRIVATE@: zlib libpng libjpeg libutf8proc libpcre2-8
Cflags: -I${includedir}
Libs: ${f64} -L${libdir} -lheddle -pthread
]])
set(pc_files "${PROJECT_BINARY_DIR}/heddle.pc")

if(HEDDLE_CUDA_ENABLED)
  get_target_property(HEDDLE_PC_CUDART CUDA::cudart_static IMPORTED_LOCATION)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/heddle-cuda.pc" @ONLY CONTENT
[[prefix=${pcfiledir}/@HEDDLE_PC_PREFIX@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@

Name: heddle-cuda
Description: GPUs for programs that use heddle
Version: @PROJECT_VERSION@
Requires: heddle = @PROJECT_VERSION@
Libs: -Wl,-u,heddle_cuda_component -L${libdir} -lheddle_cuda @HEDDLE_PC_CUDART@ -ldl -lrt -pthread
]])
  list(APPEND pc_files "${PROJECT_BINARY_DIR}/heddle-cuda.pc")
endif()
install(FILES ${pc_files} DESTINATION "${HEDDLE_PKGCONFIG_DIR}")
