// Byte-level BPE, as of GPT-2; without merges it is the tokenizer of bytes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe/merges.h"
#include "text/bpe/word_cache.h"
#include "text/tokenizer.h"

namespace heddle::text {

// All of a byte-level tokenizer but its tokens.
struct BpeModel {
  std::array<std::int32_t, 256> byte_ids{};  // -1: the vocabulary does not have the byte
  std::vector<Merge> merges;                 // in order of rank
  std::optional<std::int32_t> unknown;       // for bytes that are not there
  bool fuse_unknown = false;                 // several of them in a row are one token
  bool prefix_space = false;                 // the text is read as if it began with a space
};

class ByteBpe final : public Tokenizer {
 public:
  ByteBpe(std::vector<Piece> pieces, std::vector<AddedToken> added, BpeModel model);
  ~ByteBpe() override;

  std::string_view kind() const override { return is_bytes_ ? "byte" : "bpe"; }
  std::string to_json() const override;

 protected:
  void encode_plain(std::string_view text, std::size_t offset,
                    std::vector<std::int32_t>& ids) const override;

 private:
  // Buffers of one call of encode; kept for the next call, whichever thread makes it.
  struct Workspace {
    WordCache cache;
    std::vector<std::int32_t> word;
  };

  void encode_bytes(std::string_view text, std::size_t offset,
                    std::vector<std::int32_t>& ids) const;
  void encode_words(std::string_view text, std::size_t offset, Workspace& workspace,
                    std::vector<std::int32_t>& ids) const;
  std::unique_ptr<Workspace> borrow() const;
  void give_back(std::unique_ptr<Workspace> workspace) const;

  BpeModel model_;
  MergeTable table_;
  bool is_bytes_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> idle_;  // by mutex_
};

}  // namespace heddle::text
