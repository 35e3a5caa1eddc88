// Texts for language and masked models: read, split, tokenised once.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "data/loading.h"
#include "data/text/encode_text.h"
#include "data/text/load_text.h"
#include "data/text/text_data.h"
#include "io/files/gzip.h"
#include "io/files/lines.h"
#include "io/files/memory_limit.h"

namespace heddle::data {
namespace {

// On the disk; what is packed or no file may turn out to be more.
std::size_t bytes_of_files(const std::vector<std::string>& paths) {
  std::size_t sum = 0;
  for (const std::string& path : paths) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path, error);
    if (!error) sum += static_cast<std::size_t>(bytes);
  }
  return std::min(sum, io::kMaxText);
}

void check_can_be_whole(const std::string& path, std::size_t before) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  const std::size_t most = std::min(io::file_limit(), io::kMaxText);
  if (error || bytes <= most - std::min(before, most)) return;
  fail(ErrorCode::io, path,
       before == 0 ? "is too large to be read whole"
                   : "is too large to be read whole together with the files before it",
       "at most " +
           (most == io::kMaxText ? std::to_string(most) + " bytes" : io::file_limit_text()) +
           "; texts of any size are read a piece at a time with data.token_folder",
       std::to_string(before + bytes) + " bytes");
}

// The files one after another, unchanged.
JoinedText read_joined(const LoadRequest& request, Split split) {
  JoinedText joined;
  const std::vector<std::string> paths =
      resolve_texts(request.config, request.config.files(split).text);
  if (paths.size() > 1) joined.text.reserve(bytes_of_files(paths));
  for (const std::string& path : paths) {
    check_can_be_whole(path, joined.text.size());
    std::string text =
        takes_any_byte(request) ? io::read_maybe_gzip(path, io::kMaxText) : io::read_text(path);
    if (text.empty()) fail(ErrorCode::io, path, "is empty", "a text");
    if (joined.text.size() + text.size() > io::file_limit())
      fail(ErrorCode::io, path, "is too large together with the files before it",
           "at most " + io::file_limit_text(),
           std::to_string(joined.text.size() + text.size()) + " bytes");
    joined.parts.push_back({joined.text.size(), path});
    if (paths.size() == 1)
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
  std::vector<std::string_view> views;
  for (const Piece& piece : texts.pieces)
    if (piece.from != nullptr && (views.empty() || learns_alphabet(request)))
      views.push_back(piece.text);
  return text_codec(request, make_tokenizer(request, {"tokenizer", request.config.tokenizer, views,
                                                      text_specials(request)}));
}

}  // namespace

std::unique_ptr<Dataset> open_text(const LoadRequest& request) {
  const DataConfig& config = request.config;
  if (!config.token_folder.empty() || !config.field.empty() || !config.mixture.empty())
    return open_streamed(request);
  Texts texts;
  read_texts(request, texts);
  const std::shared_ptr<const Codec> codec =
      request.options.codec ? request.options.codec : make_codec(request, texts);
  const TextOptions options = text_options(request);
  TextSplits splits;
  std::string summary = describe_tokenizers(*codec);
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const auto split = static_cast<Split>(i);
    const Piece& piece = texts.pieces[i];
    if (piece.from == nullptr || !request.wants(split)) continue;
    splits[i].push_back(encode_text(*codec, *piece.from, piece.text, request.config.documents));
    check_length(request, options, split, piece.from->parts.front().path, splits[i][0].size());
    summary += describe(split, facts_of(splits[i]), 0);
  }
  return std::make_unique<TextDataset>(codec, options, std::move(splits), std::move(summary));
}

}  // namespace heddle::data
