// The names that GGUF files have for the patterns of byte-level tokenizers.
#pragma once

#include <string_view>
#include <vector>

namespace heddle::text {

// How the words of a byte-level tokenizer are cut: by each pattern in turn.
struct NamedPatterns {
  std::string_view name;
  std::vector<std::string_view> patterns;  // none: GPT-2's, of the ByteLevel step itself
  bool ignore_merges = false;
  bool add_begin = false;  // where the file does not say
  bool nfc = false;
};

const std::vector<NamedPatterns>& named_patterns();

}  // namespace heddle::text
