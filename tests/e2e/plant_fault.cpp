// Linked into a second program `heddle`: its layer norm forgets the residual stream's gradient, and
// `heddle check` must say so.
#include "backend/cpu/kernels.h"
#include "ops/layer_norm/layer_norm.kernels.h"

namespace heddle {
namespace {

using K = cpu::LayerNormKernels;

void faulty_backward(const cpu::NormBackwardArgs& args) noexcept {
  cpu::NormBackwardArgs changed = args;
  changed.dsum = nullptr;
  cpu::native_kernels<K>(cpu::current_isa()).backward(changed);
}

const bool kPlanted = [] {
  static K table;
  table = cpu::native_kernels<K>(cpu::Isa::generic);
  table.backward = faulty_backward;
  cpu::planted_kernels<K> = &table;
  return true;
}();

}  // namespace
}  // namespace heddle
