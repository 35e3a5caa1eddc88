// Texts for language and masked models: read, split, tokenised once.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "data/loading.h"
#include "data/text/encode_text.h"
#include "data/text/text_data.h"
#include "io/files/gzip.h"
#include "io/files/lines.h"
#include "io/files/memory_limit.h"

namespace heddle::data {
namespace {

bool takes_any_byte(const LoadRequest& request) {
  if (request.options.codec) return request.options.codec->source().kind() == "byte";
  return tokenizer_spec(request.config, "tokenizer", request.config.tokenizer).kind ==
         text::TokenizerSpec::Kind::byte;
}

// On the disk; what is packed or no file may turn out to be more.
std::size_t bytes_of_files(const LoadRequest& request, const std::vector<std::string>& names) {
  std::size_t sum = 0;
  for (const std::string& name : names) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(resolve_path(request.config, name), error);
    if (!error) sum += static_cast<std::size_t>(bytes);
  }
  return std::min(sum, io::kMaxText);
}

// The files one after another, unchanged.
JoinedText read_joined(const LoadRequest& request, Split split) {
  JoinedText joined;
  const std::vector<std::string>& names = request.config.files(split).text;
  if (names.size() > 1) joined.text.reserve(bytes_of_files(request, names));
  for (const std::string& name : names) {
    const std::string path = resolve_path(request.config, name);
    std::string text =
        takes_any_byte(request) ? io::read_maybe_gzip(path, io::kMaxText) : io::read_text(path);
    if (text.empty()) fail(ErrorCode::io, path, "is empty", "a text");
    if (joined.text.size() + text.size() > io::file_limit())
      fail(ErrorCode::io, path, "is too large together with the files before it",
           "at most " + io::file_limit_text(),
           std::to_string(joined.text.size() + text.size()) + " bytes");
    joined.parts.push_back({joined.text.size(), path});
    if (names.size() == 1)
      joined.text = std::move(text);
    else
      joined.text += text;
  }
  return joined;
}

// Where the last `share` of the text begins, between two characters.
std::size_t held_out_begin(std::string_view text, double share) {
  auto begin = static_cast<std::size_t>(static_cast<double>(text.size()) * (1 - share));
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) ++begin;
  return begin;
}

struct Piece {
  const JoinedText* from = nullptr;  // null: the split is not there
  std::string_view text = {};
};
using Pieces = std::array<Piece, kSplits>;

struct Texts {
  JoinedText training, validation, test;
  Pieces pieces = {};
};

void read_texts(const LoadRequest& request, Texts& texts) {
  auto& [training, validation, test] = texts.pieces;
  if (request.reads_training()) {
    texts.training = read_joined(request, Split::training);
    const std::string_view all = texts.training.text;
    const bool holds_out = request.held_out_share() > 0;
    const std::size_t cut = holds_out ? held_out_begin(all, request.held_out_share()) : all.size();
    training = {&texts.training, all.substr(0, cut)};
    if (holds_out && request.wants(Split::validation))
      validation = {&texts.training, all.substr(cut)};
  }
  if (request.wants(Split::validation) && request.config.validation.given()) {
    texts.validation = read_joined(request, Split::validation);
    validation = {&texts.validation, texts.validation.text};
  }
  if (request.wants(Split::test)) {
    texts.test = read_joined(request, Split::test);
    test = {&texts.test, texts.test.text};
  }
}

std::shared_ptr<const Codec> make_codec(const LoadRequest& request, const Texts& texts) {
  using Kind = text::TokenizerSpec::Kind;
  const Kind kind = tokenizer_spec(request.config, "tokenizer", request.config.tokenizer).kind;
  std::vector<std::string_view> views;
  // Characters are an alphabet, not something learned: all of the data's are in it, whatever split
  // they are in. Words and pieces are learned, from the training text alone.
  const bool alphabet = kind == Kind::character;
  for (const Piece& piece : texts.pieces)
    if (piece.from != nullptr && (views.empty() || alphabet)) views.push_back(piece.text);

  text::SpecialTokens specials;
  specials.mask = request.task == model::Task::masked;
  specials.unknown = kind == Kind::word || (alphabet && specials.mask);
  const MadeTokenizer made =
      make_tokenizer(request, {"tokenizer", request.config.tokenizer, views, specials});
  CodecParts parts;
  parts.task = request.task;
  parts.length = request.config.context;
  parts.source = made.tokenizer;
  parts.specials = made.specials;
  return std::make_shared<Codec>(std::move(parts));
}

std::int64_t context_of(const LoadRequest& request) {
  if (!request.options.codec) return request.config.context;
  const std::int64_t made_for = request.options.codec->max_tokens();
  if (request.config.context > made_for)
    fail(ErrorCode::invalid_argument, "data.context", "longer than the model's",
         "at most " + std::to_string(made_for), std::to_string(request.config.context));
  return request.config.context > 0 ? request.config.context : made_for;
}

void check_length(const LoadRequest& request, const TextOptions& options, Split split,
                  const Piece& piece, std::int64_t tokens) {
  const std::int64_t fewest = TextDataset::fewest_tokens(options, split);
  if (tokens >= fewest) return;
  const bool training = split == Split::training;
  fail(ErrorCode::io, piece.from->parts.front().path,
       training ? "text is shorter than a window"
                : (from_training_files(request, split) ? "the held-out end of the text is too short"
                                                       : "text is too short"),
       "at least " + std::to_string(fewest) + " tokens" + (training ? " (context)" : ""),
       std::to_string(tokens));
}

}  // namespace

std::unique_ptr<Dataset> open_text(const LoadRequest& request) {
  Texts texts;
  read_texts(request, texts);
  const std::shared_ptr<const Codec> codec =
      request.options.codec ? request.options.codec : make_codec(request, texts);
  TextOptions options;
  options.task = request.task;
  options.context = context_of(request);
  options.prompts = request.config.prompts;
  options.mask_share = request.config.mask_share.value_or(kDefaultMaskShare);

  TextSplits splits;
  std::string summary = describe_tokenizers(*codec);
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const auto split = static_cast<Split>(i);
    const Piece& piece = texts.pieces[i];
    if (piece.from == nullptr || !request.wants(split)) continue;
    SplitFacts facts;
    splits[i] = encode_text(*codec, *piece.from, piece.text, request.config.documents);
    facts.tokens = splits[i]->size();
    facts.unknown = splits[i]->unknown;
    facts.documents = static_cast<std::int64_t>(splits[i]->documents.size());
    check_length(request, options, split, piece, facts.tokens);
    summary += describe(split, facts, 0);
  }
  return std::make_unique<TextDataset>(codec, options, std::move(splits), std::move(summary));
}

}  // namespace heddle::data
