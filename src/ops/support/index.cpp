#include "ops/support/index.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "autograd/accumulate.h"
#include "base/parallel.h"

namespace heddle::ops {

namespace {

// The place of the first value outside of [0, bound), or -1. Threads look at pieces of their own
// and agree on the smallest place.
template <class I>
std::int64_t first_outside(const I* ids, std::int64_t count, std::int64_t bound) {
  std::atomic<std::int64_t> found{count};
  parallel_ranges(count, 65536, [&](std::int64_t begin, std::int64_t end) {
    bool inside = true;
    for (std::int64_t i = begin; i < end; ++i) inside &= ids[i] >= 0 && ids[i] < bound;
    if (inside) return;
    std::int64_t at = begin;
    while (ids[at] >= 0 && ids[at] < bound) ++at;
    std::int64_t best = found.load();
    while (at < best && !found.compare_exchange_weak(best, at)) {
    }
  });
  return found.load() < count ? found.load() : -1;
}

}  // namespace

std::string coordinates(std::int64_t index, const Shape& shape) {
  Dims at = shape;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    at[i] = index % shape[i];
    index /= shape[i];
  }
  return to_string(at);
}

void check_indices(const Arg& a, std::int64_t bound) {
  const Tensor& ids = a.tensor;
  if (ids.device() != Device::cpu || ids.elements() == 0) return;
  const bool wide = ids.dtype() == DType::i64;
  const std::int64_t at = wide ? first_outside(ids.data<std::int64_t>(), ids.elements(), bound)
                               : first_outside(ids.data<std::int32_t>(), ids.elements(), bound);
  if (at < 0) return;
  const std::int64_t value = wide ? ids.data<std::int64_t>()[at] : ids.data<std::int32_t>()[at];
  fail(ErrorCode::out_of_range, a.op,
       std::string("argument ") + a.name + " at position " + coordinates(at, ids.shape()),
       bound > 0 ? "0 to " + std::to_string(bound - 1) : "nothing, there are no rows",
       std::to_string(value));
}

Tensor entered(const Arg& index, std::int64_t bound, const Tensor& x) {
  check_index(index);
  const bool travels = index.tensor.device().is_cpu() && !x.device().is_meta();
  if (!travels) check_same_device(index, x);
  const Tensor ids = autograd::dense(index.tensor);
  check_indices({index.op, index.name, ids}, bound);
  return ids.to(x.device());
}

}  // namespace heddle::ops
