#include "nn/position/t5.h"

#include <cmath>
#include <vector>

#include "nn/require.h"
#include "ops/embedding/embedding.h"
#include "ops/support/check.h"
#include "ops/view/view.h"

namespace heddle::nn {

void validate(const T5Options& o) {
  const char* const where = "t5";
  const auto buckets = static_cast<double>(o.buckets);
  if (o.bidirectional)
    require(o.buckets >= 4 && o.buckets % 2 == 0, where, {"t5_buckets", "causal"},
            "an even number from 4 on: half for each direction", buckets);
  else
    require(o.buckets >= 2, where, "t5_buckets", "2 or more", buckets);
  const std::int64_t exact = o.buckets / (o.bidirectional ? 4 : 2);
  require(o.max_distance > exact, where, {"t5_max_distance", "t5_buckets"},
          "more than " + std::to_string(exact) + ", the distances with a bucket of their own",
          static_cast<double>(o.max_distance));
}

std::int64_t t5_bucket(std::int64_t distance, const T5Options& o) {
  std::int64_t buckets = o.buckets;
  std::int64_t first = 0;
  std::int64_t d = 0;
  if (o.bidirectional) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    d = distance < 0 ? -distance : distance;
  } else {
    d = distance < 0 ? -distance : 0;
  }
  const std::int64_t exact = buckets / 2;
  if (d < exact) return first + d;
  const float ratio = std::log(static_cast<float>(d) / static_cast<float>(exact)) /
                      static_cast<float>(std::log(static_cast<double>(o.max_distance) /
                                                  static_cast<double>(exact)));
  const auto step = static_cast<std::int64_t>(ratio * static_cast<float>(buckets - exact));
  return first + std::min(exact + step, buckets - 1);
}

Tensor t5_bias(const Tensor& table, const T5Options& o, const Distances& distances) {
  validate(o);
  ops::check_rank({"t5", "table", table}, 2);
  ops::check_shape({"t5", "table", table}, {o.buckets, table.size(1)});
  const std::int64_t count = distances.count();
  Tensor ids = Tensor::empty({count}, DType::i64);
  auto* id = ids.mutable_data<std::int64_t>();
  for (std::int64_t n = 0; n < count; ++n) id[n] = t5_bucket(distances.at(n), o);
  ids = ids.to(table.device());
  return ops::transpose(ops::embedding(table, ids, table.dtype()), 0, 1);
}

}  // namespace heddle::nn
