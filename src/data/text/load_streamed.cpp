// Texts that go to token files: read a piece at a time, tokenised once, shared by all runs that
// want the same tokens of the same text.
#include <algorithm>
#include <bit>
#include <filesystem>
#include <utility>

#include "data/text/encode_stream.h"
#include "data/text/encode_text.h"
#include "data/text/load_text.h"
#include "data/token_file/source_files.h"
#include "data/token_file/token_writer.h"
#include "heddle/error.h"
#include "io/files/checksums/xxh64.h"
#include "io/files/file.h"
#include "io/files/memory_limit.h"

namespace heddle::data {
namespace {

// Which part of its files' text a split is. Where the parts meet is looked up when it is needed.
enum class TextPart : std::uint8_t { whole, front, end };

struct StreamedText {
  std::shared_ptr<SourceFiles> files = {};
  TextPart part = TextPart::whole;
};

class Streamer {
 public:
  explicit Streamer(const LoadRequest& request);

  std::unique_ptr<Dataset> open();

 private:
  // Of each split its texts, as in TextSplits.
  using Splits = std::array<std::vector<StreamedText>, kSplits>;

  std::vector<StreamedText> texts_of(Split split, TextPart part) const;
  StreamedFiles streamed(const StreamedText& text) const;
  ShareOptions range_of(const StreamedText& text) const;
  std::shared_ptr<const Codec> make_codec() const;
  text::TextPieces pieces_for(const StreamedText& text) const;
  bool tells_documents() const { return request_.config.documents != Documents::none; }
  std::int64_t encode(const Codec& codec, const StreamedText& text, ShareOptions options,
                      const TokenSink& sink) const;
  EncodedText keep(const Codec& codec, const StreamedText& text) const;
  std::uint64_t recipe_of(const Codec& codec, const StreamedText& text) const;
  std::string path_of(const StreamedText& text, std::uint64_t recipe) const;
  std::shared_ptr<const TokenFile> find(const std::string& path, std::uint64_t recipe,
                                        SourceFiles& files) const;
  std::shared_ptr<const TokenFile> prepare(const Codec& codec, const StreamedText& text) const;
  void write(const std::string& path, std::uint64_t recipe, const Codec& codec,
             const StreamedText& text) const;
  void tell(ReadingProgress::Phase phase, std::uint64_t done, std::uint64_t total) const;

  const LoadRequest& request_;
  bool any_bytes_;
  std::string folder_;  // empty: tokens are kept in memory
  Splits splits_ = {};
};

Streamer::Streamer(const LoadRequest& request)
    : request_(request),
      any_bytes_(request.config.field.empty() && takes_any_byte(request)),
      folder_(request.config.token_folder) {
  auto& [training, validation, test] = splits_;
  if (request.reads_training()) {
    const bool holds_out = request.held_out_share() > 0;
    training = texts_of(Split::training, holds_out ? TextPart::front : TextPart::whole);
    if (holds_out && request.wants(Split::validation))
      for (const StreamedText& text : training) validation.push_back({text.files, TextPart::end});
  }
  if (request.wants(Split::validation) && request.config.validation.given())
    validation = texts_of(Split::validation, TextPart::whole);
  if (request.wants(Split::test)) test = texts_of(Split::test, TextPart::whole);
}

// Of a mixture each name is a text of its own; otherwise all of them are one.
std::vector<StreamedText> Streamer::texts_of(Split split, TextPart part) const {
  const std::vector<std::string>& names = request_.config.files(split).text;
  const auto text_of = [&](const std::vector<std::string>& some) {
    return StreamedText{std::make_shared<SourceFiles>(resolve_texts(request_.config, some)), part};
  };
  if (split != Split::training || request_.config.mixture.empty()) return {text_of(names)};
  std::vector<StreamedText> texts;
  texts.reserve(names.size());
  for (const std::string& name : names) texts.push_back(text_of({name}));
  return texts;
}

StreamedFiles Streamer::streamed(const StreamedText& text) const {
  return {.paths = text.files->paths(), .any_bytes = any_bytes_};
}

// The same places as where a text is read whole (load_text.cpp); of JSON lines whole ones.
ShareOptions Streamer::range_of(const StreamedText& text) const {
  ShareOptions options;
  options.field = request_.config.field;
  options.documents = options.field.empty() ? Documents::none : Documents::line;
  const StreamedFiles files = streamed(text);
  options.end = joined_bytes(files);
  if (text.part == TextPart::whole) return options;
  const auto wanted = static_cast<std::uint64_t>(static_cast<double>(options.end) *
                                                 (1 - request_.held_out_share()));
  const std::uint64_t found =
      options.field.empty() ? character_at(files, wanted) : line_at(files, wanted);
  const std::uint64_t border = std::min(found, options.end);
  (text.part == TextPart::front ? options.end : options.begin) = border;
  return options;
}

void Streamer::tell(ReadingProgress::Phase phase, std::uint64_t done, std::uint64_t total) const {
  if (request_.options.reading)
    request_.options.reading(
        {phase, static_cast<std::int64_t>(done), static_cast<std::int64_t>(total)});
}

std::shared_ptr<const Codec> Streamer::make_codec() const {
  std::vector<text::TextPieces> texts;
  for (const std::vector<StreamedText>& split : splits_) {
    if (!texts.empty() && !learns_alphabet(request_)) break;
    for (const StreamedText& text : split) texts.push_back(pieces_for(text));
  }
  const text::TextPieces all = [&texts](const auto& take) {
    for (const text::TextPieces& one : texts) one(take);
  };
  TokenizerRequest what{"tokenizer", request_.config.tokenizer, {}, text_specials(request_)};
  what.pieces = &all;
  return text_codec(request_, make_tokenizer(request_, what));
}

text::TextPieces Streamer::pieces_for(const StreamedText& text) const {
  ShareOptions options = range_of(text);
  options.cuts = learns_alphabet(request_) ? text::Cuts::characters : text::Cuts::white_space;
  const std::uint64_t total = options.end - options.begin;
  return pieces_of(streamed(text), options, [this, total](std::uint64_t done) {
    tell(ReadingProgress::Phase::counting, done, total);
  });
}

// All that the tokens follow from, but for the bytes of the files.
std::uint64_t Streamer::recipe_of(const Codec& codec, const StreamedText& text) const {
  io::Xxh64 hash;
  hash.add_field("tokens");
  hash.add_field(codec.source().to_json());
  hash.add_number(codec.specials() == text::SpecialsInText::recognised ? 1 : 0);
  hash.add_field(to_string(request_.config.documents));
  hash.add_field(request_.config.field);
  hash.add_number(any_bytes_ ? 1 : 0);
  hash.add_number(static_cast<std::uint64_t>(text.part));
  if (text.part != TextPart::whole)
    hash.add_number(std::bit_cast<std::uint64_t>(request_.held_out_share()));
  for (const std::string& path : text.files->paths()) {
    std::error_code error;
    const auto absolute = std::filesystem::weakly_canonical(path, error);
    hash.add_field(error ? path : absolute.string());
  }
  return hash.value();
}

// "input-0123456789abcdef.tokens"
std::string Streamer::path_of(const StreamedText& text, std::uint64_t recipe) const {
  constexpr std::size_t kLongest = 40;
  std::string stem = std::filesystem::path(text.files->paths().front()).stem().string();
  stem.resize(std::min(stem.size(), kLongest));
  for (char& c : stem)
    if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9')) c = '-';
  return folder_ + "/" + stem + "-" + io::hex_text(recipe) + ".tokens";
}

// The token file if it is there and of this text; lengths and times tell without reading it, and
// where they do not its content decides. One that is damaged is as none.
std::shared_ptr<const TokenFile> Streamer::find(const std::string& path, std::uint64_t recipe,
                                                SourceFiles& files) const {
  if (!io::file_exists(path)) return nullptr;
  std::shared_ptr<const TokenFile> file;
  try {
    file = std::make_shared<const TokenFile>(path);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::io) throw;
    return nullptr;
  }
  const TokenFileFacts& facts = file->facts();
  if (facts.recipe != recipe) return nullptr;
  if (facts.stamp != 0 && facts.stamp == files.stamp()) return file;
  return facts.content == files.content() ? file : nullptr;
}

std::shared_ptr<const TokenFile> Streamer::prepare(const Codec& codec,
                                                   const StreamedText& text) const {
  const std::uint64_t recipe = recipe_of(codec, text);
  const std::string path = path_of(text, recipe);
  if (auto there = find(path, recipe, *text.files)) return there;
  io::make_directories(folder_);
  const io::Descriptor lock =
      io::wait_for_lock(folder_ + "/lock", [this] { tell(ReadingProgress::Phase::waiting, 0, 0); });
  if (auto there = find(path, recipe, *text.files)) return there;  // another process was faster
  write(path, recipe, codec, text);
  return std::make_shared<const TokenFile>(path);
}

std::int64_t Streamer::encode(const Codec& codec, const StreamedText& text, ShareOptions options,
                              const TokenSink& sink) const {
  if (options.field.empty()) options.documents = request_.config.documents;
  options.cuts = cuts_for(codec);
  TextShares shares(streamed(text), options);
  return encode_stream(codec, shares, sink, [&](std::uint64_t done) {
    tell(ReadingProgress::Phase::tokenising, done, options.end - options.begin);
  });
}

EncodedText Streamer::keep(const Codec& codec, const StreamedText& text) const {
  EncodedText kept{TokenStore(codec.source().vocabulary())};
  kept.unknown =
      encode(codec, text, range_of(text), [&](std::span<const std::int32_t> tokens, bool begins) {
        if (begins && tells_documents()) kept.documents.push_back(kept.size());
        kept.tokens.append(tokens);
        if (static_cast<std::uint64_t>(kept.bytes()) > io::file_limit())
          fail(ErrorCode::io, text.files->paths().front(), "has too many tokens to be kept",
               "at most " + io::file_limit_text() + "; with data.token_folder they need no memory");
      });
  return kept;
}

void Streamer::write(const std::string& path, std::uint64_t recipe, const Codec& codec,
                     const StreamedText& text) const {
  TokenFileFacts facts;
  facts.recipe = recipe;
  facts.content = text.files->content();
  const ShareOptions range = range_of(text);
  facts.source_bytes = static_cast<std::int64_t>(range.end - range.begin);
  TokenWriter writer(path, codec.source().vocabulary(), tells_documents());
  facts.unknown = encode(
      codec, text, range,
      [&writer](std::span<const std::int32_t> tokens, bool begins) { writer.add(tokens, begins); });
  facts.stamp = text.files->is_settled() ? text.files->stamp() : 0;
  text.files->check_unchanged();
  writer.commit(facts);
}

std::unique_ptr<Dataset> Streamer::open() {
  const std::shared_ptr<const Codec> codec =
      request_.options.codec ? request_.options.codec : make_codec();
  const TextOptions options = text_options(request_);
  TextSplits splits;
  std::string summary = describe_tokenizers(*codec);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const auto split = static_cast<Split>(i);
    if (splits_[i].empty() || !request_.wants(split)) continue;
    for (const StreamedText& text : splits_[i]) {
      splits[i].push_back(folder_.empty() ? keep(*codec, text)
                                          : EncodedText(prepare(*codec, text)));
      const EncodedText& encoded = splits[i].back();
      check_length(request_, options, split, text.files->paths().front(), encoded.size());
      if (encoded.file) bytes += encoded.file->file_bytes();
    }
    summary += describe(split, facts_of(splits[i]), 0);
  }
  if (!folder_.empty()) summary += describe_token_folder(folder_, static_cast<std::int64_t>(bytes));
  return std::make_unique<TextDataset>(codec, options, std::move(splits), std::move(summary));
}

}  // namespace

std::unique_ptr<Dataset> open_streamed(const LoadRequest& request) {
  return Streamer(request).open();
}

}  // namespace heddle::data
