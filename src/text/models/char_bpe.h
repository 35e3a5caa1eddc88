// BPE whose first tokens are characters, as SentencePiece and the first BPE tokenizers have it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/bpe/junctions.h"
#include "text/bpe/merges.h"
#include "text/models/model.h"
#include "text/models/vocabulary.h"

namespace heddle::text {

struct CharBpeParts {
  NameIds ids;
  std::vector<Merge> merges;  // in order of rank
  std::optional<std::int32_t> unknown;
  bool fuse_unknown = false;      // unknown characters in a row are one token
  bool byte_fallback = false;     // they are their bytes, where all of those are tokens
  bool ignore_merges = false;     // a word that is a token is that token
  std::string continuing_prefix;  // of every character but a word's first
  std::string end_suffix;         // of a word's last character
};

class CharBpe final : public Model {
 public:
  explicit CharBpe(CharBpeParts parts);

  void encode(std::string_view word, std::size_t offset,
              std::vector<std::int32_t>& ids) const override;
  std::size_t part_end(std::string_view word, std::size_t at) const override;

 private:
  std::optional<std::int32_t> character_id(std::string_view character, bool is_first,
                                           bool is_last) const;
  bool merges_stay_in_text() const;

  CharBpeParts parts_;
  MergeTable table_;
  ByteIds bytes_{};
  // Without cuts the whole text would be one word where spaces are no ends of words.
  bool cuts_ = false;
  Junctions junctions_;
};

}  // namespace heddle::text
