// sgd on CUDA.
#include <vector>

#include "ops/sgd/sgd.call.h"
#include "ops/support/update.cuh"

namespace heddle::cuda {

namespace {

template <class T, bool kMomentum>
struct SgdUpdate {
  T lr, momentum;
  bool nesterov;

  explicit SgdUpdate(const ops::SgdOptions& o)
      : lr(static_cast<T>(o.lr)), momentum(static_cast<T>(o.momentum)), nesterov(o.nesterov) {}

  // decay: weight_decay
  __device__ void operator()(T grad, T decay, T& w, T& b, T&) const {
    const T g = grad + decay * w;
    if constexpr (kMomentum) {
      b = momentum * b + g;
      w -= lr * (nesterov ? g + momentum * b : b);
    } else {
      w -= lr * g;
    }
  }
};

template <class T, bool kMomentum>
void sgd_as(ops::SgdCall& c) {
  using Update = SgdUpdate<T, kMomentum>;
  cudaStream_t const stream = stream_of(c.output().device());
  Updates<T, kMomentum ? 1 : 0, Update> all("sgd", Update(c.options), c.options.grad_scale, stream);
  std::vector<FollowingCopy> copies;
  copies.reserve(c.parameters.size());
  for (std::size_t i = 0; i < c.parameters.size(); ++i) {
    ops::SgdParameter& p = c.parameters[i];
    if (p.weight.dtype() != DTypeOf<T>::value || p.buffer.defined() != kMomentum) continue;
    const FollowingCopy& copy = copies.emplace_back(p.weight);
    all.add({out<T>(p.weight), in<T>(c.grads[i]), out<T>(p.buffer), nullptr, copy.data(),
             p.weight.elements(), 0, static_cast<T>(p.weight_decay)});
  }
  all.run();
  for (const FollowingCopy& copy : copies) copy.written();
}

void run_sgd(ops::SgdCall& c) {
  sgd_as<float, false>(c);
  sgd_as<float, true>(c);
  sgd_as<double, false>(c);
  sgd_as<double, true>(c);
}

}  // namespace

void add_sgd_routines() { add<ops::SgdCall>({run_sgd}); }

}  // namespace heddle::cuda
