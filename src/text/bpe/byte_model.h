// BPE whose first tokens are bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/bpe/flat_map.h"
#include "text/bpe/junctions.h"
#include "text/bpe/merges.h"
#include "text/models/model.h"
#include "text/models/vocabulary.h"

namespace heddle::text {

// All of a byte-level tokenizer but its tokens.
struct BpeModel {
  std::array<std::int32_t, 256> byte_ids{};  // -1: the vocabulary does not have the byte
  std::vector<Merge> merges;                 // in order of rank
  std::optional<std::int32_t> unknown;       // for bytes that are not there
  bool fuse_unknown = false;                 // several of them in a row are one token
  bool prefix_space = false;                 // the text is read as if it began with a space
  NameIds whole_words;                       // words, as bytes, that no merge is asked about
};

class ByteModel final : public Model {
 public:
  explicit ByteModel(BpeModel parts);

  void encode(std::string_view word, std::size_t offset,
              std::vector<std::int32_t>& ids) const override;

  std::size_t part_end(std::string_view word, std::size_t at) const override;

  // The tokens of the bytes, before any merge.
  void encode_bytes(std::string_view text, std::size_t offset,
                    std::vector<std::int32_t>& ids) const;

  const BpeModel& parts() const { return parts_; }

 private:
  bool note_junctions();

  BpeModel parts_;
  MergeTable table_;
  FlatMap<std::string_view, std::int32_t> whole_words_;  // views into those of parts_
  Junctions junctions_;
  bool cuts_ = false;
};

}  // namespace heddle::text
