#include "text/pretrained/gguf_patterns.h"

#include "text/split/known_patterns.h"

namespace heddle::text {

const std::vector<NamedPatterns>& named_patterns() {
  constexpr std::string_view digit = R"(\p{N})";
  constexpr std::string_view lines = R"([\r\n])";
  constexpr std::string_view cjk = "[一-龥ࠀ-一가-퟿]+";
  static const std::vector<NamedPatterns> names = {
      {.name = "gpt-2", .patterns = {}},
      {.name = "mpt", .patterns = {}},
      {.name = "olmo", .patterns = {}},
      {.name = "phi-2", .patterns = {}},
      {.name = "llama3", .patterns = {kCl100kPattern}, .ignore_merges = true, .add_begin = true},
      {.name = "llama-v3", .patterns = {kCl100kPattern}, .ignore_merges = true, .add_begin = true},
      {.name = "llama-bpe", .patterns = {kCl100kPattern}, .ignore_merges = true, .add_begin = true},
      {.name = "dbrx", .patterns = {kCl100kPattern}},
      {.name = "smaug-bpe", .patterns = {kCl100kPattern}},
      {.name = "chatglm-bpe", .patterns = {kCl100kPattern}},
      {.name = "glm4", .patterns = {kCl100kPattern}},
      {.name = "qwen2", .patterns = {kQwen2Pattern}, .nfc = true},
      {.name = "deepseek-r1-qwen", .patterns = {kQwen2Pattern}, .nfc = true},
      {.name = "stablelm2", .patterns = {kQwen2Pattern}},
      {.name = "gpt-4o", .patterns = {kO200kPattern}},
      {.name = "llama4", .patterns = {kO200kPattern}},
      {.name = "starcoder", .patterns = {digit, kGpt2Pattern}},
      {.name = "refact", .patterns = {digit, kGpt2Pattern}},
      {.name = "command-r", .patterns = {digit, kGpt2Pattern}},
      {.name = "smollm", .patterns = {digit, kGpt2Pattern}},
      {.name = "codeshell", .patterns = {digit, kGpt2Pattern}},
      {.name = "falcon", .patterns = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Pattern, "[0-9][0-9][0-9]"}},
      {.name = "deepseek-coder", .patterns = {lines, R"(\s?\p{L}+)", R"(\s?\p{P}+)", cjk, digit}},
      {.name = "deepseek-v3",
       .patterns =
           {R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+",
            R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
            R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}},
  };
  return names;
}

}  // namespace heddle::text
