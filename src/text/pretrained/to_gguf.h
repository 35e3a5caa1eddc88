// A tokenizer as GGUF metadata: the other direction of from_gguf.cpp.
#pragma once

#include <cstdint>
#include <span>

#include "io/gguf/gguf_metadata.h"
#include "text/pretrained/pretrained.h"

namespace heddle::text {

struct GgufTokenizerParts {
  const Tokenizer& tokenizer;
  std::int64_t rows = 0;  // of the model's table: ids without a token are named as unused
  std::span<const std::int32_t> ends;  // tokens that end a text: the format has a place for one
  std::span<const NamedTemplate> templates;
};

// Byte-level BPE, as it is or with no merges at all. Throws Error naming what the format has no
// place for: another kind, a pattern without a name there, a normalizer.
void add_gguf_tokenizer(const GgufTokenizerParts& parts, io::GgufMetadata& metadata);

// Keys of a GGUF file that are about its tokenizer.
bool is_gguf_tokenizer_key(std::string_view key);

}  // namespace heddle::text
