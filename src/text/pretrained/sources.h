// Where the tokenizers of pretrained models come from, besides tokenizer.json.
#pragma once

#include "io/gguf/gguf_metadata.h"
#include "text/pretrained/pretrained.h"

namespace heddle::text {

// The keys tokenizer.ggml.* and tokenizer.chat_template.
PretrainedTokenizer load_gguf_tokenizer(const io::GgufMetadata& metadata);

}  // namespace heddle::text
