#include "text/train.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "heddle/error.h"
#include "text/bpe/bpe_trainer.h"
#include "text/bpe/byte_alphabet.h"
#include "text/bpe/byte_bpe.h"
#include "text/bpe/word_counts.h"
#include "text/special.h"
#include "text/unicode.h"
#include "text/word_level.h"

namespace heddle::text {

namespace {

using Kind = TokenizerSpec::Kind;

constexpr std::string_view kSpecs = "char, byte, word, word:N, bpe:N or a path that ends in .json";

std::int64_t parse_count(std::string_view digits, std::string_view spec, std::string_view where) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || end != digits.data() + digits.size() || count < 1)
    fail(ErrorCode::invalid_argument, where, "no tokenizer has this number", kSpecs, spec);
  return count;
}

std::vector<std::string_view> names_of(const SpecialTokens& specials) {
  std::vector<std::string_view> names;
  if (specials.pad) names.push_back(kPadName);
  if (specials.begin) names.push_back(kBeginName);
  if (specials.end) names.push_back(kEndName);
  if (specials.unknown) names.push_back(kUnknownName);
  if (specials.mask) names.push_back(kMaskName);
  return names;
}

// The special tokens become the last pieces.
std::vector<AddedToken> add_specials(const SpecialTokens& specials, std::vector<Piece>& pieces) {
  std::vector<AddedToken> added;
  for (const std::string_view name : names_of(specials)) {
    added.push_back({static_cast<std::int32_t>(pieces.size()), std::string(name)});
    pieces.push_back({std::string(name), std::string(name)});
  }
  return added;
}

std::unique_ptr<Tokenizer> make_word_level(std::vector<Piece> pieces, Unit unit,
                                           const SpecialTokens& specials) {
  std::vector<AddedToken> added = add_specials(specials, pieces);
  if (pieces.empty())
    fail(ErrorCode::invalid_argument, "tokenizer", "the training text has no tokens");
  if (pieces.size() > static_cast<std::size_t>(kMaxVocabulary))
    fail(ErrorCode::invalid_argument, "tokenizer", "too many different words",
         "at most " + std::to_string(kMaxVocabulary), std::to_string(pieces.size()));
  return std::make_unique<WordLevel>(std::move(pieces), std::move(added), unit, std::nullopt);
}

void check_texts(std::span<const std::string_view> texts) {
  for (std::size_t i = 0; i < texts.size(); ++i)
    check_utf8(texts[i],
               texts.size() == 1 ? "training text" : "training text " + std::to_string(i + 1));
}

// The code points of texts.
class Alphabet {
 public:
  void add(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = code_point_at(text, at);
      seen_[static_cast<std::size_t>(c.value)] = true;
      at += c.bytes;
    }
  }

  std::unique_ptr<Tokenizer> tokenizer(const SpecialTokens& specials) const {
    std::vector<Piece> pieces;
    for (std::size_t c = 0; c < seen_.size(); ++c) {
      if (!seen_[c]) continue;
      const std::string character = to_utf8(static_cast<std::int32_t>(c));
      pieces.push_back({character, character});
    }
    return make_word_level(std::move(pieces), Unit::character, specials);
  }

 private:
  std::vector<bool> seen_ = std::vector<bool>(0x110000);  // of every code point
};

std::unique_ptr<Tokenizer> train_characters(std::span<const std::string_view> texts,
                                            const SpecialTokens& specials) {
  check_texts(texts);
  Alphabet alphabet;
  for (const std::string_view text : texts) alphabet.add(text);
  return alphabet.tokenizer(specials);
}

void check_words(const TokenizerSpec& spec, const SpecialTokens& specials) {
  if (spec.minimum_count > 1 && !specials.unknown)
    fail(ErrorCode::invalid_argument, "tokenizer",
         "a tokenizer of words seen at least " + std::to_string(spec.minimum_count) +
             " times needs an unknown token for the rarer ones",
         "an unknown token, or word:1");
}

std::unique_ptr<Tokenizer> word_tokenizer(const TokenizerSpec& spec, std::vector<WordCount> words,
                                          const SpecialTokens& specials) {
  const std::vector<std::string_view> names = names_of(specials);
  std::erase_if(words, [&](const WordCount& w) {
    return w.count < spec.minimum_count ||
           std::find(names.begin(), names.end(), w.word) != names.end();
  });
  std::sort(words.begin(), words.end(), [](const WordCount& a, const WordCount& b) {
    return a.count != b.count ? a.count > b.count : a.word < b.word;
  });
  std::vector<Piece> pieces;
  pieces.reserve(words.size());
  for (const WordCount& w : words) pieces.push_back({std::string(w.word), std::string(w.word)});
  return make_word_level(std::move(pieces), Unit::word, specials);
}

std::unique_ptr<Tokenizer> make_bytes(const SpecialTokens& specials) {
  BpeModel model;
  std::iota(model.byte_ids.begin(), model.byte_ids.end(), 0);
  std::vector<Piece> pieces;
  pieces.reserve(model.byte_ids.size());
  for (int byte = 0; byte < 256; ++byte)
    pieces.push_back(
        {std::string(1, static_cast<char>(byte)), byte_name(static_cast<std::uint8_t>(byte))});
  std::vector<AddedToken> added = add_specials(specials, pieces);
  return std::make_unique<ByteBpe>(std::move(pieces), std::move(added), std::move(model));
}

void check_bpe(const TokenizerSpec& spec, const SpecialTokens& specials) {
  const auto special_count = static_cast<std::int64_t>(names_of(specials).size());
  const std::int64_t fewest = 256 + special_count;
  if (spec.vocabulary < fewest || spec.vocabulary > kMaxVocabulary)
    fail(ErrorCode::invalid_argument, "tokenizer", "bpe cannot have such a vocabulary",
         "from " + std::to_string(fewest) + " (all bytes and " + std::to_string(special_count) +
             " special tokens) to " + std::to_string(kMaxVocabulary),
         std::to_string(spec.vocabulary));
}

std::unique_ptr<Tokenizer> bpe_tokenizer(const TokenizerSpec& spec,
                                         std::span<const WordCount> words,
                                         const SpecialTokens& specials,
                                         const ProgressSink& progress) {
  const auto special_count = static_cast<std::int64_t>(names_of(specials).size());
  LearnedMerges learned =
      learn_merges(words, static_cast<std::size_t>(spec.vocabulary - special_count), progress);

  BpeModel model;
  model.merges = std::move(learned.merges);
  const std::array<std::uint8_t, 256> bytes = bytes_by_name();
  for (std::size_t id = 0; id < bytes.size(); ++id)
    model.byte_ids[bytes[id]] = static_cast<std::int32_t>(id);
  std::vector<Piece> pieces;
  pieces.reserve(learned.tokens.size() + static_cast<std::size_t>(special_count));
  for (std::string& token : learned.tokens) {
    std::string name = byte_names(token);
    pieces.push_back({std::move(token), std::move(name)});
  }
  std::vector<AddedToken> added = add_specials(specials, pieces);
  return std::make_unique<ByteBpe>(std::move(pieces), std::move(added), std::move(model));
}

std::unique_ptr<Tokenizer> load_with(const std::filesystem::path& path,
                                     const SpecialTokens& specials) {
  std::unique_ptr<Tokenizer> tokenizer = Tokenizer::load(path);
  const auto require = [&](bool wanted, const std::optional<std::int32_t>& id,
                           std::string_view name) {
    if (wanted && !id)
      fail(ErrorCode::io, path.string(), "lacks a special token that is needed here", name);
  };
  require(specials.pad, tokenizer->pad(), kPadName);
  require(specials.begin, tokenizer->begin(), kBeginName);
  require(specials.end, tokenizer->end(), kEndName);
  require(specials.unknown, tokenizer->unknown(), kUnknownName);
  require(specials.mask, tokenizer->mask(), kMaskName);
  return tokenizer;
}

}  // namespace

TokenizerSpec TokenizerSpec::parse(std::string_view spec, std::string_view where) {
  constexpr std::string_view bpe = "bpe:", word = "word:";
  TokenizerSpec parsed;
  if (spec == "char") {
    parsed.kind = Kind::character;
  } else if (spec == "byte") {
    parsed.kind = Kind::byte;
  } else if (spec == "word") {
    parsed.kind = Kind::word;
  } else if (spec.starts_with(word)) {
    parsed.kind = Kind::word;
    parsed.minimum_count = parse_count(spec.substr(word.size()), spec, where);
  } else if (spec.starts_with(bpe)) {
    parsed.kind = Kind::bpe;
    parsed.vocabulary = parse_count(spec.substr(bpe.size()), spec, where);
  } else if (spec.ends_with(".json")) {
    parsed.kind = Kind::file;
    parsed.file = spec;
  } else {
    fail(ErrorCode::invalid_argument, where, "no such tokenizer", kSpecs, spec);
  }
  return parsed;
}

std::string TokenizerSpec::to_string() const {
  switch (kind) {
    case Kind::character: return "char";
    case Kind::byte: return "byte";
    case Kind::word: return "word:" + std::to_string(minimum_count);
    case Kind::bpe: return "bpe:" + std::to_string(vocabulary);
    case Kind::file: return file.string();
  }
  return {};
}

std::unique_ptr<Tokenizer> train_tokenizer(const TokenizerSpec& spec,
                                           std::span<const std::string_view> texts,
                                           const SpecialTokens& specials,
                                           const ProgressSink& progress) {
  switch (spec.kind) {
    case Kind::character: return train_characters(texts, specials);
    case Kind::byte: return make_bytes(specials);
    case Kind::word:
      check_words(spec, specials);
      check_texts(texts);
      return word_tokenizer(spec, count_words(texts, WordRule::white_space, progress), specials);
    case Kind::bpe:
      check_bpe(spec, specials);
      return bpe_tokenizer(spec, count_words(texts, WordRule::gpt2, progress), specials, progress);
    case Kind::file: return load_with(spec.file, specials);
  }
  return nullptr;
}

std::unique_ptr<Tokenizer> train_on_pieces(const TokenizerSpec& spec, const TextPieces& pieces,
                                           const SpecialTokens& specials,
                                           const ProgressSink& progress) {
  if (spec.kind == Kind::byte || spec.kind == Kind::file)
    return train_tokenizer(spec, {}, specials, progress);
  if (spec.kind == Kind::character) {
    Alphabet alphabet;
    pieces([&alphabet](std::span<const std::string_view> texts) {
      check_texts(texts);
      for (const std::string_view text : texts) alphabet.add(text);
    });
    return alphabet.tokenizer(specials);
  }
  const bool is_word = spec.kind == Kind::word;
  if (is_word)
    check_words(spec, specials);
  else
    check_bpe(spec, specials);
  WordCounter counter(is_word ? WordRule::white_space : WordRule::gpt2);
  pieces([&](std::span<const std::string_view> texts) {
    if (is_word) check_texts(texts);
    counter.add(texts);
  });
  if (is_word) return word_tokenizer(spec, counter.words(), specials);
  return bpe_tokenizer(spec, counter.words(), specials, progress);
}

}  // namespace heddle::text
