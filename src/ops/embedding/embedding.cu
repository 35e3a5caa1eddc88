// embedding on CUDA. The gradient adds the places of each row in their order: places are sorted by
// row, cut into pieces of kPiece, and a row that lies in several pieces is the sum of theirs.
#include <cmath>

#include "backend/cuda/row_order.h"
#include "backend/cuda/vectors.cuh"
#include "base/divide.h"
#include "ops/embedding/embedding.call.h"

namespace heddle::cuda {

namespace {

constexpr std::int64_t kPiece = 64;

// As many numbers as a vector of To holds, of the same type or of that in which To is computed.
template <class To, class From>
__device__ Values<To> load_from(const From* p) {
  if constexpr (std::is_same_v<From, To>)
    return load(p);
  else
    return load_parameters<To>(p);
}

// An id that is no row gives NaNs: they come out at the loss, and nothing outside was read.
template <class From, class To, class I>
void embedding_as(ops::EmbeddingCall& c) {
  using C = Compute<To>;
  const std::int64_t rows = c.table.size(0), width = c.table.size(1);
  const I* const ids = in<I>(c.ids);
  const From* const table = in<From>(c.table);
  To* const y = out<To>(c.y);
  cudaStream_t const stream = stream_of(c.y.device());
  if constexpr (std::is_same_v<From, To> || std::is_same_v<From, C>) {
    const std::int64_t vectors = width / kVector<To>;
    if (width % kVector<To> == 0 && aligned(table) && aligned(y))
      return each("embedding", stream, c.ids.elements() * vectors, [=] __device__(std::int64_t i) {
        const std::int64_t place = i / vectors, column = (i - place * vectors) * kVector<To>;
        const std::int64_t row = static_cast<std::int64_t>(ids[place]);
        Values<To> v;
        if (row >= 0 && row < rows)
          v = load_from<To>(table + row * width + column);
        else
          for (C& e : v.v) e = static_cast<C>(NAN);
        store(y + place * width + column, v);
      });
  }
  each("embedding", stream, c.y.elements(), [=] __device__(std::int64_t i) {
    const std::int64_t place = i / width;
    const std::int64_t row = static_cast<std::int64_t>(ids[place]);
    const bool there = row >= 0 && row < rows;
    y[i] = narrow<To>(there ? static_cast<C>(wide(table[row * width + i - place * width]))
                            : static_cast<C>(NAN));
  });
}

std::int64_t pieces_of(std::int64_t count) { return ceil_div(count, kPiece); }

// Room for the sums of pieces follows the sorted places: head[p] and tail[p], one row each.
std::int64_t sums_of(const ops::EmbeddingBackwardCall& c) {
  return 2 * pieces_of(c.ids.elements()) * c.dtable.size(1);
}

void plan_embedding_backward(ops::EmbeddingBackwardCall& c) {
  const std::int64_t count = c.ids.elements();
  const std::int64_t words = c.dtable.dtype() == DType::f64 ? 2 : 1;
  c.starts = workspace({c.dtable.size(0) + 1}, DType::i32, c.dtable);
  // Sums first: they want to be aligned.
  c.order = workspace({words * sums_of(c) + row_order_words(count)}, DType::i32, c.dtable);
}

// Arguments of the gradient kernels. Sums are in the type that dtable is computed in.
template <class T, class S>
struct Places {
  std::int64_t count, rows, width;
  const std::int32_t* starts;
  const std::int32_t* order;
  const S* dy;
  Compute<T>* head;  // [pieces, width]: of the places of a piece that name its first place's row
  Compute<T>* tail;  // ... its last place's row
  T* dtable;
};

// The row of a sorted place, found among the starts.
template <class P>
__device__ std::int64_t row_of(const P& p, std::int64_t place) {
  std::int64_t low = 0, high = p.rows;  // starts[low] <= place < starts[high]
  while (high - low > 1) {
    const std::int64_t middle = (low + high) / 2;
    if (p.starts[middle] <= place)
      low = middle;
    else
      high = middle;
  }
  return low;
}

template <class T, class S>
__device__ Compute<T> sum_of_places(const Places<T, S>& p, std::int64_t begin, std::int64_t end,
                                    std::int64_t column) {
  Compute<T> sum = 0;
#pragma unroll 4
  for (std::int64_t n = begin; n < end; ++n)
    sum += static_cast<Compute<T>>(wide(p.dy[std::int64_t{p.order[n]} * p.width + column]));
  return sum;
}

template <class T, class S>
void sum_pieces(const Places<T, S>& p, cudaStream_t stream) {
  each("embedding, backward", stream, pieces_of(p.count) * p.width, [=] __device__(std::int64_t i) {
    const std::int64_t piece = i / p.width;
    const std::int64_t column = i - piece * p.width;
    const std::int64_t begin = piece * kPiece;
    const std::int64_t end = begin + kPiece < p.count ? begin + kPiece : p.count;
    const std::int64_t first = row_of(p, begin), last = row_of(p, end - 1);
    // Ids that are no rows may leave the places in no order: nothing outside is read then.
    const std::int64_t head_end = p.starts[first + 1] < end ? p.starts[first + 1] : end;
    const std::int64_t tail_begin = p.starts[last] > begin ? p.starts[last] : begin;
    p.head[i] = sum_of_places(p, begin, head_end, column);
    p.tail[i] = sum_of_places(p, tail_begin, end, column);
  });
}

template <class T, class S>
void sum_rows(const Places<T, S>& p, bool add, cudaStream_t stream) {
  using C = Compute<T>;
  each("embedding, backward", stream, p.rows * p.width, [=] __device__(std::int64_t i) {
    const std::int64_t row = i / p.width;
    const std::int64_t column = i - row * p.width;
    const std::int64_t begin = p.starts[row], end = p.starts[row + 1];
    if (begin >= end) {
      if (!add) p.dtable[i] = narrow<T>(C{0});
      return;
    }
    const std::int64_t first = begin / kPiece, last = (end - 1) / kPiece;
    C sum;
    if (first == last) {
      sum = sum_of_places(p, begin, end, column);
    } else {
      sum = (begin % kPiece == 0 ? p.head : p.tail)[first * p.width + column];
      for (std::int64_t piece = first + 1; piece <= last; ++piece)
        sum += p.head[piece * p.width + column];
    }
    p.dtable[i] = narrow<T>(add ? static_cast<C>(wide(p.dtable[i])) + sum : sum);
  });
}

template <class T, class S>
void embedding_backward_as(ops::EmbeddingBackwardCall& c) {
  using C = Compute<T>;
  cudaStream_t const stream = stream_of(c.dtable.device());
  Places<T, S> p;
  p.count = c.ids.elements();
  p.rows = c.dtable.size(0);
  p.width = c.dtable.size(1);
  std::int32_t* const starts = out<std::int32_t>(c.starts);
  C* const sums = out<C>(c.order);
  p.starts = starts;
  p.order = row_order(in<void>(c.ids), c.ids.dtype(), p.count, p.rows,
                      reinterpret_cast<std::int32_t*>(sums + sums_of(c)), starts, stream);
  p.head = sums;
  p.tail = sums + sums_of(c) / 2;
  p.dy = in<S>(c.dy);
  p.dtable = out<T>(c.dtable);
  sum_pieces(p, stream);
  sum_rows(p, c.add, stream);
}

// Calls f with the table's type and that of the activations.
template <class F>
void for_pair(DType table, DType activations, F f) {
  if (table == DType::f64) return f(double{}, double{});
  const auto with = [&](auto t) {
    if (activations == DType::bf16) return f(t, bf16{});
    return f(t, float{});
  };
  if (table == DType::bf16) return with(bf16{});
  return with(float{});
}

void run_embedding(ops::EmbeddingCall& c) {
  for_pair(c.table.dtype(), c.y.dtype(), [&](auto t, auto s) {
    for_index(c.ids.dtype(),
              [&](auto i) { embedding_as<decltype(t), decltype(s), decltype(i)>(c); });
  });
}

void run_embedding_backward(ops::EmbeddingBackwardCall& c) {
  if (c.dtable.elements() == 0) return;
  for_pair(c.dtable.dtype(), c.dy.dtype(),
           [&](auto t, auto s) { embedding_backward_as<decltype(t), decltype(s)>(c); });
}

}  // namespace

void add_embedding_routines() {
  add<ops::EmbeddingCall>({run_embedding});
  add<ops::EmbeddingBackwardCall>({run_embedding_backward, plan_embedding_backward});
}

}  // namespace heddle::cuda
