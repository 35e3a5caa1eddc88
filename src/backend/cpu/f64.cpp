#include "backend/cpu/f64.h"

#include "heddle/error.h"

// Null in a program that was linked without it.
// NOLINTNEXTLINE(readability-redundant-declaration): here, and only here, the reference is weak
extern "C" [[gnu::weak]] const heddle::cpu::F64Component heddle_f64_component;

namespace heddle::cpu {

bool has_f64() { return &heddle_f64_component != nullptr; }

void open_f64() {
  static const bool opened = (heddle_f64_component.open(), true);
  (void)opened;
}

void check_f64(const char* op, DType dtype) {
  if (dtype != DType::f64 || has_f64()) return;
  fail(ErrorCode::unsupported, op, "this program was linked without kernels for f64",
       "f32 or bf16; or the program's property HEDDLE_F64 left ON (CMake), or the linker's option "
       "-u heddle_f64_component",
       "f64");
}

}  // namespace heddle::cpu
