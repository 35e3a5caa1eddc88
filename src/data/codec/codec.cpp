#include "data/codec/codec.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/codec/word_shape.h"
#include "data/examples/padding.h"
#include "heddle/error.h"

namespace heddle::data {
namespace {

void require_part(bool there, const CodecParts& parts, std::string_view what) {
  if (there) return;
  fail(ErrorCode::invalid_argument, "codec for " + std::string(model::to_string(parts.task)),
       "has no " + std::string(what));
}

void check_image(const ImageFacts& image) {
  const auto fine = [](std::int64_t size) { return size >= 1 && size <= 1 << 16; };
  const auto channels = static_cast<std::size_t>(std::max<std::int64_t>(image.channels, 0));
  const bool sizes = fine(image.channels) && fine(image.height) && fine(image.width) &&
                     image.mean.size() == channels && image.deviation.size() == channels;
  const bool numbers =
      std::all_of(image.mean.begin(), image.mean.end(), [](float x) { return std::isfinite(x); }) &&
      std::all_of(image.deviation.begin(), image.deviation.end(),
                  [](float x) { return std::isfinite(x) && x > 0; });
  if (!sizes || !numbers)
    fail(ErrorCode::invalid_argument, "codec", "facts about images",
         "sizes of at least 1, and a mean and a deviation above 0 for each channel");
}

void check_parts(const CodecParts& parts) {
  using model::Task;
  const bool labels = parts.task == Task::tag || parts.task == Task::classify;
  if (labels) require_part(!parts.labels.empty(), parts, "labels");
  if (parts.image) {
    require_part((parts.task == Task::classify || parts.task == Task::embed) && !parts.source,
                 parts, "use for images");
    return check_image(*parts.image);
  }
  require_part(parts.source != nullptr, parts, "tokenizer");
  require_part(parts.length >= 1, parts, "length");
  if (parts.target)
    require_part(parts.task == Task::translate, parts, "use for a second tokenizer");
  if (parts.task == Task::masked)
    require_part(parts.source->mask().has_value(), parts, "<mask> among its tokens");
  if (parts.task != Task::translate) return;
  const text::Tokenizer& target = parts.target ? *parts.target : *parts.source;
  require_part(parts.framed || !parts.source_end || parts.source->end(), parts,
               "</s> among the tokens of the source");
  require_part(
      (target.begin() || parts.writing.begin) && (target.end() || !parts.writing.ends.empty()),
      parts, "<s> and </s> among the tokens of the target");
}

void complete(CodecParts& parts) {
  if (parts.task != model::Task::translate) return;
  const text::Tokenizer& target = parts.target ? *parts.target : *parts.source;
  if (!parts.writing.begin) parts.writing.begin = target.begin();
  if (parts.writing.ends.empty()) parts.writing.ends = {*target.end()};
}

[[noreturn]] void fail_absent(std::string_view what, model::Task task) {
  fail(ErrorCode::invalid_argument, "codec", std::string(what) + " is not there", {},
       "a codec for " + std::string(model::to_string(task)));
}

}  // namespace

Codec::Codec(CodecParts parts) : parts_(std::move(parts)) {
  check_parts(parts_);
  complete(parts_);
  for (const std::string& label : parts_.labels) {
    const bool fresh =
        label_ids_.emplace(label, static_cast<std::int32_t>(label_ids_.size())).second;
    if (!fresh) fail(ErrorCode::invalid_argument, "codec", "label " + label + " comes twice");
  }
}

std::shared_ptr<const Codec> Codec::for_language(std::shared_ptr<const text::Tokenizer> tokenizer,
                                                 std::int64_t context) {
  CodecParts parts;
  parts.source = std::move(tokenizer);
  parts.length = context;
  parts.specials = text::SpecialsInText::recognised;
  return std::make_shared<Codec>(std::move(parts));
}

std::shared_ptr<const Codec> Codec::lengthened(std::int64_t length) const {
  CodecParts parts = parts_;
  parts.length = std::max(parts.length, length);
  return std::make_shared<const Codec>(std::move(parts));
}

model::DataSizes Codec::sizes() const {
  model::DataSizes sizes;
  sizes.classes = static_cast<std::int64_t>(parts_.labels.size());
  if (parts_.image) {
    sizes.channels = parts_.image->channels;
    sizes.height = parts_.image->height;
    sizes.width = parts_.image->width;
    return sizes;
  }
  sizes.vocabulary = std::max<std::int64_t>(parts_.rows, parts_.source->vocabulary());
  if (parts_.target) sizes.target_vocabulary = parts_.target->vocabulary();
  // Both sides of a translation have one token more: begin or end.
  sizes.context = parts_.length + (parts_.task == model::Task::translate ? 1 : 0);
  return sizes;
}

const text::Tokenizer& Codec::source() const {
  if (!parts_.source) fail_absent("a tokenizer", parts_.task);
  return *parts_.source;
}

const text::Tokenizer& Codec::target() const { return parts_.target ? *parts_.target : source(); }

const std::string& Codec::label(std::int64_t id) const {
  if (id < 0 || id >= static_cast<std::int64_t>(parts_.labels.size()))
    fail(ErrorCode::out_of_range, "codec", "label", "0 to " + std::to_string(parts_.labels.size()),
         std::to_string(id));
  return parts_.labels[static_cast<std::size_t>(id)];
}

std::optional<std::int32_t> Codec::label_id(std::string_view label) const {
  const auto found = label_ids_.find(std::string(label));
  if (found == label_ids_.end()) return std::nullopt;
  return found->second;
}

const Writing& Codec::writing() const {
  if (parts_.task != model::Task::translate) fail_absent("a begin or end token", parts_.task);
  return parts_.writing;
}

std::int32_t Codec::source_end() const {
  if (parts_.task != model::Task::translate || !source().end())
    fail_absent("an end token", parts_.task);
  return *source().end();
}

std::int32_t Codec::mask() const {
  if (parts_.task != model::Task::masked) fail_absent("a mask token", parts_.task);
  return *source().mask();
}

std::int32_t Codec::padding() const { return source().pad().value_or(0); }
std::int32_t Codec::target_padding() const { return target().pad().value_or(0); }

std::vector<std::int32_t> Codec::around(std::vector<std::int32_t> tokens) const {
  return parts_.framed ? source().framed(tokens).ids : tokens;
}

CutText Codec::encode_beginning(std::string_view text) const {
  CutText result{source().encode(text, parts_.specials)};
  const auto frame = static_cast<std::int64_t>(around({}).size());
  const auto room = static_cast<std::size_t>(std::max<std::int64_t>(parts_.length - frame, 0));
  result.cut = result.tokens.size() > room;
  if (result.cut) result.tokens.resize(room);
  result.tokens = around(std::move(result.tokens));
  return result;
}

std::vector<std::int32_t> Codec::encode_source(std::string_view text) const {
  std::vector<std::int32_t> ids = around(source().encode(text, parts_.specials));
  if (!parts_.framed && parts_.task == model::Task::translate && parts_.source_end)
    ids.push_back(source_end());
  if (parts_.task == model::Task::translate && ids.empty())
    fail(ErrorCode::invalid_argument, "codec", "a text to translate has no tokens", "one or more");
  return ids;
}

std::vector<std::int32_t> Codec::encode_target(std::string_view text) const {
  return target().encode(text, parts_.specials);
}

void Codec::encode_word(std::string_view word, std::vector<std::int32_t>& tokens) const {
  std::vector<std::int32_t> ids = source().encode(word, parts_.specials);
  const auto unknown = source().unknown();
  const bool nothing_known = unknown && std::count(ids.begin(), ids.end(), *unknown) ==
                                            static_cast<std::ptrdiff_t>(ids.size());
  if (parts_.word_shapes && nothing_known) {
    for (int ending = kLongestEnding; ending >= 0; --ending) {
      std::vector<std::int32_t> shape =
          source().encode(word_shape(word, ending), text::SpecialsInText::plain);
      if (shape.size() != 1 || shape[0] == *unknown) continue;
      ids = std::move(shape);
      break;
    }
  }
  if (ids.empty())
    fail(ErrorCode::invalid_argument, "codec", "word \"" + std::string(word) + "\" has no tokens");
  tokens.insert(tokens.end(), ids.begin(), ids.end());
}

EncodedWords Codec::encode_words(std::span<const std::string_view> words) const {
  EncodedWords result;
  for (const std::string_view word : words) {
    result.first.push_back(static_cast<std::int64_t>(result.tokens.size()));
    // Tokenizers of others see the space before a word, which many make a part of it.
    const bool spaced = parts_.framed && !result.tokens.empty();
    encode_word(spaced ? " " + std::string(word) : std::string(word), result.tokens);
  }
  if (!parts_.framed || words.empty()) return result;
  const auto& frame = source().frame().single;
  const auto text = std::ranges::find(frame, text::FramePart::Kind::first, &text::FramePart::kind);
  for (std::int64_t& first : result.first) first += text - frame.begin();
  result.tokens = around(std::move(result.tokens));
  return result;
}

bool Codec::begins_with_token() const {
  if (!parts_.framed) return false;
  const auto& frame = source().frame().single;
  return !frame.empty() && frame.front().kind == text::FramePart::Kind::token;
}

std::string Codec::decode_source(std::span<const std::int32_t> ids) const {
  return source().decode(ids, text::ShowSpecials::no);
}

std::string Codec::decode_target(std::span<const std::int32_t> ids) const {
  if (parts_.task == model::Task::translate) {
    const auto& ends = parts_.writing.ends;
    const auto end = std::find_first_of(ids.begin(), ids.end(), ends.begin(), ends.end());
    ids = ids.first(static_cast<std::size_t>(end - ids.begin()));
  }
  return target().decode(ids, text::ShowSpecials::no);
}

model::Batch Codec::batch_of(std::span<const std::vector<std::int32_t>> sequences) const {
  const auto sequence = [&](std::int64_t row) -> const std::vector<std::int32_t>& {
    return sequences[static_cast<std::size_t>(row)];
  };
  Padded padded = pad_rows(
      static_cast<std::int64_t>(sequences.size()), padding(),
      [&](std::int64_t row) { return static_cast<std::int64_t>(sequence(row).size()); },
      [&](std::int64_t row, std::int32_t* out) {
        std::copy(sequence(row).begin(), sequence(row).end(), out);
      });
  model::Batch batch;
  batch.tokens = std::move(padded.values);
  batch.lengths = std::move(padded.lengths);
  return batch;
}

}  // namespace heddle::data
