// Sentences with a tag for each word. Where a word has several tokens, the first carries the tag.
#include <algorithm>
#include <utility>

#include "base/parallel_each.h"
#include "data/codec/labels.h"
#include "data/codec/word_shape.h"
#include "data/examples/padding.h"
#include "data/examples/splits.h"
#include "data/loading.h"
#include "data/memory_of.h"
#include "data/order/tokens.h"
#include "io/errors.h"

namespace heddle::data {
namespace {

struct RawSentence {
  LinesPtr file;  // owns the views
  std::vector<std::string_view> words, tags;
  std::size_t line = 0;  // of the first word
};

std::vector<RawSentence> read_tags(const LoadRequest& request, Split split) {
  const LinesPtr lines = read_lines(request.config, request.config.files(split).tags);
  std::vector<RawSentence> sentences;
  bool between = true;
  for (std::size_t i = 0; i < lines->size(); ++i) {
    const std::string_view line = (*lines)[i];
    if (is_blank(line)) {
      between = true;
      continue;
    }
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos || line.find('\t', tab + 1) != std::string_view::npos ||
        is_blank(line.substr(0, tab)) || is_blank(line.substr(tab + 1)))
      fail_at_line(*lines, i, "is no word with its tag",
                   "word<TAB>tag, or an empty line between sentences", io::shown(line));
    if (between) sentences.push_back({lines, {}, {}, i});
    between = false;
    sentences.back().words.push_back(line.substr(0, tab));
    sentences.back().tags.push_back(line.substr(tab + 1));
  }
  if (sentences.empty())
    fail_at_line(*lines, lines->size() - 1, "ends without a word",
                 "lines of word<TAB>tag, an empty line between sentences");
  return sentences;
}

bool uses_shapes(const LoadRequest& request) {
  const bool words = tokenizer_spec(request.config, "tokenizer", request.config.tokenizer).kind ==
                     text::TokenizerSpec::Kind::word;
  return words && request.config.word_shapes.value_or(true);
}

std::shared_ptr<const Codec> make_codec(const LoadRequest& request,
                                        const std::vector<RawSentence>& training) {
  std::vector<std::string_view> words, tags;
  for (const RawSentence& sentence : training) {
    words.insert(words.end(), sentence.words.begin(), sentence.words.end());
    tags.insert(tags.end(), sentence.tags.begin(), sentence.tags.end());
  }
  CodecParts parts;
  parts.task = request.task;
  parts.length = request.max_length();
  parts.labels = sorted_labels(tags);
  parts.word_shapes = uses_shapes(request);

  std::vector<std::string> shaped;
  if (parts.word_shapes) {
    // Rare words are gone already: what is left are the tokens, however often they come.
    const std::int64_t min_count =
        tokenizer_spec(request.config, "tokenizer", request.config.tokenizer).minimum_count;
    shaped = shape_rare_words(words, min_count);
    words.assign(shaped.begin(), shaped.end());
  }
  const MadeTokenizer made =
      make_tokenizer(request, {"tokenizer",
                               parts.word_shapes ? "word:1" : request.config.tokenizer,
                               words,
                               {.unknown = true}});
  parts.source = made.tokenizer;
  parts.specials = made.specials;
  return std::make_shared<Codec>(std::move(parts));
}

// The first token of each has its tag.
std::int64_t words_in(std::span<const std::int32_t> labels) {
  return std::ranges::count_if(labels, [](std::int32_t label) { return label != model::kIgnore; });
}

class TagExamples final : public Examples {
 public:
  explicit TagExamples(const Codec& codec)
      : tokens_(codec.source().vocabulary()), padding_(codec.padding()) {}

  void add(std::span<const std::int32_t> tokens, std::span<const std::int32_t> labels) {
    tokens_.add(tokens);
    labels_.insert(labels_.end(), labels.begin(), labels.end());
    starts_.push_back(static_cast<std::int64_t>(labels_.size()));
    words_.push_back(words_in(labels));
  }

  std::int64_t count() const override { return tokens_.count(); }
  std::uint64_t length_key(std::int64_t example) const override {
    return static_cast<std::uint64_t>(tokens_.length(example));
  }
  BatchShape shape(std::span<const std::int64_t> examples) const override {
    const auto rows = static_cast<std::int64_t>(examples.size());
    return {rows, longest_row(rows, [&](std::int64_t row) {
              return tokens_.length(examples[static_cast<std::size_t>(row)]);
            })};
  }
  model::Batch make(std::span<const std::int64_t> examples,
                    const std::optional<RandomKey>& augment) const override;
  std::int64_t bytes() const override {
    return tokens_.bytes() + memory_of(labels_) + memory_of(starts_) + memory_of(words_);
  }

 private:
  Sequences tokens_;
  std::vector<std::int32_t> labels_;     // of each token; kIgnore after the first of a word
  std::vector<std::int64_t> starts_{0};  // of each sentence in labels_
  std::vector<std::int64_t> words_;
  std::int32_t padding_;
};

model::Batch TagExamples::make(std::span<const std::int64_t> examples,
                               const std::optional<RandomKey>& /*augment*/) const {
  const auto rows = static_cast<std::int64_t>(examples.size());
  const auto example = [&](std::int64_t row) { return examples[static_cast<std::size_t>(row)]; };
  const auto length = [&](std::int64_t row) { return tokens_.length(example(row)); };
  Padded tokens = pad_rows(rows, padding_, length, [&](std::int64_t row, std::int32_t* out) {
    tokens_.copy(example(row), out);
  });
  Padded labels = pad_rows(rows, model::kIgnore, length, [&](std::int64_t row, std::int32_t* out) {
    std::copy_n(labels_.data() + starts_[static_cast<std::size_t>(example(row))], length(row), out);
  });
  model::Batch batch;
  batch.tokens = std::move(tokens.values);
  batch.lengths = std::move(tokens.lengths);
  batch.targets = std::move(labels.values);
  for (const std::int64_t one : examples) batch.counted += words_[static_cast<std::size_t>(one)];
  return batch;
}

struct EncodedSentence {
  std::vector<std::int32_t> tokens, labels;
  bool too_long = false;
};

EncodedSentence encode(const Codec& codec, const RawSentence& raw, std::int64_t max_length,
                       bool droppable) {
  EncodedSentence sentence;
  EncodedWords words = at_line(*raw.file, raw.line, [&] { return codec.encode_words(raw.words); });
  const auto length = static_cast<std::int64_t>(words.tokens.size());
  sentence.too_long = length > max_length;
  if (sentence.too_long && !droppable)
    fail_at_line(*raw.file, raw.line, "sentence for evaluation is too long",
                 "at most " + std::to_string(max_length) + " tokens (max_length)",
                 std::to_string(length));
  sentence.labels.assign(words.tokens.size(), model::kIgnore);
  for (std::size_t i = 0; i < raw.tags.size(); ++i)
    sentence.labels[static_cast<std::size_t>(words.first[i])] =
        known_label(codec, raw.tags[i], *raw.file, raw.line + i);
  sentence.tokens = std::move(words.tokens);
  return sentence;
}

void encode_tags(const LoadRequest& request, const Codec& codec, std::span<const RawSentence> raw,
                 EncodedSplit& split) {
  std::vector<EncodedSentence> encoded(raw.size());
  const bool droppable = from_training_files(request, split.which);
  parallel_each(static_cast<std::int64_t>(raw.size()), 64, [&](std::int64_t i) {
    const auto place = static_cast<std::size_t>(i);
    encoded[place] = encode(codec, raw[place], request.max_length(), droppable);
  });
  auto examples = std::make_unique<TagExamples>(codec);
  SplitFacts& facts = split.facts;
  facts.unit = "sentences";
  for (const EncodedSentence& sentence : encoded) {
    facts.too_long += sentence.too_long ? 1 : 0;
    if (sentence.too_long) continue;
    examples->add(sentence.tokens, sentence.labels);
    ++facts.examples;
    facts.tokens += static_cast<std::int64_t>(sentence.tokens.size());
    facts.words += words_in(sentence.labels);
    facts.unknown += count_of(sentence.tokens, codec.source().unknown());
  }
  split.examples = std::move(examples);
}

}  // namespace

std::unique_ptr<Dataset> open_tags(const LoadRequest& request) {
  const RawSplits<RawSentence> raw =
      read_splits<RawSentence>(request, [&](Split split) { return read_tags(request, split); });
  const std::shared_ptr<const Codec> codec =
      request.options.codec ? request.options.codec : make_codec(request, *raw[0]);
  return encode_splits(request, codec, raw, encode_tags);
}

}  // namespace heddle::data
