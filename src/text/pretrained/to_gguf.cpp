#include "text/pretrained/to_gguf.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/error.h"
#include "io/json/json.h"
#include "text/pretrained/gguf_patterns.h"
#include "text/split/known_patterns.h"

namespace heddle::text {
namespace {

using io::GgufArray;
using io::Json;

constexpr std::int32_t kNormal = 1, kControl = 3, kUserDefined = 4, kUnused = 5;

[[noreturn]] void refuse(std::string_view what, std::string_view expected) {
  fail(ErrorCode::invalid_argument, "export to GGUF", "the tokenizer's " + std::string(what),
       std::string(expected), "what the format has no place for");
}

// The patterns of the steps that cut a text, in turn; GPT-2's where the last step has its own.
struct Steps {
  std::vector<std::string> patterns;
  bool byte_level = false;
};

void add_step(const Json& step, Steps& steps) {
  const std::string type = step.at("type").string();
  if (type == "Sequence") {
    const Json all = step.at("pretokenizers");
    for (std::size_t i = 0; i < all.size(); ++i) add_step(all.at(i), steps);
  } else if (type == "Digits" && step.boolean_or("individual_digits", false)) {
    steps.patterns.emplace_back(R"(\p{N})");
  } else if (type == "Split" && step.at("pattern").has("Regex")) {
    steps.patterns.push_back(step.at("pattern").at("Regex").string());
  } else if (type == "ByteLevel" && !step.boolean_or("add_prefix_space", true)) {
    steps.byte_level = true;
    if (step.boolean_or("use_regex", true)) steps.patterns.emplace_back(kGpt2Pattern);
  } else {
    refuse("pre_tokenizer " + type, "Split, Digits and ByteLevel without a prefix space");
  }
}

std::string_view pre_of(const Json& document) {
  if (!document.has("pre_tokenizer")) refuse("pre_tokenizer", "ByteLevel");
  Steps steps;
  add_step(document.at("pre_tokenizer"), steps);
  if (!steps.byte_level) refuse("pre_tokenizer", "ByteLevel at its end");
  const bool nfc = document.has("normalizer");
  if (nfc && document.at("normalizer").at("type").string() != "NFC") refuse("normalizer", "NFC");
  const bool ignore = document.at("model").boolean_or("ignore_merges", false);
  const std::vector<std::string> gpt2 = {std::string(kGpt2Pattern)};
  for (const NamedPatterns& known : named_patterns()) {
    const std::vector<std::string> wanted =
        known.patterns.empty()
            ? gpt2
            : std::vector<std::string>(known.patterns.begin(), known.patterns.end());
    if (wanted == steps.patterns && known.nfc == nfc && known.ignore_merges == ignore)
      return known.name;
  }
  refuse("pattern", "one that has a name in GGUF");
}

struct GgufTokens {
  std::vector<std::string> names;
  std::vector<std::int32_t> types;
};

GgufTokens tokens_of(const Json& document, std::int64_t rows) {
  GgufTokens all;
  all.names.reserve(static_cast<std::size_t>(rows));
  for (std::int64_t id = 0; id < rows; ++id) all.names.push_back("[PAD" + std::to_string(id) + "]");
  all.types.assign(static_cast<std::size_t>(rows), kUnused);
  const auto set = [&](std::int64_t id, std::string name, std::int32_t type) {
    all.names[static_cast<std::size_t>(id)] = std::move(name);
    all.types[static_cast<std::size_t>(id)] = type;
  };
  const Json vocabulary = document.at("model").at("vocab");
  for (const std::string& name : vocabulary.keys())
    set(vocabulary.at(name).integer(0, rows - 1), name, kNormal);
  const Json added = document.at("added_tokens");
  for (std::size_t i = 0; i < added.size(); ++i)
    set(added.at(i).at("id").integer(0, rows - 1), added.at(i).at("content").string(),
        added.at(i).boolean_or("special", true) ? kControl : kUserDefined);
  return all;
}

// "left right", or both in an array.
std::vector<std::string> merges_of(const Json& model) {
  std::vector<std::string> merges;
  const Json all = model.at("merges");
  merges.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Json merge = all.at(i);
    merges.push_back(merge.is_array() ? merge.at(0).string() + " " + merge.at(1).string()
                                      : merge.string());
  }
  return merges;
}

void add_ids(const GgufTokenizerParts& parts, io::GgufMetadata& metadata) {
  const SpecialIds& ids = parts.tokenizer.specials();
  const auto add = [&](std::string_view name, std::optional<std::int32_t> id) {
    if (id)
      metadata.add("tokenizer.ggml." + std::string(name) + "_token_id",
                   static_cast<std::uint32_t>(*id));
  };
  add("bos", ids.begin);
  add("eos", parts.ends.empty() ? ids.end : std::optional(parts.ends.front()));
  add("padding", ids.pad);
  add("unknown", ids.unknown);
  const std::vector<FramePart>& frame = parts.tokenizer.frame().single;
  const auto has = [&](std::optional<std::int32_t> id) {
    return id && std::ranges::any_of(frame, [&](const FramePart& part) {
             return part.kind == FramePart::Kind::token && part.id == *id;
           });
  };
  metadata.add("tokenizer.ggml.add_bos_token", has(ids.begin));
  metadata.add("tokenizer.ggml.add_eos_token", has(ids.end));
}

}  // namespace

bool is_gguf_tokenizer_key(std::string_view key) { return key.starts_with("tokenizer."); }

void add_gguf_tokenizer(const GgufTokenizerParts& parts, io::GgufMetadata& metadata) {
  const Json document = Json::parse(parts.tokenizer.to_json(), "tokenizer");
  if (document.at("model").at("type").string() != "BPE")
    refuse("kind, " + std::string(parts.tokenizer.kind()), "byte-level BPE (tokenizer = bpe:N)");
  const std::string pre(pre_of(document));
  GgufTokens tokens = tokens_of(document, parts.rows);
  metadata.add("tokenizer.ggml.model", std::string("gpt2"));
  metadata.add("tokenizer.ggml.pre", pre);
  metadata.add("tokenizer.ggml.tokens", GgufArray(std::move(tokens.names)));
  metadata.add("tokenizer.ggml.token_type", GgufArray(std::move(tokens.types)));
  metadata.add("tokenizer.ggml.merges", GgufArray(merges_of(document.at("model"))));
  add_ids(parts, metadata);
  for (const NamedTemplate& t : parts.templates)
    metadata.add(t.name == "default" ? std::string("tokenizer.chat_template")
                                     : "tokenizer.chat_template." + t.name,
                 t.text);
}

}  // namespace heddle::text
