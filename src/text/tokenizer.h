// From text to token ids and back.
//
// A tokenizer never changes once it is made, and all its functions may be called from any number of
// threads. Its parts are written and read as a Hugging Face tokenizer.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/process/added_token.h"
#include "text/process/frame.h"

namespace heddle::text {

// No vocabulary is larger: what a file may ask for has a bound.
inline constexpr std::int64_t kMaxVocabulary = std::int64_t{1} << 24;

// How the characters of a special token are read in a text that is encoded: "a</s>" is the two
// tokens "a" and end (as other tokenizers have it), or the five characters a < / s >.
enum class SpecialsInText : std::uint8_t { recognised, plain };

// Whether decoded text shows special tokens by their names.
enum class ShowSpecials : std::uint8_t { yes, no };

// Where a text may be cut in two so that the ids of both, one behind the other, are those of the
// whole (split/find_cut.h): between any two characters; in front of white space behind a word; in
// front of a space behind a word, and behind the end of a line between two words.
enum class Cuts : std::uint8_t { nowhere, spaces, spaces_and_lines, white_space, characters };

// One token: the bytes it stands for, and its name in tokenizer.json (the same but for byte-level
// tokenizers, where each byte is written as a printable character).
struct Piece {
  std::string bytes;
  std::string name;
};

// The tokens that mean something to a model, by their ids; those that it has.
struct SpecialIds {
  std::optional<std::int32_t> pad, begin, end, unknown, mask, separator, classify;
  bool operator==(const SpecialIds&) const = default;
};

class AddedTokens;
struct SpecialPlaces;

class Tokenizer {
 public:
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  virtual ~Tokenizer();

  // Throws Error, with the offset of the byte, where the text has no tokens: an unknown character
  // or word without an unknown token, broken UTF-8 in a tokenizer of characters or words.
  std::vector<std::int32_t> encode(std::string_view text,
                                   SpecialsInText specials = SpecialsInText::recognised) const;

  // The same of a text in which some ranges, in order, are what people wrote: no byte of theirs is
  // part of a special token, and outside of them all are recognised. Otherwise it is one text.
  std::vector<std::int32_t> encode(std::string_view text, std::span<const TextRange> plain) const;

  // Throws Error when an id is not in [0, vocabulary()). Byte-level tokens may be parts of a
  // character, so the result is UTF-8 only when the ids are all of it.
  std::string decode(std::span<const std::int32_t> ids,
                     ShowSpecials specials = ShowSpecials::yes) const;

  // The ids of one text, or of two, with the tokens that the model was trained to see around them:
  // what the post-processor of a tokenizer.json adds.
  FramedIds framed(std::span<const std::int32_t> ids) const { return frame_.apply(ids); }
  FramedIds framed(std::span<const std::int32_t> first,
                   std::span<const std::int32_t> second) const {
    return frame_.apply(first, second);
  }

  // One more than the largest id. Ids between that no token has decode to nothing.
  std::int32_t vocabulary() const { return static_cast<std::int32_t>(pieces_.size()); }

  // The token for the eyes: spaces as "␣", control characters and parts of characters escaped.
  std::string token(std::int32_t id) const;

  // Whether the id is left out by ShowSpecials::no.
  bool is_special(std::int32_t id) const;

  const SpecialIds& specials() const { return specials_; }
  std::optional<std::int32_t> pad() const { return specials_.pad; }          // <pad>
  std::optional<std::int32_t> begin() const { return specials_.begin; }      // <s>
  std::optional<std::int32_t> end() const { return specials_.end; }          // </s>
  std::optional<std::int32_t> unknown() const { return specials_.unknown; }  // <unk>
  std::optional<std::int32_t> mask() const { return specials_.mask; }        // <mask>

  // As the files around a tokenizer.json have them, which has no place for them itself.
  void set_specials(const SpecialIds& specials) { specials_ = specials; }
  const Frame& frame() const { return frame_; }
  void set_frame(Frame frame) { frame_ = std::move(frame); }

  // Where texts that are larger than memory are cut. Nowhere where it is not known that a cut
  // changes nothing: normalizers, patterns of all kinds and tokens that take white space may look
  // at any distance.
  Cuts cuts(SpecialsInText specials = SpecialsInText::recognised) const;

  // The id of an added token, or of a token of the model, by its name.
  std::optional<std::int32_t> find(std::string_view name) const;

  // "char", "byte", "word" or "bpe"; of files of others also "unigram" and "wordpiece".
  virtual std::string_view kind() const = 0;

  // A whole tokenizer.json; from_json() of it is an equal tokenizer, and so is what Hugging Face's
  // `tokenizers` makes of it.
  virtual std::string to_json() const = 0;

  // Writes to_json() to a file, whole or not at all.
  void save(const std::filesystem::path& path) const;

  // A tokenizer.json, or a directory that holds one. Whatever is wrong with it, or not supported,
  // is an Error that names the field.
  static std::unique_ptr<Tokenizer> load(const std::filesystem::path& path);
  static std::unique_ptr<Tokenizer> from_json(std::string_view json, std::string_view where);

 protected:
  // Ids are the places in `pieces`; a hole has an empty name. Each added token is one of the
  // pieces.
  Tokenizer(std::vector<Piece> pieces, std::vector<AddedToken> added, std::string separator);

  // Appends the ids of a text that has no special tokens in it. It starts `offset` bytes into the
  // text that encode() was given: for errors.
  virtual void encode_plain(std::string_view text, std::size_t offset,
                            std::vector<std::int32_t>& ids) const = 0;

  // cuts() of a text that has no added tokens in it.
  virtual Cuts plain_cuts() const { return Cuts::nowhere; }

  // The text as encode_plain() takes it; nothing where that is the text itself.
  virtual std::optional<std::string> normalized(std::string_view text) const;

  // Text of ids that are all in range and to be shown.
  virtual std::string joined(std::span<const std::int32_t> ids) const;

  // Added tokens that are searched for in normalized text are themselves normalized.
  void prepare_search(const std::function<std::string(std::string_view)>& normalize);

  const std::vector<Piece>& pieces() const { return pieces_; }
  const std::vector<AddedToken>& added() const { return added_; }
  // The model's own unknown token, whatever its name.
  void set_unknown(std::int32_t id) { specials_.unknown = id; }

 private:
  // Added tokens are searched for in the text as it is, then others in what lies between them.
  enum class Search : std::uint8_t { as_given, normalized };
  void encode_between(std::string_view text, std::size_t offset, Search search,
                      const SpecialPlaces& specials, std::vector<std::int32_t>& ids) const;
  void encode_given(std::string_view text, TextRange part, const SpecialPlaces& specials,
                    std::vector<std::int32_t>& ids) const;
  void encode_normalized(std::string_view text, std::size_t offset, bool with_special,
                         std::vector<std::int32_t>& ids) const;
  const Piece& piece(std::int32_t id) const;

  std::vector<Piece> pieces_;
  std::vector<AddedToken> added_;
  std::unique_ptr<AddedTokens> as_given_, in_normalized_;
  Frame frame_;
  std::vector<bool> special_;  // of every id
  std::string separator_;      // between tokens in decoded text
  SpecialIds specials_;
};

}  // namespace heddle::text
