// Texts with a label. One that is too long is cut at its end and counted: the beginning of a text
// mostly tells what it is.
#include <algorithm>
#include <utility>

#include "base/parallel_each.h"
#include "data/codec/labels.h"
#include "data/examples/padding.h"
#include "data/examples/splits.h"
#include "data/loading.h"
#include "data/memory_of.h"
#include "data/order/tokens.h"
#include "io/errors.h"

namespace heddle::data {
namespace {

struct RawText {
  LinesPtr file;  // owns the views
  std::string_view label, text;
  std::size_t line = 0;
};

std::vector<RawText> read_labelled(const LoadRequest& request, Split split) {
  const LinesPtr lines = read_lines(request.config, request.config.files(split).labelled);
  std::vector<RawText> texts;
  texts.reserve(lines->size());
  for (std::size_t i = 0; i < lines->size(); ++i) {
    const std::string_view line = (*lines)[i];
    const std::size_t tab = line.find('\t');
    const bool whole = tab != std::string_view::npos && !is_blank(line.substr(0, tab)) &&
                       !is_blank(line.substr(tab + 1));
    if (!whole)
      fail_at_line(*lines, i, "is no text with a label", "label<TAB>text, neither empty",
                   io::shown(line));
    texts.push_back({lines, line.substr(0, tab), line.substr(tab + 1), i});
  }
  return texts;
}

std::shared_ptr<const Codec> make_codec(const LoadRequest& request,
                                        const std::vector<RawText>& training) {
  std::vector<std::string_view> texts, labels;
  for (const RawText& text : training) {
    texts.push_back(text.text);
    labels.push_back(text.label);
  }
  CodecParts parts;
  parts.task = request.task;
  parts.length = request.max_length();
  parts.labels = sorted_labels(labels);
  const MadeTokenizer made =
      make_tokenizer(request, {"tokenizer", request.config.tokenizer, texts, {.unknown = true}});
  parts.source = made.tokenizer;
  parts.specials = made.specials;
  return std::make_shared<Codec>(std::move(parts));
}

class LabelledExamples final : public Examples {
 public:
  explicit LabelledExamples(const Codec& codec)
      : tokens_(codec.source().vocabulary()), padding_(codec.padding()) {}

  void add(std::span<const std::int32_t> tokens, std::int32_t label) {
    tokens_.add(tokens);
    labels_.push_back(label);
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
                    const std::optional<RandomKey>& /*augment*/) const override {
    const auto rows = static_cast<std::int64_t>(examples.size());
    const auto example = [&](std::int64_t row) { return examples[static_cast<std::size_t>(row)]; };
    Padded tokens = pad_rows(
        rows, padding_, [&](std::int64_t row) { return tokens_.length(example(row)); },
        [&](std::int64_t row, std::int32_t* out) { tokens_.copy(example(row), out); });
    model::Batch batch;
    batch.tokens = std::move(tokens.values);
    batch.lengths = std::move(tokens.lengths);
    batch.targets = Tensor::empty({rows}, DType::i32);
    auto* out = batch.targets.mutable_data<std::int32_t>();
    for (std::int64_t row = 0; row < rows; ++row)
      out[row] = labels_[static_cast<std::size_t>(example(row))];
    batch.counted = rows;
    return batch;
  }
  std::int64_t bytes() const override { return tokens_.bytes() + memory_of(labels_); }

 private:
  Sequences tokens_;
  std::vector<std::int32_t> labels_;
  std::int32_t padding_;
};

void encode_labelled(const LoadRequest& request, const Codec& codec, std::span<const RawText> raw,
                     EncodedSplit& split) {
  std::vector<std::vector<std::int32_t>> encoded(raw.size());
  std::vector<std::int32_t> labels(raw.size());
  parallel_each(static_cast<std::int64_t>(raw.size()), 64, [&](std::int64_t i) {
    const auto place = static_cast<std::size_t>(i);
    const RawText& text = raw[place];
    labels[place] = known_label(codec, text.label, *text.file, text.line);
    encoded[place] = at_line(*text.file, text.line, [&] { return codec.encode_source(text.text); });
    if (encoded[place].empty()) fail_at_line(*text.file, text.line, "text has no tokens");
  });
  auto examples = std::make_unique<LabelledExamples>(codec);
  SplitFacts& facts = split.facts;
  facts.unit = "texts";
  const auto longest = static_cast<std::size_t>(request.max_length());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    std::span<const std::int32_t> tokens = encoded[i];
    facts.cut += tokens.size() > longest ? 1 : 0;
    tokens = tokens.first(std::min(tokens.size(), longest));
    examples->add(tokens, labels[i]);
    ++facts.examples;
    facts.tokens += static_cast<std::int64_t>(tokens.size());
    facts.unknown += count_of(tokens, codec.source().unknown());
  }
  split.examples = std::move(examples);
}

}  // namespace

std::unique_ptr<Dataset> open_labelled(const LoadRequest& request) {
  const RawSplits<RawText> raw =
      read_splits<RawText>(request, [&](Split split) { return read_labelled(request, split); });
  const std::shared_ptr<const Codec> codec =
      request.options.codec ? request.options.codec : make_codec(request, *raw[0]);
  return encode_splits(request, codec, raw, encode_labelled);
}

}  // namespace heddle::data
