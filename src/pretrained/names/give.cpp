#include "pretrained/names/give.h"

#include <array>
#include <string>

#include "heddle/error.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/unary/unary.h"
#include "ops/view/view.h"
#include "pretrained/names/take.h"

namespace heddle::pretrained {
namespace {

using model::ModelConfig;
using Three = std::array<Tensor, 3>;  // queries, keys, values

Tensor in_turn(const Three& parts, const ModelConfig&) { return ops::concat(parts, 0); }

Tensor in_turn_transposed(const Three& parts, const ModelConfig& config) {
  return transposed(ops::concat(parts, 0), config);
}

// For each of G key heads its queries, its key, its value.
Tensor by_group(const Three& parts, const ModelConfig& config) {
  const nn::AttentionConfig a = model::self_attention(config, 0, true);
  const std::int64_t groups = a.key_heads(), d = a.width_of_head();
  const bool matrix = parts[0].rank() == 2;
  const std::int64_t columns = matrix ? parts[0].size(1) : 1;
  Three heads;
  for (std::size_t i = 0; i < 3; ++i)
    heads[i] = ops::reshape(ops::contiguous(parts[i]),
                            {groups, parts[i].size(0) / (groups * d), d, columns});
  const Tensor all = ops::contiguous(ops::concat(heads, 1));
  const std::int64_t rows = all.elements() / columns;
  return matrix ? ops::reshape(all, {rows, columns}) : ops::reshape(all, {rows});
}

// Several parts that lie in one tensor: how each is taken, and how all are put together.
struct Fusion {
  std::array<Take, 3> takes;
  Tensor (*give)(const Three& parts, const ModelConfig& config);
};

constexpr std::array kFusions = std::to_array<Fusion>({
    {{fused<Part::query>, fused<Part::key>, fused<Part::value>}, in_turn},
    {{fused_transposed<Part::query>, fused_transposed<Part::key>, fused_transposed<Part::value>},
     in_turn_transposed},
    {{fused_by_group<Part::query>, fused_by_group<Part::key>, fused_by_group<Part::value>},
     by_group},
});

Tensor minus_one(const Tensor& source) { return ops::add(source, -1); }

}  // namespace

Tensor given(std::string_view name, std::span<const Taken> parts, const ModelConfig& config) {
  const Take take = parts.front().take;
  for (const Fusion& fusion : kFusions) {
    Three found;
    std::size_t count = 0;
    for (std::size_t i = 0; i < 3; ++i)
      for (const Taken& part : parts)
        if (part.take == fusion.takes[i]) {
          found[i] = part.tensor;
          ++count;
        }
    if (count == 0) continue;
    if (count != 3)
      fail(ErrorCode::invalid_argument, name,
           "one tensor has queries, keys and values, and the model lacks a part of it");
    return fusion.give(found, config);
  }
  if (parts.size() != 1 || (take != nullptr && take != &transposed && take != &plus_one))
    fail(ErrorCode::invalid_argument, name, "a tensor that is read and cannot be written yet");
  if (take == &transposed) return transposed(parts.front().tensor, config);
  if (take == &plus_one) return minus_one(parts.front().tensor);
  return parts.front().tensor;
}

Tensor paired_otherwise(const Tensor& source, const nn::AttentionConfig& attention,
                        ops::Pairing from) {
  const auto* rope = std::get_if<nn::RopePosition>(&attention.position);
  if (rope == nullptr) return source;
  const std::int64_t d = attention.width_of_head();
  const std::int64_t turned = rope->rotated > 0 ? rope->rotated : d;
  const std::int64_t heads = source.size(0) / d, columns = source.elements() / source.size(0);
  const Tensor rows = ops::reshape(ops::contiguous(source), {heads, d, columns});
  const Tensor pairs = ops::contiguous(ops::slice(rows, 1, 0, turned));
  // Halves [2, turned / 2] become neighbours [turned / 2, 2], or the other way round.
  const bool halves = from == ops::Pairing::half;
  const Tensor split =
      ops::reshape(pairs, {heads, halves ? 2 : turned / 2, halves ? turned / 2 : 2, columns});
  const std::array both{
      ops::reshape(ops::contiguous(ops::transpose(split, 1, 2)), {heads, turned, columns}),
      ops::contiguous(ops::slice(rows, 1, turned, d))};
  return ops::reshape(ops::contiguous(turned < d ? ops::concat(both, 1) : both[0]), source.shape());
}

}  // namespace heddle::pretrained
