// top_k on the CPU: a row's best so far stand in order, and the next number moves in among them.
#include "backend/cpu/threads.h"
#include "ops/gather/gather.call.h"
#include "ops/support/cpu.h"

namespace heddle::cpu {

namespace {

template <class T>
void largest_of_row(const T* row, std::int64_t n, std::int64_t* places, std::int64_t count) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t at = i < count ? i : count;
    if (at == count && !(row[i] > row[places[count - 1]])) continue;
    if (at == count) --at;
    for (; at > 0 && row[i] > row[places[at - 1]]; --at) places[at] = places[at - 1];
    places[at] = i;
  }
}

template <class T>
void largest_of_rows(ops::TopKCall& c) {
  const std::int64_t n = c.x.size(-1), count = c.places.size(-1);
  if (count == 0) return;
  const T* const x = c.x.data<T>();
  std::int64_t* const places = c.places.mutable_data<std::int64_t>();
  parallel_ranges(rows_of(c.x), 1 + 4096 / n, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r)
      largest_of_row(x + r * n, n, places + r * count, count);
  });
}

void run_top_k(ops::TopKCall& c) {
  if (c.x.dtype() == DType::f64)
    largest_of_rows<double>(c);
  else
    largest_of_rows<float>(c);
}

}  // namespace

void add_top_k_routines() { add<ops::TopKCall>({run_top_k}); }

}  // namespace heddle::cpu
