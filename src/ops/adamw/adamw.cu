// adamw on CUDA: each of the four arrays is read once and three are written once, together with the
// copies of weights that matrix products read.
#include <cmath>
#include <vector>

#include "ops/adamw/adamw.call.h"
#include "ops/support/update.cuh"

namespace heddle::cuda {

namespace {

template <class T>
struct AdamWUpdate {
  T rest1, beta2, rest2, step_size, inverse_correction, eps;

  explicit AdamWUpdate(const ops::AdamWOptions& o)
      : rest1(static_cast<T>(1 - o.beta1)),
        beta2(static_cast<T>(o.beta2)),
        rest2(static_cast<T>(1 - o.beta2)),
        step_size(static_cast<T>(o.lr / (1 - std::pow(o.beta1, static_cast<double>(o.step))))),
        inverse_correction(
            static_cast<T>(1 / std::sqrt(1 - std::pow(o.beta2, static_cast<double>(o.step))))),
        eps(static_cast<T>(o.eps)) {}

  // decay: 1 - lr·weight_decay
  __device__ void operator()(T g, T decay, T& w, T& m, T& v) const {
    m += rest1 * (g - m);
    v = beta2 * v + rest2 * (g * g);
    w = w * decay - step_size * (m / (std::sqrt(v) * inverse_correction + eps));
  }
};

template <class T>
void adamw_as(ops::AdamWCall& c) {
  cudaStream_t const stream = stream_of(c.output().device());
  Updates<T, 2, AdamWUpdate<T>> all("adamw", AdamWUpdate<T>(c.options), c.options.grad_scale,
                                    stream);
  std::vector<FollowingCopy> copies;
  copies.reserve(c.parameters.size());
  for (std::size_t i = 0; i < c.parameters.size(); ++i) {
    ops::AdamWParameter& p = c.parameters[i];
    if (p.weight.dtype() != DTypeOf<T>::value) continue;
    const FollowingCopy& copy = copies.emplace_back(p.weight);
    all.add({out<T>(p.weight), in<T>(c.grads[i]), out<T>(p.m), out<T>(p.v), copy.data(),
             p.weight.elements(), 0, static_cast<T>(1 - c.options.lr * p.weight_decay)});
  }
  all.run();
  for (const FollowingCopy& copy : copies) copy.written();
}

void run_adamw(ops::AdamWCall& c) {
  adamw_as<float>(c);
  adamw_as<double>(c);
}

}  // namespace

void add_adamw_routines() { add<ops::AdamWCall>({run_adamw}); }

}  // namespace heddle::cuda
