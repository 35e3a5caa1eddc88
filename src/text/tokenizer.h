// From text to token ids and back.
//
// A tokenizer never changes once it is made, and all its functions may be called from any number of
// threads. Its parts are written and read as a Hugging Face tokenizer.json.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::text {

// No vocabulary is larger: what a file may ask for has a bound.
inline constexpr std::int64_t kMaxVocabulary = std::int64_t{1} << 24;

// How the characters of a special token are read in a text that is encoded: "a</s>" is the two
// tokens "a" and end (as other tokenizers have it), or the five characters a < / s >.
enum class SpecialsInText : std::uint8_t { recognised, plain };

// Whether decoded text shows special tokens by their names.
enum class ShowSpecials : std::uint8_t { yes, no };

// A token that is searched for in the text before anything else; `special` ones can be left out of
// decoded text.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool special = true;
  bool normalized = false;  // searched for after those that are not
};

// One token: the bytes it stands for, and its name in tokenizer.json (the same but for byte-level
// tokenizers, where each byte is written as a printable character).
struct Piece {
  std::string bytes;
  std::string name;
};

class Tokenizer {
 public:
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  virtual ~Tokenizer();

  // Throws Error, with the offset of the byte, where the text has no tokens: an unknown character
  // or word without an unknown token, broken UTF-8 in a tokenizer of characters or words.
  std::vector<std::int32_t> encode(std::string_view text,
                                   SpecialsInText specials = SpecialsInText::recognised) const;

  // Throws Error when an id is not in [0, vocabulary()). Byte-level tokens may be parts of a
  // character, so the result is UTF-8 only when the ids are all of it.
  std::string decode(std::span<const std::int32_t> ids,
                     ShowSpecials specials = ShowSpecials::yes) const;

  std::int32_t vocabulary() const { return static_cast<std::int32_t>(pieces_.size()); }

  // The token for the eyes: spaces as "␣", control characters and parts of characters escaped.
  std::string token(std::int32_t id) const;

  // Whether the id is left out by ShowSpecials::no.
  bool is_special(std::int32_t id) const;

  std::optional<std::int32_t> pad() const { return pad_; }          // <pad>
  std::optional<std::int32_t> begin() const { return begin_; }      // <s>
  std::optional<std::int32_t> end() const { return end_; }          // </s>
  std::optional<std::int32_t> unknown() const { return unknown_; }  // <unk>
  std::optional<std::int32_t> mask() const { return mask_; }        // <mask>

  // "char", "byte", "word" or "bpe".
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
  // Ids are the places in `pieces`. Each added token is one of the pieces.
  Tokenizer(std::vector<Piece> pieces, std::vector<AddedToken> added, std::string separator);

  // Appends the ids of a text that has no special tokens in it. It starts `offset` bytes into the
  // text that encode() was given: for errors.
  virtual void encode_plain(std::string_view text, std::size_t offset,
                            std::vector<std::int32_t>& ids) const = 0;

  const std::vector<Piece>& pieces() const { return pieces_; }
  const std::vector<AddedToken>& added() const { return added_; }
  // The model's own unknown token, whatever its name.
  void set_unknown(std::int32_t id) { unknown_ = id; }

 private:
  // Added tokens that are searched for together.
  struct Group {
    std::vector<AddedToken> tokens;  // the longest first
    std::string first_bytes;         // where the search has to look closer
  };

  void encode_group(std::string_view text, std::size_t offset, std::size_t group,
                    std::vector<std::int32_t>& ids) const;
  const AddedToken* match(std::string_view text, std::size_t at, const Group& group) const;
  const Piece& piece(std::int32_t id) const;

  std::vector<Piece> pieces_;
  std::vector<AddedToken> added_;
  std::array<Group, 2> groups_;
  std::vector<bool> special_;  // of every id
  std::string separator_;      // between tokens in decoded text
  std::optional<std::int32_t> pad_, begin_, end_, unknown_, mask_;
};

}  // namespace heddle::text
