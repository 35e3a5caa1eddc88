// The definition of rope in plain ops.
#include <vector>

#include "ops/binary/binary.h"
#include "ops/concat/concat.h"
#include "ops/gather/gather.h"
#include "ops/rope/rope.h"
#include "ops/view/view.h"

namespace heddle::ops::reference {

namespace {

// The tables' rows of each token, as [B or 1, T, 1, R/2].
Tensor rows_of_tokens(const Tensor& table, const Tensor& x, const RopeOptions& options) {
  const std::int64_t tokens = x.size(1), pairs = table.size(1);
  if (!options.positions.defined())
    return reshape(slice(table, 0, options.first_position, options.first_position + tokens),
                   {1, tokens, 1, pairs});
  const Tensor flat = reshape(options.positions, {options.positions.elements()});
  const std::int64_t batch = options.positions.rank() == 2 ? x.size(0) : 1;
  return reshape(index_select(table, flat), {batch, tokens, 1, pairs});
}

}  // namespace

Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, const RopeOptions& options) {
  const std::int64_t pairs = cos.size(1);
  // Without pairs there is nothing to tell the two apart.
  const bool half = options.pairing == Pairing::half || pairs == 0;
  const Tensor c = rows_of_tokens(cos, x, options);
  const Tensor s = rows_of_tokens(sin, x, options);
  const Tensor x1 = half ? slice(x, 3, 0, pairs) : slice(x, 3, 0, 2 * pairs, 2);
  const Tensor x2 = half ? slice(x, 3, pairs, 2 * pairs) : slice(x, 3, 1, 2 * pairs, 2);
  const Tensor y1 = sub(mul(x1, c), mul(x2, s));  // [B, T, H, R/2]
  const Tensor y2 = add(mul(x2, c), mul(x1, s));
  const Tensor rest = slice(x, 3, 2 * pairs, x.size(3));
  if (half) return concat(std::vector<Tensor>{y1, y2, rest}, 3);
  Shape column = y1.shape();
  column.push_back(1);
  const std::vector<Tensor> both{reshape(y1, column), reshape(y2, column)};
  Shape joined = y1.shape();
  joined[3] = 2 * pairs;
  return concat(std::vector<Tensor>{reshape(concat(both, 4), joined), rest}, 3);
}

}  // namespace heddle::ops::reference
