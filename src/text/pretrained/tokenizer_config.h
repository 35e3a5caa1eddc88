// The files beside a tokenizer: tokenizer_config.json, special_tokens_map.json, added_tokens.json,
// chat_template.jinja.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/json/json.h"
#include "text/pretrained/pretrained.h"
#include "text/process/added_token.h"

namespace heddle::text {

// A special token by its name, and where that was read.
struct NamedSpecial {
  std::string name;
  std::string where;  // "tokenizer_config.json: key bos_token"
};

struct TokenizerConfig {
  std::string directory;
  std::string tokenizer_class;   // without "Fast" at its end; empty when no file says
  std::string model_type;        // of config.json
  std::optional<io::Json> json;  // tokenizer_config.json
  std::optional<NamedSpecial> pad, begin, end, unknown, mask, separator, classify;
  std::optional<bool> add_begin, add_end;
  std::vector<AddedToken> added;  // added_tokens_decoder and added_tokens.json
  std::vector<NamedTemplate> templates;
};

// Files that are not there say nothing.
TokenizerConfig read_tokenizer_config(const std::filesystem::path& directory);

// The ids of the special tokens, the frame, and the templates.
PretrainedTokenizer with_config(std::unique_ptr<Tokenizer> tokenizer, TokenizerConfig config);

}  // namespace heddle::text
