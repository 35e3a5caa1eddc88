// The kernels of attention for sm_90a, as attention.cu launches them: bf16, heads 64 or 128 wide, a
// plain softmax, with or without dropout.
#pragma once

#include <cuda_runtime_api.h>

#include "ops/attention/cuda/wgmma_problem.h"

namespace heddle::cuda::attention {

// wgmma_kept.cu: with dropout, before either of them.
void wgmma_draw(const WgmmaForward& p, cudaStream_t stream);
void wgmma_draw(const WgmmaBackward& p, cudaStream_t stream);

// wgmma_forward.cu, wgmma_backward.cu
void wgmma_forward(const WgmmaForward& p, int multiprocessors, cudaStream_t stream);
void wgmma_backward(const WgmmaBackward& p, cudaStream_t stream);

// Passes before and after them (wgmma_passes.cu): spans of tiles, and counters at 0; in the
// backward pass also what is known of rows in padded form, and dq out of the order of accumulators.
void wgmma_spans(const WgmmaForward& p, cudaStream_t stream);
void wgmma_before_backward(const WgmmaBackward& p, cudaStream_t stream);
void wgmma_put_dq(const WgmmaBackward& p, cudaStream_t stream);

}  // namespace heddle::cuda::attention
