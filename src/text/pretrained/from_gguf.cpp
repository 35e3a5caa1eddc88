#include "text/pretrained/sources.h"

namespace heddle::text {

PretrainedTokenizer load_gguf_tokenizer(const io::GgufMetadata& metadata) {
  metadata.refuse("tokenizer.ggml.model", "a tokenizer that Heddle has");
}

}  // namespace heddle::text
