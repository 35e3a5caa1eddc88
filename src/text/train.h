// Tokenizers made from training text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace heddle::text {

// The value of a recipe's `tokenizer =`.
struct TokenizerSpec {
  enum class Kind : std::uint8_t { character, byte, word, bpe, file };

  Kind kind = Kind::character;
  std::int64_t vocabulary = 0;     // bpe: all tokens, special ones included
  std::int64_t minimum_count = 2;  // word: rarer words are unknown
  std::filesystem::path file;      // file: a tokenizer.json

  // "char", "byte", "word" (or "word:N": words seen at least N times), "bpe:N", or a path that ends
  // in .json. `where` names the key or option for errors.
  static TokenizerSpec parse(std::string_view spec, std::string_view where);
  std::string to_string() const;
};

// Which special tokens a new tokenizer has. They come last, in this order.
struct SpecialTokens {
  bool pad = false;      // <pad>
  bool begin = false;    // <s>
  bool end = false;      // </s>
  bool unknown = false;  // <unk>
  bool mask = false;     // <mask>
};

struct TrainingProgress {
  enum class Phase : std::uint8_t { counting, merging };
  Phase phase;
  std::int64_t done, total;  // bytes while counting, tokens while merging
};

// Called on the calling thread. It may throw to give up.
using ProgressSink = std::function<void(const TrainingProgress&)>;

// A tokenizer for the texts (for sentence pairs: both sides, when they share one). It is the same
// for any order of the texts and any number of threads.
//
// - char: every code point of the texts, in order of code points. The texts must be UTF-8.
// - byte: a token is a byte, its id the byte's value.
// - word: words between white space, the most frequent first, equally frequent ones in byte order.
// - bpe: byte-level BPE as of GPT-2. The pair of tokens seen most often becomes a token; of equally
//   frequent ones the pair with the smallest first, then the smallest second id. A pair seen once
//   is never merged: when no other is left, the vocabulary is smaller than asked for.
// - file: nothing is trained; the file must have the special tokens that are asked for.
std::unique_ptr<Tokenizer> train_tokenizer(const TokenizerSpec& spec,
                                           std::span<const std::string_view> texts,
                                           const SpecialTokens& specials = {},
                                           const ProgressSink& progress = {});

// A text that is larger than memory, as pieces: calls `take` with one after the other. The pieces
// of one call of `take` may be counted at the same time; a tokenizer's characters or words must be
// whole in each.
using TextPieces =
    std::function<void(const std::function<void(std::span<const std::string_view>)>& take)>;

// The same tokenizer as of the whole text. Memory is that of the pieces of a call and, for word and
// bpe, of the different words.
std::unique_ptr<Tokenizer> train_on_pieces(const TokenizerSpec& spec, const TextPieces& pieces,
                                           const SpecialTokens& specials = {},
                                           const ProgressSink& progress = {});

}  // namespace heddle::text
