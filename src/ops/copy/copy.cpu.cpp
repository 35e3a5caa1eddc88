// The strided copy on the CPU.
#include "backend/copy.call.h"
#include "backend/cpu/kernels.h"
#include "ops/copy/copy.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

void run_copy(backend::CopyCall& c) {
  CopyArgs args;
  args.src = c.src.raw();
  args.dst = c.dst.mutable_raw();
  args.src_dtype = c.src.dtype();
  args.dst_dtype = c.dst.dtype();
  args.shape = c.dst.shape();
  args.src_strides = c.src.strides();
  args.dst_strides = c.dst.strides();
  args.accumulate = c.accumulate;
  kernels<CopyKernels>().copy(args);
}

}  // namespace

void add_copy_routines() { add<backend::CopyCall>({run_copy}); }

}  // namespace heddle::cpu
