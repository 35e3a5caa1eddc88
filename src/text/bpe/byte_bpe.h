// Byte-level BPE, as of GPT-2; without merges it is the tokenizer of bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe/byte_model.h"
#include "text/models/word_encoder.h"
#include "text/tokenizer.h"

namespace heddle::text {

class ByteBpe final : public Tokenizer {
 public:
  ByteBpe(std::vector<Piece> pieces, std::vector<AddedToken> added, BpeModel parts);
  ~ByteBpe() override;

  std::string_view kind() const override { return is_bytes_ ? "byte" : "bpe"; }
  std::string to_json() const override;

 protected:
  void encode_plain(std::string_view text, std::size_t offset,
                    std::vector<std::int32_t>& ids) const override;
  Cuts plain_cuts() const override;

 private:
  ByteModel model_;
  WordEncoder words_;
  bool is_bytes_;
};

}  // namespace heddle::text
