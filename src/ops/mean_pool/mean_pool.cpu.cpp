// mean_pool on the CPU.
#include "backend/cpu/kernels.h"
#include "ops/mean_pool/mean_pool.call.h"
#include "ops/mean_pool/mean_pool.kernels.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

DType mask_dtype(const Tensor& mask) { return mask.defined() ? mask.dtype() : DType::u8; }

void run_mean_pool(ops::MeanPoolCall& c) {
  kernels<MeanPoolKernels>().forward({.dtype = c.x.dtype(),
                                      .mask_dtype = mask_dtype(c.mask),
                                      .batch = c.x.size(0),
                                      .steps = c.x.size(1),
                                      .columns = c.x.size(2),
                                      .x = c.x.raw(),
                                      .mask = raw_or_null(c.mask),
                                      .y = c.y.mutable_raw()});
}

void run_mean_pool_backward(ops::MeanPoolBackwardCall& c) {
  kernels<MeanPoolGradientKernels>().backward({.dtype = c.dx.dtype(),
                                               .mask_dtype = mask_dtype(c.mask),
                                               .batch = c.dx.size(0),
                                               .steps = c.dx.size(1),
                                               .columns = c.dx.size(2),
                                               .mask = raw_or_null(c.mask),
                                               .dy = c.dy.raw(),
                                               .dx = c.dx.mutable_raw()});
}

}  // namespace

void add_mean_pool_routines() { add<ops::MeanPoolCall>({run_mean_pool}); }

void add_mean_pool_gradient_routines() { add<ops::MeanPoolBackwardCall>({run_mean_pool_backward}); }

}  // namespace heddle::cpu
