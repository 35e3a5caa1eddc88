#include "generate/decode/reader.h"

#include <algorithm>
#include <utility>

#include "model/decoding.h"
#include "model/prompt.h"
#include "ops/copy/copy.h"
#include "ops/view/view.h"

namespace heddle::generate {

namespace {

// Of the last `count` tokens of each those from `begin` to `end`, [B, end - begin].
Tensor tokens_of(Sequences sequences, std::int64_t count, std::int64_t begin, std::int64_t end) {
  std::vector<std::int32_t> ids;
  ids.reserve(sequences.size() * static_cast<std::size_t>(end - begin));
  for (const std::span<const std::int32_t> tokens : sequences) {
    const auto first = tokens.end() - count;
    ids.insert(ids.end(), first + begin, first + end);
  }
  return Tensor::from<std::int32_t>({static_cast<std::int64_t>(sequences.size()), end - begin},
                                    ids);
}

}  // namespace

Reader::Reader(const model::Model& model, ReaderOptions options)
    : model_(&model), options_(std::move(options)) {
  pass_.precision = options_.precision;
  if (options_.window.size)
    options_.positions = std::min(options_.positions, *options_.window.size);
}

Tensor Reader::next(Sequences sequences) {
  const Tensor scores = options_.cached ? with_cache(sequences) : without_cache(sequences);
  return scores.defined() ? ops::contiguous(ops::cast(scores, DType::f32)) : scores;
}

void Reader::reorder(std::span<const std::int64_t> rows) {
  if (state_) state_->reorder(rows);
}

Tensor Reader::with_cache(Sequences sequences) {
  const Window& window = options_.window;
  if (!state_) return restart(sequences, std::ssize(sequences[0]));
  if (window.size && state_->position() == *window.size) return restart(sequences, window.kept());
  return model_->next(*state_, tokens_of(sequences, 1, 0, 1), pass_);
}

bool reads_whole(const model::ModelConfig& config) {
  return config.kind != model::Kind::decoder || config.attention.prefix;
}

std::unique_ptr<model::DecodeState> take_before(ReadBefore& before,
                                                std::span<const std::int32_t> prompt) {
  ReadBefore taken = std::exchange(before, {});
  const auto same = std::ranges::mismatch(taken.tokens, prompt).in2 - prompt.begin();
  const std::int64_t at = std::min<std::int64_t>(same, std::ssize(prompt) - 1);
  if (at <= 0 || !taken.state || !taken.state->rewind(at)) return {};
  return std::move(taken.state);
}

// Where a prompt is read in blocks there is time to ask whether anybody still wants it.
std::int64_t Reader::block_end(std::int64_t at, std::int64_t end) const {
  return reads_whole(model_->config()) ? end : std::min(end, at + model::kPromptBlock);
}

Tensor Reader::restart(Sequences sequences, std::int64_t count) {
  const Window& window = options_.window;
  if (window.size && count > *window.size) count = window.kept();
  state_.reset();  // before the new one: both need not fit
  state_ = model_->begin({}, std::ssize(sequences), options_.positions, pass_);
  std::int64_t at = 0;
  Tensor scores;
  while (at < count) {
    if (scores.defined() && options_.cancelled && options_.cancelled()) return {};
    const std::int64_t end = block_end(at, count);
    scores = model_->next(*state_, tokens_of(sequences, count, at, end), pass_);
    at = end;
  }
  return scores;
}

// The same windows as with a cache: where it would have been full, they begin anew.
Tensor Reader::without_cache(Sequences sequences) {
  const Window& window = options_.window;
  const bool first = read_ == 0;
  read_ = first ? std::ssize(sequences[0]) : read_ + 1;
  const bool full = window.size && read_ > *window.size;
  if (full) read_ = window.kept();
  if (first || full) window_ = read_;
  const Tensor tokens = tokens_of(sequences, read_, 0, read_);
  const Tensor all = model_->logits(model::prompted(model_->config(), tokens, window_), pass_);
  const Tensor last = ops::contiguous(views::slice(all, 1, read_ - 1, read_));  // of [B, T, V]
  return views::reshape(last, {all.size(0), all.size(2)});
}

}  // namespace heddle::generate
