#include "pretrained/beside/generation.h"

#include <optional>
#include <string>
#include <string_view>

#include "heddle/error.h"
#include "io/files/file.h"
#include "io/gguf/gguf.h"
#include "io/json/json.h"

namespace heddle::pretrained {
namespace {

constexpr std::size_t kMaxSettings = std::size_t{16} << 20, kMostForbidden = 65536;

// The two files, the one that is asked first at the front.
std::vector<io::Json> settings_of(const Opened& opened) {
  std::vector<io::Json> all;
  if (opened.gguf) return all;
  for (const char* name : {"/generation_config.json", "/config.json"}) {
    const std::string file = opened.path + name;
    if (io::file_exists(file)) all.push_back(io::Json::read(file, {.max_bytes = kMaxSettings}));
  }
  return all;
}

std::optional<io::Json> find(const std::vector<io::Json>& settings, std::string_view key) {
  for (const io::Json& json : settings)
    if (json.has(key)) return json.at(key);
  return std::nullopt;
}

// One id, or several.
std::vector<std::int32_t> tokens_of(const std::optional<io::Json>& value, std::int64_t vocabulary) {
  std::vector<std::int32_t> tokens;
  const auto add = [&](const io::Json& id) {
    tokens.push_back(static_cast<std::int32_t>(id.integer(0, vocabulary - 1)));
  };
  if (!value) return tokens;
  if (!value->is_array()) {
    add(*value);
    return tokens;
  }
  if (value->size() > kMostForbidden)
    value->refuse("at most " + std::to_string(kMostForbidden) + " tokens");
  tokens.reserve(value->size());
  for (std::size_t i = 0; i < value->size(); ++i) add(value->at(i));
  return tokens;
}

// [[58100]]: lists of one token each.
void add_bad_words(const std::optional<io::Json>& value, std::int64_t vocabulary,
                   std::vector<std::int32_t>& never) {
  if (!value) return;
  if (!value->is_array() || value->size() > kMostForbidden)
    value->refuse("an array of at most " + std::to_string(kMostForbidden) + " arrays");
  for (std::size_t i = 0; i < value->size(); ++i) {
    const auto word = tokens_of(value->at(i), vocabulary);
    if (word.size() != 1)
      value->at(i).refuse("one token: sequences of tokens that are forbidden are not built");
    never.push_back(word.front());
  }
}

std::optional<std::int32_t> gguf_start(const Opened& opened, std::int64_t vocabulary) {
  const io::GgufFile file(opened.path);
  const std::string key = std::string(opened.family->name) + ".decoder_start_token_id";
  if (!file.metadata().has(key)) return std::nullopt;
  return static_cast<std::int32_t>(file.metadata().integer(key, 0, vocabulary - 1));
}

}  // namespace

std::vector<std::int32_t> ends_of(const Opened& opened, const text::Tokenizer& tokenizer) {
  auto ends =
      tokens_of(find(settings_of(opened), "eos_token_id"), opened.config.vocabulary_of_target());
  if (!ends.empty()) return ends;
  if (const auto end = tokenizer.end()) return {*end};
  return {};
}

data::Writing writing_of(const Opened& opened, const std::vector<std::int32_t>& ends) {
  const std::vector<io::Json> settings = settings_of(opened);
  const std::int64_t vocabulary = opened.config.vocabulary_of_target();
  const auto one = [&](std::string_view key) -> std::optional<std::int32_t> {
    const auto value = find(settings, key);
    if (!value) return std::nullopt;
    return static_cast<std::int32_t>(value->integer(0, vocabulary - 1));
  };
  data::Writing writing;
  if (opened.gguf) writing.begin = gguf_start(opened, vocabulary);
  if (!writing.begin) writing.begin = one("decoder_start_token_id");
  if (!writing.begin) writing.begin = one("bos_token_id");
  if (!writing.begin)
    fail(ErrorCode::io, opened.path, "no file says which token the decoder reads first",
         opened.gguf ? "the key decoder_start_token_id of its architecture"
                     : "decoder_start_token_id in generation_config.json or config.json",
         "none");
  writing.ends = ends;
  writing.first = one("forced_bos_token_id");
  writing.ends_at_limit = find(settings, "forced_eos_token_id").has_value();
  add_bad_words(find(settings, "bad_words_ids"), vocabulary, writing.never);
  for (const std::int32_t token : tokens_of(find(settings, "suppress_tokens"), vocabulary))
    writing.never.push_back(token);
  return writing;
}

}  // namespace heddle::pretrained
