#include "data/job.h"

#include <algorithm>
#include <cmath>

#include "base/key_error.h"
#include "data/draw.h"
#include "heddle/error.h"

namespace heddle::data {

std::int64_t Job::max_length() const {
  const std::int64_t own = config.max_length.value_or(kDefaultMaxLength);
  if (!options.codec) return own;
  const std::int64_t made_for = options.codec->max_tokens();
  return config.max_length ? std::min(own, made_for) : made_for;
}

bool Job::wants(Split split) const {
  if (split == Split::training) return options.training;
  if (split == Split::test) return options.test && config.test.given();
  return options.validation && (config.validation.given() || held_out_share() > 0);
}

double Job::held_out_share() const {
  if (config.validation.given()) return 0;
  const bool text = !config.training.text.empty();
  return config.validation_share.value_or(text ? kDefaultTextShare : 0);
}

bool Job::reads_training() const {
  return options.training || (options.validation && held_out_share() > 0);
}

bool from_training_files(const Job& job, Split split) {
  return split == Split::training || (split == Split::validation && !job.config.validation.given());
}

text::TokenizerSpec tokenizer_spec(const DataConfig& config, std::string_view key,
                                   const std::string& spec) {
  text::TokenizerSpec parsed = text::TokenizerSpec::parse(spec, "data." + std::string(key));
  if (parsed.kind == text::TokenizerSpec::Kind::word && config.min_count && spec == "word")
    parsed.minimum_count = *config.min_count;
  return parsed;
}

MadeTokenizer make_tokenizer(const Job& job, const TokenizerJob& what) {
  using Kind = text::TokenizerSpec::Kind;
  text::TokenizerSpec spec = tokenizer_spec(job.config, what.key, what.spec);
  if (spec.kind == Kind::file) {
    spec.file = resolve_path(job.config, spec.file.string());
    // What the task needs of it is checked by the codec.
    return {text::train_tokenizer(spec, {}), text::SpecialsInText::recognised};
  }
  text::SpecialTokens specials = what.specials;
  if (spec.kind == Kind::byte || spec.kind == Kind::bpe) specials.unknown = false;
  try {
    return {text::train_tokenizer(spec, what.texts, specials, job.options.progress),
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
  if (tenths == 0) return "under 0.1 %";
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

}  // namespace

void check_not_empty(const Job& job, Split split, const SplitFacts& facts) {
  if (facts.examples > 0) return;
  const Split files = from_training_files(job, split) ? Split::training : split;
  fail(ErrorCode::io, job.config.files(files).first(), "no " + facts.unit + " are left",
       "at least one",
       grouped(facts.too_long) + " longer than max_length, " + grouped(facts.blank) +
           " with an empty side");
}

std::string describe(Split split, const SplitFacts& facts, std::int64_t max_length) {
  constexpr std::array<const char*, kSplits> kNames = {
      "training:   ", "validation: ", "test:       "};
  std::string line = kNames[static_cast<std::size_t>(split)];
  if (!facts.unit.empty()) line += grouped(facts.examples) + " " + facts.unit;
  if (!facts.unit.empty() && facts.tokens > 0) line += ", ";
  if (facts.target_tokens > 0)
    line +=
        grouped(facts.tokens) + " source and " + grouped(facts.target_tokens) + " target tokens";
  else if (facts.words > 0)
    line += grouped(facts.words) + " words" +
            (facts.tokens > facts.words ? " of " + grouped(facts.tokens) + " tokens" : "");
  else if (facts.tokens > 0)
    line += grouped(facts.tokens) + " tokens";
  if (facts.documents > 0) line += " in " + grouped(facts.documents) + " documents";
  if (facts.unknown > 0)
    line += ", " + percent(facts.unknown, facts.tokens + facts.target_tokens) + " unknown";
  const std::string limit = " longer than " + grouped(max_length) + " tokens (max_length)";
  if (facts.too_long > 0) line += "; " + grouped(facts.too_long) + " dropped," + limit;
  if (facts.blank > 0) line += "; " + grouped(facts.blank) + " dropped, with an empty side";
  if (facts.cut > 0) line += "; " + grouped(facts.cut) + " cut," + limit;
  return line + "\n";
}

std::string describe_labels(const Codec& codec) {
  constexpr std::size_t kShown = 20;
  const std::vector<std::string>& labels = codec.labels();
  if (labels.empty()) return {};
  std::string text = "labels:     " + grouped(static_cast<std::int64_t>(labels.size())) + ": ";
  for (std::size_t i = 0; i < std::min(labels.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + labels[i];
  return text + (labels.size() > kShown ? ", …\n" : "\n");
}

std::string describe_tokenizers(const Codec& codec) {
  const auto one = [](const text::Tokenizer& tokenizer) {
    return std::string(tokenizer.kind()) + ", " + grouped(tokenizer.vocabulary()) + " tokens";
  };
  std::string text = "tokenizer:  " + one(codec.source());
  if (&codec.target() != &codec.source()) text += "; of the target: " + one(codec.target());
  return text + "\n" + describe_labels(codec);
}

}  // namespace heddle::data
