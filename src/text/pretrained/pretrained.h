// The tokenizer that came with a pretrained model, whatever files it came in.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/named_template.h"
#include "text/tokenizer.h"

namespace heddle::io {
class GgufFile;
}

namespace heddle::text {

// The tokenizer's specials() are those that the files name; none is guessed. framed() adds the
// tokens that the files ask for: begin and end of text, [CLS] and [SEP].
struct PretrainedTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Tokenizer> target =
      {};  // of the texts that the model writes, where it is another
  std::vector<NamedTemplate> templates;

  // The template called "default", or null.
  const std::string* chat_template() const;
};

// A directory as models are published in (tokenizer.json, or tokenizer.model, source.spm,
// vocab.json with merges.txt, vocab.txt; tokenizer_config.json and others beside them), or a .gguf
// file. What the files ask for and Heddle does not do is an Error that names the file and the key.
PretrainedTokenizer load_pretrained_tokenizer(const std::filesystem::path& path);
PretrainedTokenizer load_pretrained_tokenizer(const io::GgufFile& file);

}  // namespace heddle::text
