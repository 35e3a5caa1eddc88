#include "data/text/text_data.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "data/examples/examples.h"
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
  if (options_.mixture.empty() || !has(Split::training)) return;
  std::vector<std::int64_t> tokens;
  for (const EncodedText& text : texts(Split::training)) tokens.push_back(text.size() - next());
  mixture_.emplace(options_.mixture, std::move(tokens), options_.context);
}

bool TextDataset::has(Split split) const {
  return !splits_[static_cast<std::size_t>(split)].empty();
}

const std::vector<EncodedText>& TextDataset::texts(Split split) const {
  if (!has(split)) fail_no_split(split);
  return splits_[static_cast<std::size_t>(split)];
}

bool TextDataset::has_documents(Split split) const {
  return std::ranges::any_of(texts(split),
                             [](const EncodedText& text) { return text.document_count() > 0; });
}

std::int64_t TextDataset::bytes() const {
  std::int64_t sum = 0;
  for (const auto& split : splits_)
    for (const EncodedText& text : split) sum += text.bytes();
  return sum;
}

std::int64_t TextDataset::epoch_steps(std::int64_t batch) const {
  check_batch(batch);
  std::int64_t tokens = 0;
  for (const EncodedText& text : texts(Split::training)) tokens += text.size();
  return batches_of(batches_of(tokens, options_.context), batch);
}

// Without a mixture there is one text, and windows begin anywhere in it.
std::vector<TextDataset::Window> TextDataset::draw_windows(std::int64_t step, std::int64_t batch,
                                                           std::uint64_t seed) const {
  const std::vector<EncodedText>& all = texts(Split::training);
  std::vector<Window> windows(static_cast<std::size_t>(batch));
  if (mixture_) {
    const std::vector<Mixture::Place> places = mixture_->windows(step * batch, batch, seed);
    for (std::size_t row = 0; row < windows.size(); ++row)
      windows[row] = {.text = &all[places[row].corpus], .begin = places[row].begin};
  } else {
    const RandomKey key = stream_key(seed, step, Stream::windows);
    const auto places =
        static_cast<std::uint64_t>(all.front().size() - options_.context - next() + 1);
    for (std::size_t row = 0; row < windows.size(); ++row)
      windows[row] = {.text = &all.front(),
                      .begin = static_cast<std::int64_t>(draw(key, row, places))};
  }
  for (std::size_t row = 0; row < windows.size(); ++row) {
    windows[row].length = options_.context;
    windows[row].random_place = row * static_cast<std::uint64_t>(options_.context);
  }
  return windows;
}

model::Batch TextDataset::training_batch(std::int64_t step, std::int64_t batch,
                                         std::uint64_t seed) const {
  check_batch(batch);
  std::vector<Window> windows = draw_windows(step, batch, seed);
  if (options_.prompts) {
    const RandomKey prompts = stream_key(seed, step, Stream::prompts);
    for (std::size_t row = 0; row < windows.size(); ++row)
      windows[row].prompt = static_cast<std::int64_t>(
          draw(prompts, row, static_cast<std::uint64_t>(options_.context)));
  }
  model::Batch made = make(windows, stream_key(seed, step, Stream::masks));
  if (made.counted == 0) ask_for_one(windows.front(), made);  // a step needs a target
  return made;
}

BatchShape TextDataset::training_shape(std::int64_t /*step*/, std::int64_t batch,
                                       std::uint64_t /*seed*/) const {
  check_batch(batch);
  return {batch, options_.context, 0, has_documents(Split::training)};
}

std::int64_t TextDataset::windows(const EncodedText& text) const {
  return batches_of(text.size() - next(), options_.context);
}

std::int64_t TextDataset::windows(Split split) const {
  std::int64_t sum = 0;
  for (const EncodedText& text : texts(split)) sum += windows(text);
  return sum;
}

std::int64_t TextDataset::batches(Split split, std::int64_t batch) const {
  check_batch(batch);
  return batches_of(windows(split), batch);
}

// Window `index` of all, the texts being read one after another.
TextDataset::Window TextDataset::window_at(Split split, std::int64_t index) const {
  std::uint64_t before = 0;  // tokens
  for (const EncodedText& text : texts(split)) {
    if (index >= windows(text)) {
      index -= windows(text);
      before += static_cast<std::uint64_t>(text.size());
      continue;
    }
    Window window{.text = &text, .begin = index * options_.context};
    window.length = std::min(options_.context, text.size() - next() - window.begin);
    window.random_place = before + static_cast<std::uint64_t>(window.begin);
    return window;
  }
  return {};  // not reached: the index was checked
}

model::Batch TextDataset::batch(Split split, std::int64_t index, std::int64_t batch) const {
  check_index(index, batches(split, batch));
  const std::int64_t first = index * batch;
  std::vector<Window> row_windows;
  for (std::int64_t i = first; i < std::min(first + batch, windows(split)); ++i) {
    row_windows.push_back(window_at(split, i));
    if (options_.prompts) row_windows.back().prompt = row_windows.back().length / 2;
  }
  model::Batch made = make(row_windows, stream_key(kEvaluationSeed, 0, Stream::masks));
  // So does an evaluation. That of a split's first window does not depend on where batches end, as
  // one in each batch would.
  const auto* targets = made.targets.data<std::int32_t>();
  if (index == 0 && std::all_of(targets, targets + made.targets.size(1),
                                [](std::int32_t t) { return t == model::kIgnore; }))
    ask_for_one(row_windows.front(), made);
  return made;
}

model::Batch TextDataset::make(Windows windows, const RandomKey& masks) const {
  const auto rows = static_cast<std::int64_t>(windows.size());
  std::int64_t longest = 0;
  for (const Window& window : windows) longest = std::max(longest, window.length);
  model::Batch batch;
  batch.tokens = Tensor::empty({rows, longest}, DType::i32);
  batch.targets = Tensor::empty({rows, longest}, DType::i32);
  // Only the last window of a text can be shorter.
  if (std::ranges::any_of(windows, [&](const Window& w) { return w.length < longest; })) {
    std::vector<std::int64_t> lengths;
    for (const Window& window : windows) lengths.push_back(window.length);
    batch.lengths = Tensor::from<std::int64_t>({rows}, lengths);
  }
  if (masking_)
    fill_masked(windows, masks, batch);
  else
    fill_language(windows, batch);
  if (std::ranges::any_of(windows, [](const Window& w) { return w.text->document_count() > 0; }))
    add_documents(windows, batch);
  if (options_.prompts) add_prompts(windows, batch);
  return batch;
}

void TextDataset::ask_for_one(const Window& first, model::Batch& batch) const {
  auto* targets = batch.targets.mutable_data<std::int32_t>();
  if (masking_) {
    masking_->hide({batch.tokens.mutable_data<std::int32_t>(), 1}, {targets, 1}, 0);
  } else {  // nothing but ends of documents
    const std::int64_t last = first.length - 1;
    targets[last] = first.text->at(first.begin + last + 1);
  }
  ++batch.counted;
}

void TextDataset::fill_language(Windows windows, model::Batch& batch) const {
  const std::int64_t longest = batch.tokens.size(1);
  auto* tokens = batch.tokens.mutable_data<std::int32_t>();
  auto* targets = batch.targets.mutable_data<std::int32_t>();
  for (const Window& window : windows) {
    window.text->copy(window.begin, window.length, tokens);
    window.text->copy(window.begin + 1, window.length, targets);
    std::fill(tokens + window.length, tokens + longest, codec().padding());
    std::fill(targets + window.length, targets + longest, model::kIgnore);
    batch.counted += window.length;
    tokens += longest;
    targets += longest;
  }
}

void TextDataset::fill_masked(Windows windows, const RandomKey& masks, model::Batch& batch) const {
  const std::int64_t longest = batch.tokens.size(1);
  auto* const tokens = batch.tokens.mutable_data<std::int32_t>();
  auto* const targets = batch.targets.mutable_data<std::int32_t>();
  for (std::size_t row = 0; row < windows.size(); ++row) {
    const Window& window = windows[row];
    std::int32_t* out = tokens + static_cast<std::int64_t>(row) * longest;
    std::int32_t* wanted = targets + static_cast<std::int64_t>(row) * longest;
    const auto length = static_cast<std::size_t>(window.length);
    window.text->copy(window.begin, window.length, out);
    std::fill(out + window.length, out + longest, codec().padding());
    std::fill(wanted + window.length, wanted + longest, model::kIgnore);
    batch.counted += masking_->apply({out, length}, {wanted, length}, masks, window.random_place);
  }
}

// Documents are numbered from the window's first. A language model is not asked for the first token
// of a document: its last token before that sees nothing of it.
void TextDataset::add_documents(Windows windows, model::Batch& batch) const {
  const std::int64_t longest = batch.tokens.size(1);
  batch.documents = Tensor::empty(batch.tokens.shape(), DType::i64);
  auto* numbers = batch.documents.mutable_data<std::int64_t>();
  auto* targets = batch.targets.mutable_data<std::int32_t>();
  std::vector<std::uint8_t> begins(static_cast<std::size_t>(longest) + 1);
  for (const Window& window : windows) {
    window.text->copy_begins(window.begin, longest + 1, begins.data());
    std::int64_t number = 0;
    for (std::int64_t i = 0; i < longest; ++i) {
      if (i > 0) number += begins[static_cast<std::size_t>(i)];
      numbers[i] = number;
      const bool last = begins[static_cast<std::size_t>(i) + 1] != 0;
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
