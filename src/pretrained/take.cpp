#include "pretrained/take.h"

#include "heddle/error.h"
#include "ops/copy/copy.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"

namespace heddle::pretrained {
namespace {

void require_rows(const Tensor& source, std::int64_t rows, std::string_view what) {
  if (source.rank() < 1 || source.rank() > 2 || source.size(0) != rows)
    fail(ErrorCode::shape_mismatch, what, "rows of queries, keys and values", std::to_string(rows),
         source.describe());
}

// A copy: a view would keep all of the source in memory.
Tensor own_rows(const Tensor& source, std::int64_t begin, std::int64_t end) {
  return ops::clone(ops::slice(source, 0, begin, end));
}

}  // namespace

Tensor transposed(const Tensor& source, const model::ModelConfig&) {
  return source.rank() == 2 ? ops::contiguous(ops::transpose(source, 0, 1)) : source;
}

Tensor plus_one(const Tensor& source, const model::ModelConfig&) {
  const Tensor wide = source.dtype() == DType::f64 ? source : ops::cast(source, DType::f32);
  return ops::shift(wide, 1);
}

Tensor rows_of(Part part, const Tensor& source, const model::ModelConfig& config) {
  const nn::AttentionConfig a = model::self_attention(config, 0, true);
  const std::int64_t q = a.heads * a.width_of_head(), k = a.key_heads() * a.width_of_head();
  require_rows(source, q + 2 * k, "fused projection");
  if (part == Part::query) return own_rows(source, 0, q);
  return part == Part::key ? own_rows(source, q, q + k) : own_rows(source, q + k, q + 2 * k);
}

Tensor rows_of_groups(Part part, const Tensor& source, const model::ModelConfig& config) {
  const nn::AttentionConfig a = model::self_attention(config, 0, true);
  const std::int64_t d = a.width_of_head(), groups = a.key_heads(), each = a.heads / groups;
  require_rows(source, groups * (each + 2) * d, "fused projection");
  const std::int64_t columns = source.rank() == 2 ? source.size(1) : 1;
  const Tensor heads = ops::reshape(ops::contiguous(source), {groups, each + 2, d, columns});
  const std::int64_t begin = part == Part::query ? 0 : part == Part::key ? each : each + 1;
  const std::int64_t end = part == Part::query ? each : begin + 1;
  const Tensor rows = ops::clone(ops::slice(heads, 1, begin, end));
  const std::int64_t count = groups * (end - begin) * d;
  return source.rank() == 2 ? ops::reshape(rows, {count, columns}) : ops::reshape(rows, {count});
}

}  // namespace heddle::pretrained
