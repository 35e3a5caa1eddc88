#include "backend/cuda/products/layer.h"

#include "backend/cuda/activation.cuh"
#include "backend/cuda/vectors.cuh"
#include "base/divide.h"

namespace heddle::cuda {

namespace {

// The rest of the work after the product: y[i] from the sums, which may be in y.
template <class S>
struct Pass {
  std::int64_t rows, columns, stride;
  Activation activation;
  const S* sums;
  const Compute<S>* bias;
  const S* residual;
  S* y;
};

constexpr int kWarps = kThreads / 32;
constexpr int kAhead = 4;  // rows that a warp loads before it computes with the first
constexpr int kRows = kAhead * kWarps;

// A block has 32 vectors of columns, whose bias it reads once, and kRows rows at a time.
template <class S, class Known>
__device__ void finish_rows(const Pass<S>& p, std::int64_t column, Known activation) {
  using C = Compute<S>;
  Values<S> bias{};
  if (p.bias != nullptr) bias = load_parameters<S>(p.bias + column);
  const auto plus = [](C a, C b) { return a + b; };
  const std::int64_t step = std::int64_t{gridDim.y} * kRows;
  for (std::int64_t first = std::int64_t{blockIdx.y} * kRows + threadIdx.x / 32; first < p.rows;
       first += step) {
    uint4 sums[kAhead], residual[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const std::int64_t row = first + i * kWarps;
      if (row >= p.rows) continue;
      sums[i] = load_raw(p.sums + row * p.stride + column);
      if (p.residual != nullptr) residual[i] = load_raw(p.residual + row * p.stride + column);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const std::int64_t row = first + i * kWarps;
      if (row >= p.rows) continue;
      Values<S> v = mapped<S>(plus, widened<S>(sums[i]), bias);
      v = mapped<S>([=](C x) { return activated<C, S>(activation, x).value; }, v);
      if (p.residual != nullptr) v = mapped<S>(plus, v, widened<S>(residual[i]));
      store(p.y + row * p.stride + column, v);
    }
  }
}

template <class S>
__global__ void __launch_bounds__(kThreads) finish_vectors(const __grid_constant__ Pass<S> p) {
  const std::int64_t column = (std::int64_t{blockIdx.x} * 32 + threadIdx.x % 32) * kVector<S>;
  if (column >= p.columns) return;
  for_activation(p.activation, [&](auto known) { finish_rows(p, column, known); });
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
    v = activated<C, S>(p.activation, v).value;
    if (p.residual != nullptr) v += static_cast<C>(wide(p.residual[at]));
    p.y[at] = narrow<S>(v);
  });
}

template <class S>
void finish(const Pass<S>& p, cudaStream_t stream) {
  const bool whole = p.columns % kVector<S> == 0 && p.stride % kVector<S> == 0 && aligned(p.sums) &&
                     aligned(p.bias) && aligned(p.residual) && aligned(p.y);
  if (!whole) return finish_elements(p, stream);
  const std::int64_t strips = ceil_div(p.columns, 32 * kVector<S>);
  const std::int64_t tall = std::min<std::int64_t>(ceil_div(p.rows, kRows), 65535);
  if (strips == 0 || tall == 0) return;
  const dim3 grid(static_cast<unsigned>(strips), static_cast<unsigned>(tall));
  finish_vectors<<<grid, kThreads, 0, stream>>>(p);
  check_launch("layer");
}

// The pass, with the bias and the residual that the product has not added.
template <class S>
void finish_as(const Product& p, const Finish& f, const void* sums, const Product& done,
               cudaStream_t stream) {
  finish(Pass<S>{p.m, p.n, p.row_stride(), f.activation, static_cast<const S*>(sums),
                 done.bias == nullptr ? static_cast<const Compute<S>*>(p.bias) : nullptr,
                 done.residual == nullptr ? static_cast<const S*>(p.residual) : nullptr,
                 static_cast<S*>(p.y)},
         stream);
}

// Whether y must not be overwritten before the end, and nothing else holds the sums.
bool apart(const Product& p, const Finish& f) {
  return p.residual == p.y && !f.nothing() && f.before == nullptr;
}

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
  // An activation comes between the sums and the rest. Sums that are kept have no bias: the pass
  // back adds it, in the type of sums, as this one does.
  if (!f.nothing()) own.residual = own.bias = nullptr;
  const bool in_room = apart(p, f);
  if (in_room) own.y = room.data;
  if (f.before != nullptr) own.y = f.before;
  const LtResult result = in_room ? LtResult::not_taken : lt_multiply(own, room, device, stream);
  if (result == LtResult::without_bias) own.bias = nullptr;
  if (result == LtResult::not_taken) multiply(own, stream);
  if (f.nothing() && own.bias == p.bias) return;
  for_storage(p.y_dtype, [&](auto s) { finish_as<decltype(s)>(p, f, own.y, own, stream); });
}

}  // namespace heddle::cuda
