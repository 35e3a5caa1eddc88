// gather, scatter_add, index_select and index_add on CUDA.
#include "backend/cuda/kernel.cuh"
#include "backend/cuda/row_order.h"
#include "ops/gather/gather.call.h"

namespace heddle::cuda {

namespace {

// A walk over all ids: where element i of theirs lies in a dense tensor of another shape, with the
// coordinate `dim` left out.
struct Lines {
  int rank;
  int dim;
  std::int64_t size[kMaxRank];    // of the ids
  std::int64_t stride[kMaxRank];  // of the tensor that is picked from
  std::int64_t own[kMaxRank];     // of the ids

  Lines(const Tensor& ids, const Tensor& x, int along) : rank(ids.rank()), dim(along) {
    for (int d = 0; d < rank; ++d) {
      size[d] = ids.shape()[d];
      stride[d] = x.strides()[d];
      own[d] = ids.strides()[d];
    }
  }

  __device__ std::int64_t elsewhere(std::int64_t i) const {
    std::int64_t at = 0;
    for (int d = rank - 1; d >= 0; --d) {
      if (d != dim) at += i % size[d] * stride[d];
      i /= size[d];
    }
    return at;
  }

  // Line n of those along dim: where it begins among the ids, and in the tensor.
  __device__ void line(std::int64_t n, std::int64_t& in_ids, std::int64_t& in_x) const {
    in_ids = in_x = 0;
    for (int d = rank - 1; d >= 0; --d) {
      if (d == dim) continue;
      in_ids += n % size[d] * own[d];
      in_x += n % size[d] * stride[d];
      n /= size[d];
    }
  }
};

template <class S, class I>
void gather_as(ops::GatherCall& c) {
  const Lines lines(c.ids, c.x, c.dim);
  const I* const ids = in<I>(c.ids);
  const S* const x = in<S>(c.x);
  S* const y = out<S>(c.y);
  each("gather", stream_of(c.y.device()), c.y.elements(), [=] __device__(std::int64_t i) {
    y[i] = x[lines.elsewhere(i) + static_cast<std::int64_t>(ids[i]) * lines.stride[lines.dim]];
  });
}

// A line along dim belongs to one thread, which adds in the order of the ids.
template <class S, class I>
void scatter_add_as(ops::ScatterAddCall& c) {
  using C = Compute<S>;
  const Lines lines(c.ids, c.sum, c.dim);
  const I* const ids = in<I>(c.ids);
  const S* const source = in<S>(c.source);
  C* const sum = out<C>(c.sum);
  const std::int64_t length = c.ids.size(c.dim);
  if (length == 0) return;
  each("scatter_add", stream_of(c.sum.device()), c.ids.elements() / length,
       [=] __device__(std::int64_t n) {
         std::int64_t from, to;
         lines.line(n, from, to);
         for (std::int64_t l = 0; l < length; ++l) {
           const std::int64_t at = from + l * lines.own[lines.dim];
           sum[to + static_cast<std::int64_t>(ids[at]) * lines.stride[lines.dim]] +=
               static_cast<C>(wide(source[at]));
         }
       });
}

std::int64_t width_of_rows(const Tensor& x) {
  std::int64_t width = 1;
  for (int i = 1; i < x.rank(); ++i) width *= x.shape()[i];
  return width;
}

template <class S, class I>
void index_select_as(ops::IndexSelectCall& c) {
  const I* const ids = in<I>(c.ids);
  const S* const x = in<S>(c.x);
  S* const y = out<S>(c.y);
  const std::int64_t width = width_of_rows(c.y);
  each("index_select", stream_of(c.y.device()), c.y.elements(), [=] __device__(std::int64_t i) {
    y[i] = x[static_cast<std::int64_t>(ids[i / width]) * width + i % width];
  });
}

void plan_index_add(ops::IndexAddCall& c) {
  c.starts = workspace({c.y.size(0) + 1}, DType::i32, c.y);
  c.order = workspace({row_order_words(c.ids.elements())}, DType::i32, c.y);
}

template <class S>
void index_add_as(ops::IndexAddCall& c) {
  using C = Compute<S>;
  cudaStream_t const stream = stream_of(c.y.device());
  std::int32_t* const starts = out<std::int32_t>(c.starts);
  const std::int32_t* const order =
      row_order(in<void>(c.ids), c.ids.dtype(), c.ids.elements(), c.y.size(0),
                out<std::int32_t>(c.order), starts, stream);
  const S* const x = in<S>(c.x);
  const S* const source = in<S>(c.source);
  S* const y = out<S>(c.y);
  const std::int64_t width = width_of_rows(c.y);
  each("index_add", stream, c.y.elements(), [=] __device__(std::int64_t i) {
    const std::int64_t row = i / width;
    C sum = x == nullptr ? C{0} : static_cast<C>(wide(x[i]));
    for (std::int32_t n = starts[row]; n < starts[row + 1]; ++n)
      sum += static_cast<C>(wide(source[order[n] * width + i % width]));
    y[i] = narrow<S>(sum);
  });
}

// Calls f with the storage type of the numbers and the type of the ids.
template <class F>
void for_types(const Tensor& numbers, const Tensor& ids, F f) {
  for_storage(numbers.dtype(), [&](auto s) { for_index(ids.dtype(), [&](auto i) { f(s, i); }); });
}

void run_gather(ops::GatherCall& c) {
  for_types(c.x, c.ids, [&](auto s, auto i) { gather_as<decltype(s), decltype(i)>(c); });
}

void run_scatter_add(ops::ScatterAddCall& c) {
  for_types(c.source, c.ids, [&](auto s, auto i) { scatter_add_as<decltype(s), decltype(i)>(c); });
}

void run_index_select(ops::IndexSelectCall& c) {
  for_types(c.x, c.ids, [&](auto s, auto i) { index_select_as<decltype(s), decltype(i)>(c); });
}

void run_index_add(ops::IndexAddCall& c) {
  for_storage(c.y.dtype(), [&](auto s) { index_add_as<decltype(s)>(c); });
}

}  // namespace

void add_gather_routines() {
  add<ops::GatherCall>({run_gather});
  add<ops::ScatterAddCall>({run_scatter_add});
  add<ops::IndexSelectCall>({run_index_select});
  add<ops::IndexAddCall>({run_index_add, plan_index_add});
}

}  // namespace heddle::cuda
