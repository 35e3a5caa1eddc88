#include "nn/position/learned.h"

#include <string>

#include "ops/copy/copy.h"
#include "ops/support/check.h"
#include "ops/view/view.h"

namespace heddle::nn {

Tensor learned(const Tensor& table, std::int64_t first, std::int64_t count, DType out) {
  ops::check_rank({"learned", "table", table}, 2);
  const std::int64_t positions = table.size(0);
  if (first < 0 || count < 0 || first > positions - count)
    fail(ErrorCode::out_of_range, "learned positions", "more positions than were learned",
         "positions 0 to " + std::to_string(positions),
         std::to_string(first) + " to " + std::to_string(first + count));
  return ops::cast(ops::slice(table, 0, first, first + count), out);
}

}  // namespace heddle::nn
