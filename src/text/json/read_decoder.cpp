// Decoders and post-processors.
#include <optional>

#include "text/json/read_parts.h"

namespace heddle::text {

namespace {

using io::Json;
using PartKind = FramePart::Kind;

std::int32_t read_id(const Json& json, std::size_t vocabulary) {
  return static_cast<std::int32_t>(json.integer(0, static_cast<std::int64_t>(vocabulary) - 1));
}

// [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
std::vector<FramePart> read_template(const Json& list, const Json& specials,
                                     std::size_t vocabulary) {
  std::vector<FramePart> parts;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json json = list.at(i);
    check_keys(json, {"SpecialToken", "Sequence"});
    const bool is_text = json.has("Sequence");
    const Json part = json.at(is_text ? "Sequence" : "SpecialToken");
    const auto segment = static_cast<std::int32_t>(part.at("type_id").integer(0, 255));
    const std::string id = part.at("id").string();
    if (is_text) {
      if (id != "A" && id != "B") part.at("id").refuse("A or B");
      parts.push_back({.kind = id == "A" ? PartKind::first : PartKind::second, .segment = segment});
      continue;
    }
    const Json ids = specials.at(id).at("ids");
    for (std::size_t k = 0; k < ids.size(); ++k)
      parts.push_back({.id = read_id(ids.at(k), vocabulary), .segment = segment});
  }
  return parts;
}

// ["[SEP]", 102]
std::int32_t read_named_id(const Json& json, std::size_t vocabulary) {
  if (json.size() != 2) json.refuse("a name and an id");
  return read_id(json.at(std::size_t{1}), vocabulary);
}

// Bert: [CLS] A [SEP] B [SEP]. Roberta has one more </s> in front of B, and one segment.
Frame read_classic(const Json& json, std::size_t vocabulary, bool is_roberta) {
  check_keys(json, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
  const FramePart begin{.id = read_named_id(json.at("cls"), vocabulary)};
  FramePart end{.id = read_named_id(json.at("sep"), vocabulary)};
  Frame frame;
  frame.single = {begin, {.kind = PartKind::first}, end};
  frame.pair = frame.single;
  if (is_roberta) frame.pair.push_back(end);
  const std::int32_t segment = is_roberta ? 0 : 1;
  frame.pair.push_back({.kind = PartKind::second, .segment = segment});
  end.segment = segment;
  frame.pair.push_back(end);
  return frame;
}

std::optional<Frame> read_frame(const Json& json, std::size_t vocabulary) {
  const std::string type = json.at("type").string();
  if (type == "ByteLevel") {  // moves offsets and no ids
    check_keys(json, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return std::nullopt;
  }
  if (type == "BertProcessing") return read_classic(json, vocabulary, false);
  if (type == "RobertaProcessing") return read_classic(json, vocabulary, true);
  if (type == "TemplateProcessing") {
    check_keys(json, {"type", "single", "pair", "special_tokens"});
    const Json specials = json.at("special_tokens");
    return Frame{.single = read_template(json.at("single"), specials, vocabulary),
                 .pair = read_template(json.at("pair"), specials, vocabulary)};
  }
  if (type != "Sequence") json.at("type").refuse("a post-processor that Heddle has");
  check_keys(json, {"type", "processors"});
  std::optional<Frame> frame;
  const Json list = json.at("processors");
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::optional<Frame> next = read_frame(list.at(i), vocabulary);
    if (!next) continue;
    if (frame) list.at(i).refuse("no second post-processor that adds tokens");
    frame = std::move(next);
  }
  return frame;
}

DecoderPtr read_decoders(const Json& json) {
  check_keys(json, {"type", "decoders"});
  std::vector<DecoderPtr> steps;
  const Json list = json.at("decoders");
  steps.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) steps.push_back(read_decoder(list.at(i)));
  return sequence(std::move(steps));
}

DecoderPtr read_strip(const Json& json) {
  check_keys(json, {"type", "content", "start", "stop"});
  const std::string content = json.at("content").string();
  if (content.empty()) json.at("content").refuse("one character");
  constexpr std::int64_t most = 1 << 20;
  return strip_decoder(content, static_cast<std::size_t>(json.at("start").integer(0, most)),
                       static_cast<std::size_t>(json.at("stop").integer(0, most)));
}

}  // namespace

Frame read_post_processor(const Json& json, std::size_t vocabulary) {
  return read_frame(json, vocabulary).value_or(Frame{});
}

DecoderPtr read_decoder(const Json& json) {
  const std::string type = json.at("type").string();
  if (type == "Sequence") return read_decoders(json);
  if (type == "Strip") return read_strip(json);
  if (type == "Metaspace") return metaspace_decoder(read_metaspace(json));
  if (type == "ByteLevel") {
    check_keys(json, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return byte_level_decoder();
  }
  if (type == "Replace") {
    check_keys(json, {"type", "pattern", "content"});
    return replace_decoder(read_pattern(json.at("pattern")), json.at("content").string());
  }
  if (type == "WordPiece") {
    check_keys(json, {"type", "prefix", "cleanup"});
    return word_piece_decoder(json.string_or("prefix", "##"), json.boolean_or("cleanup", true));
  }
  if (type == "BPEDecoder") {
    check_keys(json, {"type", "suffix"});
    const std::string suffix = json.string_or("suffix", "</w>");
    if (suffix.empty()) json.at("suffix").refuse("a text that is not empty");
    return bpe_decoder(suffix);
  }
  check_keys(json, {"type"});
  if (type == "ByteFallback") return byte_fallback_decoder();
  if (type == "Fuse") return fuse_decoder();
  json.at("type").refuse("a decoder that Heddle has");
}

}  // namespace heddle::text
