#include "data/text/text_data.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "data/examples/examples.h"
#include "data/memory_of.h"
#include "data/order/draw.h"

namespace heddle::data {
namespace {

constexpr std::uint64_t kEvaluationSeed = 0x5EED0FEA1;  // masks of evaluations are always the same

}  // namespace

std::int64_t TextDataset::fewest_tokens(const TextOptions& options, Split split) {
  const std::int64_t next = options.task == model::Task::language ? 1 : 0;
  return split == Split::training ? options.context + next : 1 + next;
}

TextDataset::TextDataset(std::shared_ptr<const Codec> codec, const TextOptions& options,
                         TextSplits splits, std::string summary)
    : Dataset(std::move(codec)),
      options_(options),
      splits_(std::move(splits)),
      summary_(std::move(summary)) {
  if (options_.task == model::Task::masked)
    masking_.emplace(this->codec().source(), this->codec().mask(), options_.mask_share);
}

bool TextDataset::has(Split split) const {
  return splits_[static_cast<std::size_t>(split)].has_value();
}

const EncodedText& TextDataset::text(Split split) const {
  if (!has(split)) fail_no_split(split);
  return *splits_[static_cast<std::size_t>(split)];
}

std::int64_t TextDataset::bytes() const {
  std::int64_t sum = 0;
  for (const std::optional<EncodedText>& split : splits_)
    if (split) sum += split->tokens.bytes() + memory_of(split->documents);
  return sum;
}

std::int64_t TextDataset::epoch_steps(std::int64_t batch) const {
  check_batch(batch);
  return batches_of(batches_of(text(Split::training).size(), options_.context), batch);
}

model::Batch TextDataset::training_batch(std::int64_t step, std::int64_t batch,
                                         std::uint64_t seed) const {
  check_batch(batch);
  const EncodedText& tokens = text(Split::training);
  const RandomKey key = stream_key(seed, step, Stream::windows);
  const auto places = static_cast<std::uint64_t>(tokens.size() - options_.context - next() + 1);
  std::vector<Window> windows(static_cast<std::size_t>(batch));
  for (std::size_t row = 0; row < windows.size(); ++row)
    windows[row] = {static_cast<std::int64_t>(draw(key, row, places)), options_.context,
                    row * static_cast<std::uint64_t>(options_.context)};
  if (options_.prompts) {
    const RandomKey prompts = stream_key(seed, step, Stream::prompts);
    for (std::size_t row = 0; row < windows.size(); ++row)
      windows[row].prompt = static_cast<std::int64_t>(
          draw(prompts, row, static_cast<std::uint64_t>(options_.context)));
  }
  model::Batch made = make(tokens, windows, stream_key(seed, step, Stream::masks));
  if (made.counted == 0)
    ask_for_one(tokens.tokens, windows.front(), made);  // a step needs a target
  return made;
}

BatchShape TextDataset::training_shape(std::int64_t /*step*/, std::int64_t batch,
                                       std::uint64_t /*seed*/) const {
  check_batch(batch);
  return {batch, options_.context, 0, !text(Split::training).documents.empty()};
}

std::int64_t TextDataset::windows(Split split) const {
  return batches_of(text(split).size() - next(), options_.context);
}

std::int64_t TextDataset::batches(Split split, std::int64_t batch) const {
  check_batch(batch);
  return batches_of(windows(split), batch);
}

model::Batch TextDataset::batch(Split split, std::int64_t index, std::int64_t batch) const {
  check_index(index, batches(split, batch));
  const EncodedText& tokens = text(split);
  const std::int64_t first = index * batch;
  std::vector<Window> row_windows(
      static_cast<std::size_t>(std::min(batch, windows(split) - first)));
  for (std::size_t row = 0; row < row_windows.size(); ++row) {
    const std::int64_t begin = (first + static_cast<std::int64_t>(row)) * options_.context;
    row_windows[row] = {begin, std::min(options_.context, tokens.size() - next() - begin),
                        static_cast<std::uint64_t>(begin)};
    if (options_.prompts) row_windows[row].prompt = row_windows[row].length / 2;
  }
  model::Batch made = make(tokens, row_windows, stream_key(kEvaluationSeed, 0, Stream::masks));
  // So does an evaluation. That of a split's first window does not depend on where batches end, as
  // one in each batch would.
  const auto* targets = made.targets.data<std::int32_t>();
  if (index == 0 && std::all_of(targets, targets + made.targets.size(1),
                                [](std::int32_t t) { return t == model::kIgnore; }))
    ask_for_one(tokens.tokens, row_windows.front(), made);
  return made;
}

model::Batch TextDataset::make(const EncodedText& text, Windows windows,
                               const RandomKey& masks) const {
  const auto rows = static_cast<std::int64_t>(windows.size());
  std::int64_t longest = 0;
  for (const Window& window : windows) longest = std::max(longest, window.length);
  model::Batch batch;
  batch.tokens = Tensor::empty({rows, longest}, DType::i32);
  batch.targets = Tensor::empty({rows, longest}, DType::i32);
  // Only the last window of a text can be shorter.
  if (windows.back().length < longest) {
    std::vector<std::int64_t> lengths;
    for (const Window& window : windows) lengths.push_back(window.length);
    batch.lengths = Tensor::from<std::int64_t>({rows}, lengths);
  }
  if (masking_)
    fill_masked(text.tokens, windows, masks, batch);
  else
    fill_language(text.tokens, windows, batch);
  if (!text.documents.empty()) add_documents(text, windows, batch);
  if (options_.prompts) add_prompts(windows, batch);
  return batch;
}

void TextDataset::ask_for_one(const TokenStore& text, const Window& first,
                              model::Batch& batch) const {
  auto* targets = batch.targets.mutable_data<std::int32_t>();
  if (masking_) {
    masking_->hide({batch.tokens.mutable_data<std::int32_t>(), 1}, {targets, 1}, 0);
  } else {  // nothing but ends of documents
    const std::int64_t last = first.length - 1;
    targets[last] = text.at(first.begin + last + 1);
  }
  ++batch.counted;
}

void TextDataset::fill_language(const TokenStore& text, Windows windows,
                                model::Batch& batch) const {
  const std::int64_t longest = batch.tokens.size(1);
  auto* tokens = batch.tokens.mutable_data<std::int32_t>();
  auto* targets = batch.targets.mutable_data<std::int32_t>();
  for (const Window& window : windows) {
    text.copy(window.begin, window.length, tokens);
    text.copy(window.begin + 1, window.length, targets);
    std::fill(tokens + window.length, tokens + longest, codec().padding());
    std::fill(targets + window.length, targets + longest, model::kIgnore);
    batch.counted += window.length;
    tokens += longest;
    targets += longest;
  }
}

void TextDataset::fill_masked(const TokenStore& text, Windows windows, const RandomKey& masks,
                              model::Batch& batch) const {
  const std::int64_t longest = batch.tokens.size(1);
  auto* const tokens = batch.tokens.mutable_data<std::int32_t>();
  auto* const targets = batch.targets.mutable_data<std::int32_t>();
  for (std::size_t row = 0; row < windows.size(); ++row) {
    const Window& window = windows[row];
    std::int32_t* out = tokens + static_cast<std::int64_t>(row) * longest;
    std::int32_t* wanted = targets + static_cast<std::int64_t>(row) * longest;
    const auto length = static_cast<std::size_t>(window.length);
    text.copy(window.begin, window.length, out);
    std::fill(out + window.length, out + longest, codec().padding());
    std::fill(wanted + window.length, wanted + longest, model::kIgnore);
    batch.counted += masking_->apply({out, length}, {wanted, length}, masks, window.random_place);
  }
}

// Documents are numbered from the window's first. A language model is not asked for the first token
// of a document: its last token before that sees nothing of it.
void TextDataset::add_documents(const EncodedText& text, Windows windows,
                                model::Batch& batch) const {
  const std::int64_t longest = batch.tokens.size(1);
  batch.documents = Tensor::empty(batch.tokens.shape(), DType::i64);
  auto* numbers = batch.documents.mutable_data<std::int64_t>();
  auto* targets = batch.targets.mutable_data<std::int32_t>();
  for (const Window& window : windows) {
    auto border = std::upper_bound(text.documents.begin(), text.documents.end(), window.begin);
    std::int64_t number = 0;
    for (std::int64_t i = 0; i < longest; ++i) {
      for (; border != text.documents.end() && *border <= window.begin + i; ++border) ++number;
      numbers[i] = number;
      const bool last = border != text.documents.end() && *border == window.begin + i + 1;
      if (masking_ || !last || targets[i] == model::kIgnore) continue;
      targets[i] = model::kIgnore;
      --batch.counted;
    }
    numbers += longest;
    targets += longest;
  }
}

// All tokens of a prompt see each other, so predicting one of them teaches nothing. The prompt's
// last token predicts the first one after it.
void TextDataset::add_prompts(Windows windows, model::Batch& batch) const {
  const std::int64_t longest = batch.tokens.size(1);
  auto* targets = batch.targets.mutable_data<std::int32_t>();
  std::vector<std::int64_t> lengths;
  for (const Window& window : windows) {
    lengths.push_back(window.prompt);
    for (std::int64_t i = 0; i + 1 < window.prompt; ++i) {
      if (targets[i] == model::kIgnore) continue;
      targets[i] = model::kIgnore;
      --batch.counted;
    }
    targets += longest;
  }
  batch.prefix_lengths =
      Tensor::from<std::int64_t>({static_cast<std::int64_t>(lengths.size())}, lengths);
}

}  // namespace heddle::data
