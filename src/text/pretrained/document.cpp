#include "text/pretrained/document.h"

#include "io/errors.h"

namespace heddle::text {

namespace {

Document added_document(const AddedToken& token) {
  return {{"id", token.id},          {"content", token.content}, {"single_word", token.single_word},
          {"lstrip", token.lstrip},  {"rstrip", token.rstrip},   {"normalized", token.normalized},
          {"special", token.special}};
}

Document template_token(const FrameToken& token, int segment) {
  return {{"SpecialToken", {{"id", token.name}, {"type_id", segment}}}};
}

Document template_text(const char* id, int segment) {
  return {{"Sequence", {{"id", id}, {"type_id", segment}}}};
}

Document template_entry(const FrameToken& token) {
  return {{"id", token.name},
          {"ids", Document::array({token.id})},
          {"tokens", Document::array({token.name})}};
}

}  // namespace

std::string document_text(const DocumentParts& parts, std::string_view where) {
  Document added = Document::array();
  for (const AddedToken& token : parts.added) added.push_back(added_document(token));
  const Document document = {{"version", "1.0"},
                             {"truncation", nullptr},
                             {"padding", nullptr},
                             {"added_tokens", std::move(added)},
                             {"normalizer", parts.normalizer},
                             {"pre_tokenizer", parts.pre_tokenizer},
                             {"post_processor", parts.post_processor},
                             {"decoder", parts.decoder},
                             {"model", parts.model}};
  try {
    return document.dump(1) + "\n";
  } catch (const nlohmann::json::exception& e) {
    io::fail_io(where, "names of tokens", "UTF-8", e.what());
  }
}

// An ordered object looks for a key by going through all of them; this one is built as a list.
Document vocabulary_object(std::span<const std::pair<std::string, std::int32_t>> names) {
  Document::object_t members;
  members.reserve(names.size());
  for (const auto& [name, id] : names) members.Container::emplace_back(name, id);
  return members;
}

Document replace_step(std::string_view kind, std::string_view pattern, std::string_view content) {
  return {{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", content}};
}

Document split_step(std::string_view pattern) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

Document byte_level_step(bool prefix_space, bool regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", prefix_space},
          {"trim_offsets", true},
          {"use_regex", regex}};
}

Document sequence_of(std::string_view key, std::vector<Document> steps) {
  if (steps.empty()) return nullptr;
  if (steps.size() == 1) return std::move(steps[0]);
  return {{"type", "Sequence"}, {key, std::move(steps)}};
}

Document bert_frame(const FrameToken& begin, const FrameToken& end) {
  const Document single =
      Document::array({template_token(begin, 0), template_text("A", 0), template_token(end, 0)});
  Document pair = single;
  pair.push_back(template_text("B", 1));
  pair.push_back(template_token(end, 1));
  return {
      {"type", "TemplateProcessing"},
      {"single", single},
      {"pair", std::move(pair)},
      {"special_tokens", {{begin.name, template_entry(begin)}, {end.name, template_entry(end)}}}};
}

}  // namespace heddle::text
