// A row of a cache at a place in the device's memory, on CUDA.
#include "backend/cuda/held.h"
#include "backend/cuda/kernel.cuh"
#include "ops/gather/gather.call.h"

namespace heddle::cuda {

namespace {

template <class T>
struct PutRowArgs {
  std::int64_t width, rows, count;  // elements of a row, rows of a ring, elements in all
  const std::int32_t* at;
  const T* row;
  T* to;
};

// T: as wide as the elements.
template <class T>
void launch_put_row(const PutRowArgs<T>& a, cudaStream_t stream) {
  each("put_row", stream, a.count, [=] __device__(std::int64_t i) {
    const std::int64_t batch = i / a.width, column = i - batch * a.width;
    const std::int64_t place = *a.at < 0 ? 0 : *a.at < a.rows ? *a.at : a.rows - 1;
    a.to[(batch * a.rows + place) * a.width + column] = a.row[i];
  });
}

template <class T>
PutRowArgs<T> put_row_args(ops::PutRowCall& c) {
  const std::int64_t count = c.row.elements(), batch = c.row.size(0);
  return {batch == 0 ? 1 : count / batch, c.rows.size(1), count,
          in<std::int32_t>(c.at),         in<T>(c.row),   out<T>(c.rows)};
}

// Rows of bf16 may go with the attention that reads them.
void hold_put_row(ops::PutRowCall& c) {
  const PutRowArgs<std::uint16_t> a = put_row_args<std::uint16_t>(c);
  FewPut put;
  put.batch = static_cast<int>(c.row.size(0));
  put.width = static_cast<int>(a.width);
  put.rows = static_cast<int>(a.rows);
  put.batch_stride = a.width;
  put.ring_batch_stride = a.rows * a.width;
  put.ring_row_stride = a.width;
  put.at = a.at;
  put.x = reinterpret_cast<const bf16*>(a.row);
  put.ring = reinterpret_cast<bf16*>(a.to);
  put.plain = [a](cudaStream_t stream) { launch_put_row(a, stream); };
  const HeldBack held = held_of(c.rows.device());
  held.work.hold(put, held.stream);
}

void run_put_row(ops::PutRowCall& c) {
  if (c.rows.dtype() == DType::bf16) return hold_put_row(c);
  cudaStream_t const stream = stream_of(c.rows.device());
  switch (size_of(c.rows.dtype())) {
    case 1: return launch_put_row(put_row_args<std::uint8_t>(c), stream);
    case 2: return launch_put_row(put_row_args<std::uint16_t>(c), stream);
    case 4: return launch_put_row(put_row_args<std::uint32_t>(c), stream);
    default: return launch_put_row(put_row_args<std::uint64_t>(c), stream);
  }
}

}  // namespace

void add_put_row_routines() { add<ops::PutRowCall>({run_put_row}); }

}  // namespace heddle::cuda
