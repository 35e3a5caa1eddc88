#include "data/loading.h"

#include <algorithm>
#include <cmath>

#include "base/key_error.h"
#include "data/order/draw.h"
#include "heddle/error.h"
#include "language/language.h"
#include "language/layout.h"

namespace heddle::data {

std::int64_t LoadRequest::max_length() const {
  const std::int64_t own = config.max_length.value_or(kDefaultMaxLength);
  if (!options.codec) return own;
  const std::int64_t made_for = options.codec->max_tokens();
  return config.max_length ? std::min(own, made_for) : made_for;
}

bool LoadRequest::wants(Split split) const {
  if (split == Split::training) return options.training;
  if (split == Split::test) return options.test && config.test.given();
  return options.validation && (config.validation.given() || held_out_share() > 0);
}

double LoadRequest::held_out_share() const {
  if (config.validation.given()) return 0;
  const bool text = !config.training.text.empty();
  return config.validation_share.value_or(text ? kDefaultTextShare : 0);
}

bool LoadRequest::reads_training() const {
  return options.training || (options.validation && held_out_share() > 0);
}

bool from_training_files(const LoadRequest& request, Split split) {
  return split == Split::training ||
         (split == Split::validation && !request.config.validation.given());
}

text::TokenizerSpec tokenizer_spec(const DataConfig& config, std::string_view key,
                                   const std::string& spec) {
  text::TokenizerSpec parsed = text::TokenizerSpec::parse(spec, "data." + std::string(key));
  if (parsed.kind == text::TokenizerSpec::Kind::word && config.min_count && spec == "word")
    parsed.minimum_count = *config.min_count;
  return parsed;
}

namespace {

// Who watches a text being read sees merges as well.
text::ProgressSink merging_told(const OpenOptions& options) {
  if (!options.reading) return {};
  return [&options](const text::TrainingProgress& p) {
    if (p.phase == text::TrainingProgress::Phase::merging)
      options.reading({ReadingProgress::Phase::merging, p.done, p.total});
  };
}

}  // namespace

MadeTokenizer make_tokenizer(const LoadRequest& request, const TokenizerRequest& what) {
  using Kind = text::TokenizerSpec::Kind;
  text::TokenizerSpec spec = tokenizer_spec(request.config, what.key, what.spec);
  if (spec.kind == Kind::file) {
    spec.file = resolve_path(request.config, spec.file.string());
    // The codec checks the task's requirements on it.
    return {text::train_tokenizer(spec, {}), text::SpecialsInText::recognised};
  }
  text::SpecialTokens specials = what.specials;
  if (spec.kind == Kind::byte || spec.kind == Kind::bpe) specials.unknown = false;
  const text::ProgressSink progress =
      request.options.progress ? request.options.progress : merging_told(request.options);
  try {
    return {what.pieces != nullptr ? text::train_on_pieces(spec, *what.pieces, specials, progress)
                                   : text::train_tokenizer(spec, what.texts, specials, progress),
            text::SpecialsInText::plain};
  } catch (const Error& e) {
    if (e.where() != "tokenizer") throw;
    throw KeyError("[data]", {"data." + std::string(what.key)}, ": " + e.problem(), e.expected(),
                   e.got());
  }
}

std::vector<bool> held_out(std::int64_t count, double share, const std::string& where) {
  if (count < 2)
    fail(ErrorCode::invalid_argument, where, "too few examples to hold some out", "at least 2",
         std::to_string(count));
  const auto wanted = static_cast<std::int64_t>(std::llround(share * static_cast<double>(count)));
  const std::int64_t chosen = std::clamp(wanted, std::int64_t{1}, count - 1);
  const std::vector<std::int64_t> order = permutation(count, stream_key(0, 0, Stream::held_out));
  std::vector<bool> held(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < chosen; ++i)
    held[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
  return held;
}

std::int64_t count_of(std::span<const std::int32_t> ids, std::optional<std::int32_t> id) {
  return id ? std::count(ids.begin(), ids.end(), *id) : 0;
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t place = digits.size(); place > first + 3;) {
    place -= 3;
    digits.insert(place, ",");
  }
  return digits;
}

namespace {

std::string percent(std::int64_t part, std::int64_t whole) {
  const auto tenths = std::llround(1000.0 * static_cast<double>(part) /
                                   static_cast<double>(std::max<std::int64_t>(whole, 1)));
  if (tenths == 0) return tr("under 0.1 %");
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

// The heading of a line of the summary.
std::string titled(const char* title) { return padded(tr(title), 12); }

std::string tokens_text(const SplitFacts& facts) {
  const std::string tokens = grouped(facts.tokens), words = grouped(facts.words);
  if (facts.target_tokens > 0)
    return tr("{} source and {} target tokens", tokens, grouped(facts.target_tokens));
  if (facts.answer_tokens > 0)
    return tr("{} tokens, {} of answers", tokens, grouped(facts.answer_tokens));
  if (facts.documents == 1) return tr("{} tokens in 1 document", tokens);
  if (facts.documents > 1) return tr("{} tokens in {} documents", tokens, grouped(facts.documents));
  if (facts.words > 0 && facts.tokens > facts.words)
    return tr("{} words of {} tokens", words, tokens);
  if (facts.words > 0) return tr("{} words", words);
  return facts.tokens > 0 ? tr("{} tokens", tokens) : "";
}

std::string examples_text(const SplitFacts& facts) {
  const std::string count = grouped(facts.examples);
  if (facts.unit == "conversations") return tr("{} conversations", count);
  if (facts.unit == "pairs") return tr("{} pairs", count);
  if (facts.unit == "texts") return tr("{} texts", count);
  if (facts.unit == "sentences") return tr("{} sentences", count);
  return tr("{} images", count);
}

std::string size_text(const SplitFacts& facts) {
  if (facts.unit.empty()) return tokens_text(facts);
  const std::string examples = examples_text(facts);
  return facts.tokens > 0 ? tr("{}, {}", examples, tokens_text(facts)) : examples;
}

}  // namespace

void check_not_empty(const LoadRequest& request, Split split, const SplitFacts& facts) {
  if (facts.examples > 0) return;
  const Split files = from_training_files(request, split) ? Split::training : split;
  fail(ErrorCode::io, request.config.files(files).first(), "no " + facts.unit + " are left",
       "at least one",
       grouped(facts.too_long) + " longer than max_length, " + grouped(facts.blank) +
           " with an empty side");
}

std::string describe(Split split, const SplitFacts& facts, std::int64_t max_length) {
  constexpr std::array<const char*, kSplits> kNames = {mark("training:"), mark("validation:"),
                                                       mark("test:")};
  std::string line = titled(kNames[static_cast<std::size_t>(split)]);
  line += size_text(facts);
  if (facts.unknown > 0)
    line += tr(", {} unknown", percent(facts.unknown, facts.tokens + facts.target_tokens));
  const std::string limit = grouped(max_length);
  if (facts.too_long > 0)
    line += tr("; {} dropped, longer than {} tokens (max_length)", grouped(facts.too_long), limit);
  if (facts.blank > 0) line += tr("; {} dropped, with an empty side", grouped(facts.blank));
  if (facts.cut > 0)
    line += tr("; {} cut, longer than {} tokens (max_length)", grouped(facts.cut), limit);
  return line + "\n";
}

std::string describe_labels(const Codec& codec) {
  constexpr std::size_t kShown = 20;
  const std::vector<std::string>& labels = codec.labels();
  if (labels.empty()) return {};
  std::string list;
  for (std::size_t i = 0; i < std::min(labels.size(), kShown); ++i)
    list += (i == 0 ? "" : ", ") + labels[i];
  if (labels.size() > kShown) list += ", …";
  const std::string count = grouped(static_cast<std::int64_t>(labels.size()));
  return titled(mark("labels:")) + tr("{}: {}", count, list) + "\n";
}

std::string describe_token_folder(const std::string& folder, std::int64_t bytes) {
  return titled(mark("files:")) + tr("{} bytes of tokens in {}", grouped(bytes), folder) + "\n";
}

std::string describe_tokenizers(const Codec& codec) {
  const auto one = [](const text::Tokenizer& tokenizer) {
    return tr("{}, {} tokens", tokenizer.kind(), grouped(tokenizer.vocabulary()));
  };
  std::string text = titled(mark("tokenizer:")) + one(codec.source());
  if (&codec.target() != &codec.source()) text += tr("; of the target: {}", one(codec.target()));
  return text + "\n" + describe_labels(codec);
}

}  // namespace heddle::data
