// Conversations, one a line: each is a row of its own, so that none sees another, and positions
// begin at 0. Only answers are predicted.
#include <algorithm>
#include <utility>

#include "base/key_error.h"
#include "base/parallel_each.h"
#include "data/chat/answers.h"
#include "data/examples/padding.h"
#include "data/examples/splits.h"
#include "data/loading.h"
#include "data/memory_of.h"
#include "data/order/tokens.h"

namespace heddle::data {
namespace {

struct RawChat {
  LinesPtr file;  // owns the view
  std::string_view json;
  std::size_t line = 0;
};

std::vector<RawChat> read_chat(const LoadRequest& request, Split split) {
  const LinesPtr lines = read_lines(request.config, request.config.files(split).chat);
  std::vector<RawChat> all;
  all.reserve(lines->size());
  for (std::size_t i = 0; i < lines->size(); ++i)
    if (!is_blank((*lines)[i])) all.push_back({lines, (*lines)[i], i});
  return all;
}

class ChatExamples final : public Examples {
 public:
  explicit ChatExamples(const Codec& codec)
      : tokens_(codec.source().vocabulary()), padding_(codec.padding()) {}

  void add(const Conversation& conversation) {
    tokens_.add(conversation.tokens);
    answers_.insert(answers_.end(), conversation.answers.begin(), conversation.answers.end());
    first_answer_.push_back(answers_.size());
  }

  std::int64_t count() const override { return tokens_.count(); }
  std::uint64_t length_key(std::int64_t example) const override {
    return static_cast<std::uint64_t>(tokens_.length(example));
  }
  BatchShape shape(std::span<const std::int64_t> examples) const override {
    const auto rows = static_cast<std::int64_t>(examples.size());
    return {rows, longest_row(rows, [&](std::int64_t row) {
              return read_of(examples[static_cast<std::size_t>(row)]);
            })};
  }
  model::Batch make(std::span<const std::int64_t> examples,
                    const std::optional<RandomKey>& /*augment*/) const override;
  std::int64_t bytes() const override {
    return tokens_.bytes() + memory_of(answers_) + memory_of(first_answer_);
  }

 private:
  // Tokens that are read: the last one is only predicted.
  std::int64_t read_of(std::int64_t example) const { return tokens_.length(example) - 1; }
  std::span<const TokenRange> answers_of(std::int64_t example) const {
    const auto i = static_cast<std::size_t>(example);
    return std::span(answers_).subspan(first_answer_[i], first_answer_[i + 1] - first_answer_[i]);
  }

  Sequences tokens_;
  std::vector<TokenRange> answers_;           // of all, one after another
  std::vector<std::size_t> first_answer_{0};  // of each, and the end
  std::int32_t padding_;
};

model::Batch ChatExamples::make(std::span<const std::int64_t> examples,
                                const std::optional<RandomKey>& /*augment*/) const {
  const auto rows = static_cast<std::int64_t>(examples.size());
  const auto example = [&](std::int64_t row) { return examples[static_cast<std::size_t>(row)]; };
  const auto length = [&](std::int64_t row) { return read_of(example(row)); };
  std::vector<std::int32_t> tokens;
  const auto load = [&](std::int64_t row) {
    tokens.resize(static_cast<std::size_t>(tokens_.length(example(row))));
    tokens_.copy(example(row), tokens.data());
  };
  model::Batch batch;
  Padded read = pad_rows(rows, padding_, length, [&](std::int64_t row, std::int32_t* out) {
    load(row);
    std::copy(tokens.begin(), tokens.end() - 1, out);
  });
  Padded wanted = pad_rows(rows, model::kIgnore, length, [&](std::int64_t row, std::int32_t* out) {
    load(row);
    std::fill(out, out + length(row), model::kIgnore);
    for (const TokenRange& answer : answers_of(example(row))) {
      std::copy(tokens.begin() + answer.begin, tokens.begin() + answer.end, out + answer.begin - 1);
      batch.counted += answer.end - answer.begin;
    }
  });
  batch.tokens = std::move(read.values);
  batch.lengths = std::move(read.lengths);
  batch.targets = std::move(wanted.values);
  return batch;
}

void encode_chat(const LoadRequest& request, const Codec& codec, std::span<const RawChat> raw,
                 EncodedSplit& split) {
  const Conversations conversations(codec);
  std::vector<Conversation> encoded(raw.size());
  parallel_each(static_cast<std::int64_t>(raw.size()), 8, [&](std::int64_t i) {
    const RawChat& chat = raw[static_cast<std::size_t>(i)];
    encoded[static_cast<std::size_t>(i)] =
        at_line(*chat.file, chat.line, [&] { return conversations.encode(chat.json); });
  });
  auto examples = std::make_unique<ChatExamples>(codec);
  SplitFacts& facts = split.facts;
  facts.unit = "conversations";
  const bool skips =
      request.config.skip_long.value_or(false) && from_training_files(request, split.which);
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const std::int64_t length = std::ssize(encoded[i].tokens);
    if (length > request.max_length()) {
      if (!skips)
        fail_at_line(*raw[i].file, raw[i].line, "the conversation is too long",
                     "at most " + std::to_string(request.max_length()) +
                         " tokens (max_length, or the model's context); skip_long = true leaves "
                         "such ones out of training",
                     std::to_string(length));
      ++facts.too_long;
      continue;
    }
    examples->add(encoded[i]);
    ++facts.examples;
    facts.tokens += length;
    facts.unknown += count_of(encoded[i].tokens, codec.source().unknown());
    for (const TokenRange& answer : encoded[i].answers)
      facts.answer_tokens += answer.end - answer.begin;
  }
  split.examples = std::move(examples);
}

}  // namespace

std::unique_ptr<Dataset> open_chat(const LoadRequest& request) {
  const std::shared_ptr<const Codec>& codec = request.options.codec;
  if (!codec || codec->templates().empty())
    throw KeyError("[data]", {"data.chat", "train.from"},
                   " needs a model that knows how conversations are written",
                   "train.from with a model that has a chat template", "none");
  const RawSplits<RawChat> raw =
      read_splits<RawChat>(request, [&](Split split) { return read_chat(request, split); });
  return encode_splits(request, codec, raw, encode_chat);
}

}  // namespace heddle::data
