#include "backend/cuda/layer.h"

#include "backend/cuda/activation.cuh"
#include "backend/cuda/vectors.cuh"

namespace heddle::cuda {

namespace {

// The rest of the work after the product: y[i] from the sums, which may be in y.
template <class S>
struct Pass {
  std::int64_t rows, columns, stride;
  Activation activation;
  const S* sums;
  const Compute<S>* bias;
  S* derivative;
  const S* factor;
  const S* residual;
  S* y;
};

template <class S>
__global__ void __launch_bounds__(kThreads) finish_vectors(std::int64_t jobs, const Pass<S> p) {
  using C = Compute<S>;
  const auto of_row = static_cast<std::uint32_t>(p.columns / kVector<S>);
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < jobs; i += step) {
    const std::int64_t row = jobs >> 32 == 0 ? static_cast<std::uint32_t>(i) / of_row : i / of_row;
    const std::int64_t column = (i - row * of_row) * kVector<S>;
    const std::int64_t at = row * p.stride + column;
    Values<S> v = load(p.sums + at);
    if (p.bias != nullptr)
      v = mapped<S>([](C a, C b) { return a + b; }, v, load_parameters<S>(p.bias + column));
    if (p.activation != Activation::none) {
      Values<S> slope;
#pragma unroll
      for (int e = 0; e < kVector<S>; ++e) {
        const Activated<C> a = activated(p.activation, v.v[e]);
        v.v[e] = a.value;
        slope.v[e] = a.slope;
      }
      if (p.derivative != nullptr) store(p.derivative + at, slope);
    }
    if (p.factor != nullptr) v = mapped<S>([](C a, C b) { return a * b; }, v, load(p.factor + at));
    if (p.residual != nullptr)
      v = mapped<S>([](C a, C b) { return a + b; }, v, load(p.residual + at));
    store(p.y + at, v);
  }
}

template <class S>
void finish_elements(const Pass<S>& p, cudaStream_t stream) {
  using C = Compute<S>;
  each("layer", stream, p.rows * p.columns, [=] __device__(std::int64_t i) {
    const std::int64_t row = i / p.columns;
    const std::int64_t column = i - row * p.columns;
    const std::int64_t at = row * p.stride + column;
    C v = wide(p.sums[at]);
    if (p.bias != nullptr) v += p.bias[column];
    const Activated<C> a = activated(p.activation, v);
    if (p.derivative != nullptr) p.derivative[at] = narrow<S>(a.slope);
    v = a.value;
    if (p.factor != nullptr) v *= static_cast<C>(wide(p.factor[at]));
    if (p.residual != nullptr) v += static_cast<C>(wide(p.residual[at]));
    p.y[at] = narrow<S>(v);
  });
}

template <class S>
void finish(const Pass<S>& p, cudaStream_t stream) {
  const bool whole = p.columns % kVector<S> == 0 && p.stride % kVector<S> == 0 && aligned(p.sums) &&
                     aligned(p.bias) && aligned(p.derivative) && aligned(p.factor) &&
                     aligned(p.residual) && aligned(p.y);
  if (!whole) return finish_elements(p, stream);
  const std::int64_t jobs = p.rows * (p.columns / kVector<S>);
  if (jobs == 0) return;
  finish_vectors<<<grid_for(divided(jobs, kThreads)), kThreads, 0, stream>>>(jobs, p);
  check_launch("layer");
}

// The pass, with the bias and the residual that the product has not added.
template <class S>
void finish_as(const Product& p, const Finish& f, const void* sums, const Product& done,
               cudaStream_t stream) {
  finish(Pass<S>{p.m, p.n, p.row_stride(), f.activation, static_cast<const S*>(sums),
                 done.bias == nullptr ? static_cast<const Compute<S>*>(p.bias) : nullptr,
                 static_cast<S*>(f.derivative), static_cast<const S*>(f.factor),
                 done.residual == nullptr ? static_cast<const S*>(p.residual) : nullptr,
                 static_cast<S*>(p.y)},
         stream);
}

bool apart(const Product& p, const Finish& f) { return p.residual == p.y && !f.nothing(); }

}  // namespace

std::size_t layer_room(const LayerShape& s) {
  const std::size_t library = s.operand == DType::bf16 ? lt_room(s.m, s.n) : 0;
  const std::size_t result = static_cast<std::size_t>(s.m * s.n) * size_of(s.result);
  return s.finishes_residual ? std::max(library, result) : library;
}

void multiply_layer(const Product& p, const Finish& f, const Room& room, int device,
                    cudaStream_t stream) {
  if (p.m * p.n == 0) return;
  Product own = p;  // what the product itself does
  if (!f.nothing()) own.residual = nullptr;
  const bool in_room = apart(p, f);
  if (in_room) own.y = room.data;
  const LtResult result = in_room ? LtResult::not_taken : lt_multiply(own, room, device, stream);
  if (result == LtResult::without_bias) own.bias = nullptr;
  if (result == LtResult::not_taken) multiply(own, stream);
  if (f.nothing() && own.bias == p.bias) return;
  for_storage(p.y_dtype, [&](auto s) { finish_as<decltype(s)>(p, f, own.y, own, stream); });
}

}  // namespace heddle::cuda
