// binary on CUDA.
#include "backend/cuda/strided.cuh"
#include "backend/cuda/vectors.cuh"
#include "ops/binary/binary.call.h"

namespace heddle::cuda {

namespace {

using ops::Binary;

template <class C>
__device__ C value(Binary kind, C a, C b) {
  switch (kind) {
    case Binary::add: return a + b;
    case Binary::sub: return a - b;
    case Binary::mul: return a * b;
    case Binary::div: return a / b;
    case Binary::maximum: return a != a ? a : b != b ? b : a > b ? a : b;
    case Binary::prefers_a: return a > b ? C{1} : a == b ? C{0.5} : C{0};
    case Binary::prefers_b: return b > a ? C{1} : a == b ? C{0.5} : C{0};
  }
  return a;
}

template <class S>
void binary_as(ops::BinaryCall& c) {
  const Tensor a_as_y = views::broadcast(c.a, c.y.shape());
  const Tensor b_as_y = views::broadcast(c.b, c.y.shape());
  const Walk<3> walk(c.y.shape(), {&a_as_y.strides(), &b_as_y.strides(), &c.y.strides()});
  const S* const a = in<S>(c.a);
  const S* const b = in<S>(c.b);
  S* const y = out<S>(c.y);
  const Binary kind = c.kind;
  cudaStream_t const stream = stream_of(c.y.device());
  if (walk.plain())
    return map(
        "binary", stream, walk.count,
        [=] __device__(Compute<S> v, Compute<S> w) { return value<Compute<S>>(kind, v, w); }, y, a,
        b);
  if (walk.comes_in(kVector<S>) && aligned(a) && aligned(b) && aligned(y)) {
    const Walk<3> vectors = walk.in_vectors(kVector<S>);
    return each("binary", stream, vectors.count, [=] __device__(std::int64_t i) {
      using C = Compute<S>;
      std::int64_t at[3];
      vectors.offsets(i, at);
      store(y + at[2], mapped<S>([=](C v, C w) { return value<C>(kind, v, w); }, load(a + at[0]),
                                 load(b + at[1])));
    });
  }
  each("binary", stream, walk.count, [=] __device__(std::int64_t i) {
    std::int64_t at[3];
    walk.offsets(i, at);
    y[at[2]] = narrow<S>(value<Compute<S>>(kind, wide(a[at[0]]), wide(b[at[1]])));
  });
}

void run_binary(ops::BinaryCall& c) {
  for_storage(c.y.dtype(), [&](auto s) { binary_as<decltype(s)>(c); });
}

}  // namespace

void add_binary_routines() { add<ops::BinaryCall>({run_binary}); }

}  // namespace heddle::cuda
