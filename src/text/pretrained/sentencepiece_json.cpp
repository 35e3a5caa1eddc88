#include <algorithm>
#include <numeric>

#include "io/errors.h"
#include "text/json/read_parts.h"
#include "text/models/vocabulary.h"
#include "text/normalize/charsmap.h"
#include "text/pretrained/document.h"
#include "text/pretrained/sentencepiece.h"
#include "text/unicode.h"

namespace heddle::text {

namespace {

using Kind = SentencePiece::Kind;
constexpr std::string_view kSpaceMark = "▁";

// Every text but an empty one gets a space. User defined pieces that are searched for in normalized
// text are normalized themselves, and must not get it.
Document prefix_step(std::string_view mark) {
  return {{"type", "Prepend"}, {"prepend", mark}, {kTextsOnlyKey, true}};
}

// What a model without a map has: no keys.
constexpr std::string_view kEmptyCharsmap = std::string_view("\0\0\0\0", 4);

// SentencePiece takes spaces away before it adds one: at the beginning, at the end (there also
// those that are marked already), and of several all but one.
Document spm_normalizer(const SentencePieceModel& model) {
  std::vector<Document> steps;
  if (!model.charsmap.empty() || model.replace_broken)
    steps.push_back(
        {{"type", "Precompiled"},
         {"precompiled_charsmap",
          to_base64(model.charsmap.empty() ? kEmptyCharsmap : std::string_view(model.charsmap))},
         {kLongestMatchKey, true},
         {kReplaceBrokenKey, model.replace_broken}});
  if (model.remove_extra_spaces) {
    steps.push_back(replace_step("Regex", "\\A +|[ ▁]+\\z", ""));
    steps.push_back(replace_step("Regex", " {2,}", " "));
  }
  const std::string_view mark = model.escape_spaces ? kSpaceMark : " ";
  if (model.add_prefix_space) steps.push_back(prefix_step(mark));
  if (model.escape_spaces) steps.push_back(replace_step("String", " ", kSpaceMark));
  return sequence_of("normalizers", std::move(steps));
}

Document spm_decoder(const SentencePieceModel& model) {
  std::vector<Document> steps;
  if (model.escape_spaces) steps.push_back(replace_step("String", kSpaceMark, " "));
  steps.push_back({{"type", "ByteFallback"}});
  steps.push_back({{"type", "Fuse"}});
  if (model.add_prefix_space)
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return sequence_of("decoders", std::move(steps));
}

NameIds ids_of_pieces(const SentencePieceModel& model, std::string_view where) {
  NameIds ids;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    if (piece.name.empty())
      io::fail_io(where, "piece " + std::to_string(id), "a name", "an empty one");
    if (piece.kind == Kind::unused)
      io::fail_io(where, "the piece " + io::shown(piece.name),
                  "another type than unused, which is not supported", "unused");
    if (!ids.emplace(piece.name, static_cast<std::int32_t>(id)).second)
      io::fail_io(where, "the piece " + io::shown(piece.name), "once", "twice");
  }
  return ids;
}

// Every way to make a piece of two others; pieces of better score first. Of ways to make one piece
// SentencePiece takes the leftmost in the text.
Document spm_merges(const SentencePieceModel& model, const NameIds& ids) {
  std::vector<std::size_t> order(model.pieces.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const double first = model.pieces[a].score, second = model.pieces[b].score;
    return first != second ? first > second : a < b;
  });
  const auto is_normal = [&](std::string_view name) {
    const auto id = find_name(ids, name);
    return id && model.pieces[static_cast<std::size_t>(*id)].kind == Kind::normal;
  };
  std::vector<Document> merges;
  for (const std::size_t id : order) {
    const SentencePiece& piece = model.pieces[id];
    if (piece.kind != Kind::normal) continue;
    const std::string_view name = piece.name;
    for (std::size_t cut = code_point_at(name, 0).bytes; cut < name.size();
         cut += code_point_at(name, cut).bytes)
      if (is_normal(name.substr(0, cut)) && is_normal(name.substr(cut)))
        merges.push_back(Document::array({name.substr(0, cut), name.substr(cut)}));
  }
  return merges;
}

Document spm_bpe(const SentencePieceModel& model, const NameIds& ids,
                 const SentencePiece* unknown) {
  std::vector<std::pair<std::string, std::int32_t>> names;
  names.reserve(model.pieces.size());
  for (const SentencePiece& piece : model.pieces)
    names.emplace_back(piece.name, static_cast<std::int32_t>(names.size()));
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", unknown == nullptr ? Document(nullptr) : Document(unknown->name)},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", true},
          {"byte_fallback", model.byte_fallback},
          {"ignore_merges", false},
          {"vocab", vocabulary_object(names)},
          {"merges", spm_merges(model, ids)}};
}

Document spm_unigram(const SentencePieceModel& model, const SentencePiece* unknown) {
  std::vector<Document> pieces;
  pieces.reserve(model.pieces.size());
  for (const SentencePiece& piece : model.pieces)
    pieces.push_back(Document::array({piece.name, piece.score}));
  return {
      {"type", "Unigram"},
      {"unk_id", unknown == nullptr ? Document(nullptr) : Document(unknown - model.pieces.data())},
      {"vocab", std::move(pieces)},
      {"byte_fallback", model.byte_fallback},
      {kFloatScoresKey, true}};
}

std::vector<AddedToken> spm_added(const SentencePieceModel& model) {
  std::vector<AddedToken> added;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    if (piece.kind != Kind::control && piece.kind != Kind::unknown &&
        piece.kind != Kind::user_defined)
      continue;
    const bool is_user = piece.kind == Kind::user_defined;
    added.push_back({.id = static_cast<std::int32_t>(id),
                     .content = piece.name,
                     .special = !is_user,
                     .normalized = is_user && !model.find_user_defined_first});
  }
  return added;
}

}  // namespace

std::string sentencepiece_json(const SentencePieceModel& model, std::string_view where,
                               std::span<const AddedToken> more) {
  const NameIds ids = ids_of_pieces(model, where);
  const auto found =
      std::find_if(model.pieces.begin(), model.pieces.end(),
                   [](const SentencePiece& piece) { return piece.kind == Kind::unknown; });
  const SentencePiece* const unknown = found == model.pieces.end() ? nullptr : &*found;
  const bool is_bpe = model.kind == SentencePieceModel::Kind::bpe;
  std::vector<AddedToken> added = spm_added(model);
  for (const AddedToken& token : more) {
    const auto known = std::find_if(added.begin(), added.end(),
                                    [&](const AddedToken& other) { return other.id == token.id; });
    if (known == added.end())
      added.push_back(token);
    else
      *known = token;
  }
  return document_text(
      {.added = std::move(added),
       .normalizer = spm_normalizer(model),
       .decoder = spm_decoder(model),
       .model = is_bpe ? spm_bpe(model, ids, unknown) : spm_unigram(model, unknown)},
      where);
}

std::string renamed_sentencepiece_json(const SentencePieceModel& model, const NamedPieces& named,
                                       std::string_view where) {
  if (model.kind != SentencePieceModel::Kind::unigram || model.byte_fallback)
    io::fail_io(where, "a SentencePiece model whose pieces have ids in another file",
                "unigram, without bytes", "another kind");
  (void)ids_of_pieces(model, where);  // refuses names that come twice
  std::vector<Document> pieces;
  pieces.reserve(model.pieces.size());
  for (const SentencePiece& piece : model.pieces) {
    if (piece.kind == Kind::user_defined)
      io::fail_io(where, "the piece " + io::shown(piece.name),
                  "another type than user defined, which is not supported here", "user defined");
    if (piece.kind == Kind::normal) pieces.push_back(Document::array({piece.name, piece.score}));
  }
  // Spaces at the ends of a translation are not shown.
  std::vector<Document> steps = {replace_step("String", kSpaceMark, " "), {{"type", "Fuse"}}};
  constexpr int kAll = 1 << 20;
  steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", kAll}, {"stop", kAll}});
  return document_text({.added = named.added,
                        .normalizer = spm_normalizer(model),
                        .decoder = sequence_of("decoders", std::move(steps)),
                        .model = {{"type", "Unigram"},
                                  {"unk_id", named.unknown},
                                  {"vocab", std::move(pieces)},
                                  {"byte_fallback", false},
                                  {kFloatScoresKey, true},
                                  {kNamesKey, vocabulary_object(named.names)}}},
                       where);
}

}  // namespace heddle::text
