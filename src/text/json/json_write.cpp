#include "text/json/json_write.h"

#include <nlohmann/json.hpp>

#include "text/special.h"

namespace heddle::text {

namespace {

// Members in the order of Hugging Face's own files.
using Document = nlohmann::ordered_json;

Document added_json(std::span<const AddedToken> added) {
  Document list = Document::array();
  for (const AddedToken& token : added)
    list.push_back({{"id", token.id},
                    {"content", token.content},
                    {"single_word", token.single_word},
                    {"lstrip", token.lstrip},
                    {"rstrip", token.rstrip},
                    {"normalized", token.normalized},
                    {"special", token.special}});
  return list;
}

// An ordered object looks for a key by going through all of them; this one is built as a list.
Document vocabulary_json(std::span<const Piece> pieces) {
  Document::object_t members;
  members.reserve(pieces.size());
  std::int32_t id = 0;
  for (const Piece& piece : pieces) {
    members.Container::emplace_back(piece.name, id);
    ++id;
  }
  return members;
}

std::string whole(std::span<const AddedToken> added, Document pre_tokenizer, Document decoder,
                  Document model) {
  const Document document = {
      {"version", "1.0"},          {"truncation", nullptr},
      {"padding", nullptr},        {"added_tokens", added_json(added)},
      {"normalizer", nullptr},     {"pre_tokenizer", std::move(pre_tokenizer)},
      {"post_processor", nullptr}, {"decoder", std::move(decoder)},
      {"model", std::move(model)}};
  return document.dump(2) + "\n";
}

const std::string& name_of(std::span<const Piece> pieces, std::int32_t id) {
  return pieces[static_cast<std::size_t>(id)].name;
}

Document byte_level_json(bool prefix_space) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", prefix_space},
          {"trim_offsets", true},
          {"use_regex", true}};
}

}  // namespace

std::string bpe_json(std::span<const Piece> pieces, std::span<const AddedToken> added,
                     const BpeModel& model) {
  Document merges = Document::array();
  // "left right", not ["left", "right"]: readers of every age know it, and no name has a space.
  for (const Merge& merge : model.merges)
    merges.push_back(name_of(pieces, merge.left) + " " + name_of(pieces, merge.right));
  Document unknown;
  if (model.unknown) unknown = name_of(pieces, *model.unknown);
  return whole(added, byte_level_json(model.prefix_space), byte_level_json(model.prefix_space),
               {{"type", "BPE"},
                {"dropout", nullptr},
                {"unk_token", std::move(unknown)},
                {"continuing_subword_prefix", nullptr},
                {"end_of_word_suffix", nullptr},
                {"fuse_unk", model.fuse_unknown},
                {"byte_fallback", false},
                {"ignore_merges", false},
                {"vocab", vocabulary_json(pieces)},
                {"merges", std::move(merges)}});
}

std::string word_level_json(std::span<const Piece> pieces, std::span<const AddedToken> added,
                            Unit unit, std::optional<std::int32_t> unknown) {
  Document characters = {{"type", "Split"},
                         {"pattern", {{"Regex", kAnyCharacter}}},
                         {"behavior", "Isolated"},
                         {"invert", false}};
  const bool is_char = unit == Unit::character;
  // The format wants a name. One that is not in the vocabulary makes unknown text an error there,
  // as it is here.
  const std::string name = unknown ? name_of(pieces, *unknown) : std::string(kUnknownName);
  return whole(added, is_char ? std::move(characters) : Document{{"type", "WhitespaceSplit"}},
               is_char ? Document{{"type", "Fuse"}} : Document{},
               {{"type", "WordLevel"}, {"vocab", vocabulary_json(pieces)}, {"unk_token", name}});
}

}  // namespace heddle::text
