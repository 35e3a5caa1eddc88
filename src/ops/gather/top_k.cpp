// The places of the largest numbers of a row.
#include <numeric>
#include <string>
#include <vector>

#include "heddle/tape.h"
#include "ops/binary/binary.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/gather/gather.call.h"
#include "ops/gather/gather.h"
#include "ops/reduce/reduce.h"
#include "ops/support/host.h"
#include "ops/support/op.h"
#include "ops/unary/unary.h"

namespace heddle::ops {

Tensor top_k(const Tensor& input, std::int64_t count) {
  check_compute({"top_k", "x", wide(input)});
  check_rank_at_least({"top_k", "x", input}, 1);
  if (count < 0 || count > input.size(-1))
    check_condition(false, "top_k", "count", "0 to " + std::to_string(input.size(-1)),
                    std::to_string(count));
  const NoGrad no_grad;
  const Tensor x = dense(cast(wide(input.detach()), parameter_dtype(wide(input))));
  if (!has_routine<TopKCall>(x)) return reference::top_k(x, count);
  Shape shape = x.shape();
  shape[shape.rank() - 1] = count;
  Tensor places = Tensor::empty(shape, DType::i64, x.device());
  launch(TopKCall{x, places});
  return places;
}

namespace reference {

// One after the other: the place of the largest is the first one at a distance of 0 from it, and it
// drops out for the next.
Tensor top_k(const Tensor& x, std::int64_t count) {
  const std::int64_t n = x.size(-1);
  const bool twice = x.dtype() == DType::f64;
  const auto number = [&](double v) { return Tensor::full({}, v, x.dtype(), x.device()); };
  const double low = twice ? -1e307 : -1e38;  // instead of -inf
  const Tensor tiny = number(twice ? 1e-307 : 1e-37);
  std::vector<double> numbers(static_cast<std::size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0.0);
  const Tensor place = cast(from_host({n}, numbers, x.device()), x.dtype());
  Shape one = x.shape();
  one[one.rank() - 1] = 1;
  Shape shape = one;
  shape[shape.rank() - 1] = count;
  if (count == 0 || x.elements() == 0) return Tensor::empty(shape, DType::i64, x.device());
  Tensor left = maximum(x, number(low));
  std::vector<Tensor> found;
  found.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const Tensor below = sub(max(left, -1, true), left);  // 0 at the largest
    const Tensor others = div(below, maximum(below, tiny));
    // n - place at the largest, 0 or less elsewhere.
    const Tensor score = mul(add(neg(others), 1), add(neg(place), static_cast<double>(n)));
    const Tensor first = add(neg(max(score, -1, true)), static_cast<double>(n));
    found.push_back(cast(first, DType::i64));
    // Elements already found become lower than any other: hit is 1 there and 0 elsewhere.
    const Tensor distance = sub(place, first);
    const Tensor hit = relu(add(neg(maximum(distance, neg(distance))), 1));
    left = sub(mul(left, add(neg(hit), 1)), scale(hit, -2 * low));
  }
  return concat(found, -1);
}

}  // namespace reference
}  // namespace heddle::ops
