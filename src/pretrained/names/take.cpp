#include "pretrained/names/take.h"

#include <array>

#include "heddle/error.h"
#include "ops/binary/binary.h"
#include "ops/concat/concat.h"
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

// Sums are rounded once, to the type that the model has.
Tensor wide(const Tensor& source) {
  return source.dtype() == DType::f64 ? source : ops::cast(source, DType::f32);
}

// A copy: a view would keep all of the source in memory.
Tensor own_rows(const Tensor& source, std::int64_t begin, std::int64_t end) {
  return ops::clone(ops::slice(source, 0, begin, end));
}

}  // namespace

Tensor as_vector(const Tensor& source, const model::ModelConfig&) {
  return source.rank() == 2 && source.size(0) == 1 ? ops::reshape(source, {source.size(1)})
                                                   : source;
}

Tensor rows_from(std::int64_t first, const Tensor& source) {
  if (source.rank() != 2 || source.size(0) <= first) return source;  // refused for its shape
  return own_rows(source, first, source.size(0));
}

Tensor transposed(const Tensor& source, const model::ModelConfig&) {
  return source.rank() == 2 ? ops::contiguous(ops::transpose(source, 0, 1)) : source;
}

Tensor rows_in_turns(const Tensor& source, const model::ModelConfig&) {
  if (source.rank() < 1 || source.size(0) % 2 != 0) return source;  // refused for its shape
  const std::int64_t half = source.size(0) / 2;
  const Tensor pairs = ops::reshape(ops::contiguous(source), {half, 2, -1});
  return ops::reshape(ops::contiguous(ops::transpose(pairs, 0, 1)), source.shape());
}

Tensor transposed_in_turns(const Tensor& source, const model::ModelConfig& config) {
  return rows_in_turns(transposed(source, config), config);
}

Tensor plus_one(const Tensor& source, const model::ModelConfig&) {
  return ops::add(wide(source), 1);
}

Tensor last_positions(const Tensor& source, const model::ModelConfig& config) {
  const std::int64_t positions = model::positions_of(config);
  if (source.rank() != 2 || source.size(0) <= positions) return source;
  return own_rows(source, source.size(0) - positions, source.size(0));
}

Tensor joined(const Tensor& first, const Tensor& second, Join join) {
  if (join == Join::plus) return ops::add(wide(first), wide(second));
  const std::array parts{first, second};
  return ops::concat(parts, join == Join::beside ? 1 : 0);
}

Tensor as_rows(const Tensor& source, const model::ModelConfig&) {
  if (source.rank() != 3 || source.size(0) != 1) return source;
  return ops::reshape(source, {source.size(1), source.size(2)});
}

Tensor halved(const Tensor& source, const model::ModelConfig&) {
  return ops::scale(wide(source), 0.5);
}

Tensor plus_first_row(const Tensor& table, const Tensor& others) {
  if (table.rank() != 2 || others.rank() != 2 || others.size(0) < 1 ||
      others.size(1) != table.size(1))
    fail(ErrorCode::shape_mismatch, "table of segments", "columns", table.describe(),
         others.describe());
  return ops::add(wide(table), wide(ops::slice(others, 0, 0, 1)));
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
