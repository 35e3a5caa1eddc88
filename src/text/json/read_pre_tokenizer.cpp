#include "text/json/read_parts.h"
#include "text/unicode.h"

namespace heddle::text {

namespace {

using io::Json;

Behavior read_behavior(const Json& json) {
  const std::string name = json.string();
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  json.refuse("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

PreTokenizerPtr read_byte_level_step(const Json& json, bool rename_bytes) {
  check_keys(json, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  return byte_level({.prefix_space = json.boolean_or("add_prefix_space", true),
                     .use_regex = json.boolean_or("use_regex", true),
                     .rename = rename_bytes});
}

// Whether a ByteLevel step does nothing but rename.
bool only_renames(const Json& json) {
  return json.at("type").string() == "ByteLevel" && !json.boolean_or("add_prefix_space", true) &&
         !json.boolean_or("use_regex", true);
}

PreTokenizerPtr read_steps(const Json& json, bool rename_bytes) {
  check_keys(json, {"type", "pretokenizers"});
  std::vector<PreTokenizerPtr> steps;
  const Json list = json.at("pretokenizers");
  for (std::size_t i = 0; i < list.size(); ++i) {
    PreTokenizerPtr step = read_pre_tokenizer(list.at(i), rename_bytes);
    if (rename_bytes || !only_renames(list.at(i))) steps.push_back(std::move(step));
  }
  return sequence(std::move(steps));
}

std::size_t count_byte_level(const Json& json) {
  const std::string type = json.at("type").string();
  if (type != "Sequence") return type == "ByteLevel" ? 1 : 0;
  std::size_t count = 0;
  for (const std::string_view key : {"pretokenizers", "normalizers"})
    for (std::size_t i = 0; json.has(key) && i < json.at(key).size(); ++i)
      count += count_byte_level(json.at(key).at(i));
  return count;
}

bool last_is_byte_level(const Json& json) {
  const std::string type = json.at("type").string();
  if (type != "Sequence") return type == "ByteLevel";
  const Json list = json.at("pretokenizers");
  return list.size() > 0 && last_is_byte_level(list.at(list.size() - 1));
}

}  // namespace

bool ends_byte_level(const Json& document) {
  if (!document.has("pre_tokenizer")) return false;
  if (document.has("normalizer") && count_byte_level(document.at("normalizer")) != 0) return false;
  const Json json = document.at("pre_tokenizer");
  return count_byte_level(json) == 1 && last_is_byte_level(json);
}

MetaspaceOptions read_metaspace(const Json& json) {
  check_keys(json,
             {"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"});
  MetaspaceOptions options;
  options.replacement = json.string_or("replacement", options.replacement);
  const bool is_character =
      !options.replacement.empty() &&
      code_point_at(options.replacement, 0).bytes == options.replacement.size();
  if (!is_character) json.at("replacement").refuse("one character");
  options.split = json.boolean_or("split", true);
  const bool prefix = json.boolean_or("add_prefix_space", true);
  const std::string scheme = json.string_or("prepend_scheme", prefix ? "always" : "never");
  if (scheme == "never") {
    options.prepend = PrependScheme::never;
  } else if (scheme == "first") {
    options.prepend = PrependScheme::first;
  } else if (scheme != "always") {
    json.at("prepend_scheme").refuse("always, first or never");
  }
  return options;
}

PreTokenizerPtr read_pre_tokenizer(const Json& json, bool rename_bytes) {
  const std::string type = json.at("type").string();
  if (type == "Sequence") return read_steps(json, rename_bytes);
  if (type == "ByteLevel") return read_byte_level_step(json, rename_bytes);
  if (type == "Metaspace") return metaspace(read_metaspace(json));
  if (type == "Split") {
    check_keys(json, {"type", "pattern", "behavior", "invert"});
    return split(read_pattern(json.at("pattern")), read_behavior(json.at("behavior")),
                 json.boolean_or("invert", false));
  }
  if (type == "Punctuation") {
    check_keys(json, {"type", "behavior"});
    return punctuation(json.has("behavior") ? read_behavior(json.at("behavior"))
                                            : Behavior::isolated);
  }
  if (type == "Digits") {
    check_keys(json, {"type", "individual_digits"});
    return digits(json.boolean_or("individual_digits", false));
  }
  check_keys(json, {"type"});
  if (type == "BertPreTokenizer") return bert_pre_tokenizer();
  if (type == "Whitespace") return white_space();
  if (type == "WhitespaceSplit") return white_space_split();
  json.at("type").refuse("a pre-tokenizer that Heddle has");
}

}  // namespace heddle::text
