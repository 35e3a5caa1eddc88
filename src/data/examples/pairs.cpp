// Sentence pairs. An empty side or a side that is too long drops the pair from training, where it
// is counted; for evaluation it is an Error, since leaving pairs out would change the score.
#include <algorithm>
#include <utility>

#include "base/parallel_each.h"
#include "data/examples/examples.h"
#include "data/examples/padding.h"
#include "data/examples/splits.h"
#include "data/loading.h"
#include "data/order/tokens.h"
#include "io/errors.h"

namespace heddle::data {
namespace {

struct RawPair {
  LinesPtr source_file, target_file;  // they own the views
  std::string_view source, target;
  std::size_t line = 0;  // of both files
};

std::vector<RawPair> read_two_files(const LoadRequest& request, const Files& files) {
  const LinesPtr source = read_lines(request.config, files.source);
  const LinesPtr target = read_lines(request.config, files.target);
  const std::size_t count = std::min(source->size(), target->size());
  if (source->size() != target->size()) {
    const io::TextLines& longer = source->size() > count ? *source : *target;
    fail_at_line(longer, count, "has no line beside it in the other file",
                 "as many lines in the source as in the target",
                 std::to_string(source->size()) + " and " + std::to_string(target->size()));
  }
  std::vector<RawPair> pairs;
  pairs.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    pairs.push_back({source, target, (*source)[i], (*target)[i], i});
  return pairs;
}

std::vector<RawPair> read_one_file(const LoadRequest& request, const Files& files) {
  const LinesPtr lines = read_lines(request.config, files.pairs);
  std::vector<RawPair> pairs;
  pairs.reserve(lines->size());
  for (std::size_t i = 0; i < lines->size(); ++i) {
    const std::string_view line = (*lines)[i];
    const std::size_t tab = line.find('\t');
    if (tab == std::string_view::npos || line.find('\t', tab + 1) != std::string_view::npos)
      fail_at_line(*lines, i, "is no pair", "source<TAB>target, one tab", io::shown(line));
    pairs.push_back({lines, lines, line.substr(0, tab), line.substr(tab + 1), i});
  }
  return pairs;
}

std::vector<RawPair> read_pairs(const LoadRequest& request, Split split) {
  const Files& files = request.config.files(split);
  return files.pairs.empty() ? read_two_files(request, files) : read_one_file(request, files);
}

std::shared_ptr<const Codec> make_codec(const LoadRequest& request,
                                        const std::vector<RawPair>& training) {
  std::vector<std::string_view> sources, targets;
  for (const RawPair& pair : training) {
    sources.push_back(pair.source);
    targets.push_back(pair.target);
  }
  const bool shared = request.config.target_tokenizer.empty();
  if (shared) sources.insert(sources.end(), targets.begin(), targets.end());
  const text::SpecialTokens specials{.pad = true, .begin = true, .end = true, .unknown = true};

  CodecParts parts;
  parts.task = request.task;
  parts.length = request.max_length();
  parts.source_end = request.config.source_end.value_or(true);
  const MadeTokenizer source =
      make_tokenizer(request, {"tokenizer", request.config.tokenizer, sources, specials});
  parts.source = source.tokenizer;
  parts.specials = source.specials;
  if (!shared) {
    const MadeTokenizer target = make_tokenizer(
        request, {"target_tokenizer", request.config.target_tokenizer, targets, specials});
    parts.target = target.tokenizer;
  }
  return std::make_shared<Codec>(std::move(parts));
}

class PairExamples final : public Examples {
 public:
  explicit PairExamples(const Codec& codec)
      : sources_(codec.source().vocabulary()),
        targets_(codec.target().vocabulary()),
        begin_(codec.begin()),
        end_(codec.end()),
        padding_(codec.padding()),
        target_padding_(codec.target_padding()) {}

  void add(std::span<const std::int32_t> source, std::span<const std::int32_t> target) {
    sources_.add(source);
    targets_.add(target);
  }

  std::int64_t count() const override { return sources_.count(); }
  std::uint64_t length_key(std::int64_t example) const override {
    return (static_cast<std::uint64_t>(sources_.length(example)) << 32) |
           static_cast<std::uint64_t>(targets_.length(example));
  }
  BatchShape shape(std::span<const std::int64_t> examples) const override {
    const auto rows = static_cast<std::int64_t>(examples.size());
    const auto example = [&](std::int64_t row) { return examples[static_cast<std::size_t>(row)]; };
    return {rows,
            longest_row(rows, [&](std::int64_t row) { return sources_.length(example(row)); }),
            longest_row(rows, [&](std::int64_t row) { return targets_.length(example(row)) + 1; })};
  }
  model::Batch make(std::span<const std::int64_t> examples,
                    const std::optional<RandomKey>& augment) const override;
  std::int64_t bytes() const override { return sources_.bytes() + targets_.bytes(); }

 private:
  Sequences sources_, targets_;  // with the end token, where there is one; without begin and end
  std::int32_t begin_, end_, padding_, target_padding_;
};

model::Batch PairExamples::make(std::span<const std::int64_t> examples,
                                const std::optional<RandomKey>& /*augment*/) const {
  const auto rows = static_cast<std::int64_t>(examples.size());
  const auto example = [&](std::int64_t row) { return examples[static_cast<std::size_t>(row)]; };
  const auto target_length = [&](std::int64_t row) { return targets_.length(example(row)) + 1; };
  Padded source = pad_rows(
      rows, padding_, [&](std::int64_t row) { return sources_.length(example(row)); },
      [&](std::int64_t row, std::int32_t* out) { sources_.copy(example(row), out); });
  Padded read =
      pad_rows(rows, target_padding_, target_length, [&](std::int64_t row, std::int32_t* out) {
        out[0] = begin_;
        targets_.copy(example(row), out + 1);
      });
  Padded written =
      pad_rows(rows, model::kIgnore, target_length, [&](std::int64_t row, std::int32_t* out) {
        targets_.copy(example(row), out);
        out[target_length(row) - 1] = end_;
      });
  model::Batch batch;
  batch.tokens = std::move(source.values);
  batch.lengths = std::move(source.lengths);
  batch.target_tokens = std::move(read.values);
  batch.target_lengths = std::move(read.lengths);
  batch.targets = std::move(written.values);
  for (std::int64_t row = 0; row < rows; ++row) batch.counted += target_length(row);
  return batch;
}

struct EncodedPair {
  std::vector<std::int32_t> source, target;
  bool blank = false, too_long = false;
};

EncodedPair encode(const Codec& codec, const RawPair& raw, std::int64_t max_length,
                   bool droppable) {
  EncodedPair pair;
  pair.blank = is_blank(raw.source) || is_blank(raw.target);
  if (pair.blank) {
    if (droppable) return pair;
    const io::TextLines& file = is_blank(raw.source) ? *raw.source_file : *raw.target_file;
    fail_at_line(file, raw.line, "has an empty side", "a sentence pair to evaluate");
  }
  pair.source =
      at_line(*raw.source_file, raw.line, [&] { return codec.encode_source(raw.source); });
  pair.target =
      at_line(*raw.target_file, raw.line, [&] { return codec.encode_target(raw.target); });
  const std::int64_t source =  // without the end
      static_cast<std::int64_t>(pair.source.size()) - (codec.has_source_end() ? 1 : 0);
  const auto target = static_cast<std::int64_t>(pair.target.size());
  pair.too_long = std::max(source, target) > max_length;
  if (pair.too_long && !droppable)
    fail_at_line(source > target ? *raw.source_file : *raw.target_file, raw.line,
                 "sentence for evaluation is too long",
                 "at most " + std::to_string(max_length) + " tokens (max_length)",
                 std::to_string(std::max(source, target)));
  return pair;
}

void encode_pairs(const LoadRequest& request, const Codec& codec, std::span<const RawPair> raw,
                  EncodedSplit& split) {
  std::vector<EncodedPair> encoded(raw.size());
  const bool droppable = from_training_files(request, split.which);
  parallel_each(static_cast<std::int64_t>(raw.size()), 256, [&](std::int64_t i) {
    const auto place = static_cast<std::size_t>(i);
    encoded[place] = encode(codec, raw[place], request.max_length(), droppable);
  });
  auto examples = std::make_unique<PairExamples>(codec);
  SplitFacts& facts = split.facts;
  facts.unit = "pairs";
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const EncodedPair& pair = encoded[i];
    facts.blank += pair.blank ? 1 : 0;
    facts.too_long += pair.too_long ? 1 : 0;
    if (pair.blank || pair.too_long) continue;
    examples->add(pair.source, pair.target);
    ++facts.examples;
    facts.tokens += static_cast<std::int64_t>(pair.source.size());
    facts.target_tokens += static_cast<std::int64_t>(pair.target.size()) + 1;
    facts.unknown += count_of(pair.source, codec.source().unknown()) +
                     count_of(pair.target, codec.target().unknown());
    if (split.which != Split::training)
      split.pairs.push_back({std::string(raw[i].source), std::string(raw[i].target)});
  }
  split.examples = std::move(examples);
}

}  // namespace

std::unique_ptr<Dataset> open_pairs(const LoadRequest& request) {
  const RawSplits<RawPair> raw =
      read_splits<RawPair>(request, [&](Split split) { return read_pairs(request, split); });
  const std::shared_ptr<const Codec> codec =
      request.options.codec ? request.options.codec : make_codec(request, *raw[0]);
  return encode_splits(request, codec, raw, encode_pairs);
}

}  // namespace heddle::data
