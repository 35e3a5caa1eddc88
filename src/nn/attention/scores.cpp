#include "nn/attention/scores.h"

#include <array>
#include <vector>

#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/matmul/matmul.h"
#include "ops/view/view.h"

namespace heddle::nn {

namespace {

// 1 at (h, h mod r) of [H, r].
Tensor places(std::int64_t heads, std::int64_t r, DType dtype, Device device) {
  if (device.is_meta()) return Tensor::empty({heads, r}, dtype, device);
  std::vector<float> values(static_cast<std::size_t>(heads * r), 0.0f);
  for (std::int64_t h = 0; h < heads; ++h) values[static_cast<std::size_t>(h * r + h % r)] = 1;
  return ops::cast(Tensor::from<float>({heads, r}, values), dtype).to(device);
}

}  // namespace

Tensor per_head(const Tensor& x, const Tensor& w) {
  const Tensor rows = ops::transpose(x, 1, 2);                           // [B, H, T, D]
  const Tensor columns = ops::transpose(ops::cast(w, x.dtype()), 1, 2);  // [H, D, N]
  return ops::transpose(ops::matmul(rows, columns), 1, 2);
}

Tensor concat_query(const Tensor& q, const Tensor& w, std::int64_t key_heads) {
  const std::int64_t heads = q.size(2), width = q.size(3), r = heads / key_heads;
  const Tensor b = ops::reshape(ops::slice(w, 1, width, 2 * width), {heads, 1, width});
  const Tensor place =
      ops::broadcast_to(places(heads, r, q.dtype(), q.device()), {q.size(0), q.size(1), heads, r});
  const std::array parts = {per_head(q, b), place};
  return ops::concat(parts, 3);
}

Tensor concat_key(const Tensor& k, const Tensor& w) {
  const std::int64_t groups = k.size(2), width = k.size(3), r = w.size(0) / groups;
  const Tensor a = ops::reshape(ops::slice(w, 1, 0, width), {groups, r, width});
  const Tensor one = Tensor::full({k.size(0), k.size(1), groups, 1}, 1, k.dtype(), k.device());
  const std::array parts = {one, per_head(k, a)};
  return ops::concat(parts, 3);
}

}  // namespace heddle::nn
