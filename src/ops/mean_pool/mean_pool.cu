// mean_pool on CUDA: a thread per column of a sequence, over its positions in order.
#include "backend/cuda/kernel.cuh"
#include "ops/mean_pool/mean_pool.call.h"

namespace heddle::cuda {

namespace {

// Calls f with the mask's type; without a mask with any.
template <class F>
void for_mask(const Tensor& mask, F f) {
  if (!mask.defined() || mask.dtype() == DType::u8) return f(std::uint8_t{});
  for_index(mask.dtype(), f);
}

template <class M>
__device__ bool counts(const M* mask, std::int64_t i) {
  return mask == nullptr || mask[i] != 0;
}

// How many positions of a sequence count.
template <class M>
__device__ std::int64_t counted(const M* mask, std::int64_t tokens) {
  if (mask == nullptr) return tokens;
  std::int64_t all = 0;
  for (std::int64_t t = 0; t < tokens; ++t) all += mask[t] != 0 ? 1 : 0;
  return all;
}

template <class S, class M>
void mean_pool_as(ops::MeanPoolCall& c) {
  using C = Compute<S>;
  const std::int64_t tokens = c.x.size(1), width = c.x.size(2);
  const S* const x = in<S>(c.x);
  const M* const mask = in<M>(c.mask);
  S* const y = out<S>(c.y);
  each("mean_pool", stream_of(c.y.device()), c.y.elements(), [=] __device__(std::int64_t i) {
    const std::int64_t first = i / width * tokens;
    const std::int64_t column = i % width;
    C sum = 0;
    std::int64_t all = 0;
    for (std::int64_t t = first; t < first + tokens; ++t)
      if (counts(mask, t)) {
        sum += wide(x[t * width + column]);
        ++all;
      }
    y[i] = narrow<S>(all == 0 ? C{0} : sum / static_cast<C>(all));
  });
}

// A thread per column again: it counts once for all positions of the sequence.
template <class S, class M>
void mean_pool_backward_as(ops::MeanPoolBackwardCall& c) {
  using C = Compute<S>;
  const std::int64_t tokens = c.dx.size(1), width = c.dx.size(2);
  const M* const mask = in<M>(c.mask);
  const S* const dy = in<S>(c.dy);
  S* const dx = out<S>(c.dx);
  each("mean_pool, backward", stream_of(c.dx.device()), c.dy.elements(),
       [=] __device__(std::int64_t i) {
         const std::int64_t first = i / width * tokens;
         const std::int64_t column = i % width;
         const std::int64_t all = counted(mask == nullptr ? mask : mask + first, tokens);
         const C share = all == 0 ? C{0} : wide(dy[i]) / static_cast<C>(all);
         for (std::int64_t t = first; t < first + tokens; ++t)
           dx[t * width + column] = narrow<S>(counts(mask, t) ? share : C{0});
       });
}

void run_mean_pool(ops::MeanPoolCall& c) {
  for_storage(c.x.dtype(), [&](auto s) {
    for_mask(c.mask, [&](auto m) { mean_pool_as<decltype(s), decltype(m)>(c); });
  });
}

void run_mean_pool_backward(ops::MeanPoolBackwardCall& c) {
  for_storage(c.dx.dtype(), [&](auto s) {
    for_mask(c.mask, [&](auto m) { mean_pool_backward_as<decltype(s), decltype(m)>(c); });
  });
}

}  // namespace

void add_mean_pool_routines() {
  add<ops::MeanPoolCall>({run_mean_pool});
  add<ops::MeanPoolBackwardCall>({run_mean_pool_backward});
}

}  // namespace heddle::cuda
