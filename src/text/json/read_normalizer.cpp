#include "text/json/read_parts.h"
#include "text/normalize/charsmap.h"

namespace heddle::text {

namespace {

using io::Json;

NormalizerPtr read_bert(const Json& json) {
  check_keys(json, {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  const bool lower = json.boolean_or("lowercase", true);
  return bert_normalizer({.clean_text = json.boolean_or("clean_text", true),
                          .handle_chinese_chars = json.boolean_or("handle_chinese_chars", true),
                          .strip_accents = json.boolean_or("strip_accents", lower),
                          .lowercase = lower});
}

NormalizerPtr read_normalizers(const Json& json) {
  check_keys(json, {"type", "normalizers"});
  std::vector<NormalizerPtr> steps;
  const Json list = json.at("normalizers");
  steps.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) steps.push_back(read_normalizer(list.at(i)));
  return sequence(std::move(steps));
}

// Those without options; null for other names.
NormalizerPtr plain_normalizer(std::string_view type) {
  if (type == "NFC") return unicode_form({.composed = true, .compatible = false});
  if (type == "NFD") return unicode_form({.composed = false, .compatible = false});
  if (type == "NFKC") return unicode_form({.composed = true, .compatible = true});
  if (type == "NFKD") return unicode_form({.composed = false, .compatible = true});
  if (type == "Lowercase") return lowercase();
  if (type == "StripAccents") return strip_accents();
  if (type == "ByteLevel") return byte_level_names();
  return nullptr;
}

}  // namespace

PatternPtr read_pattern(const Json& pattern) {
  check_keys(pattern, {"String", "Regex"});
  if (pattern.has("Regex"))
    return regex(pattern.at("Regex").string(), pattern.file() + ": key " + pattern.path());
  const std::string text = pattern.at("String").string();
  if (text.empty()) pattern.at("String").refuse("a text that is not empty");
  return literal(text);
}

NormalizerPtr read_normalizer(const Json& json) {
  const std::string type = json.at("type").string();
  if (type == "Sequence") return read_normalizers(json);
  if (type == "BertNormalizer") return read_bert(json);
  if (type == "Replace") {
    check_keys(json, {"type", "pattern", "content"});
    return replace(read_pattern(json.at("pattern")), json.at("content").string());
  }
  if (type == "Prepend") {
    check_keys(json, {"type", "prepend", kTextsOnlyKey});
    return prepend(json.at("prepend").string(), json.boolean_or(kTextsOnlyKey, false));
  }
  if (type == "Strip") {
    check_keys(json, {"type", "strip_left", "strip_right"});
    return strip(json.boolean_or("strip_left", true), json.boolean_or("strip_right", true));
  }
  if (type == "Precompiled") {
    check_keys(json, {"type", "precompiled_charsmap", kLongestMatchKey, kReplaceBrokenKey});
    const bool longest = json.boolean_or(kLongestMatchKey, false);
    const std::string where = json.file() + ": key " + json.path() + ".precompiled_charsmap";
    return charsmap(from_base64(json.at("precompiled_charsmap").string(), where), where,
                    {.lookup = longest ? CharsmapLookup::longest : CharsmapLookup::clusters,
                     .replace_broken = json.boolean_or(kReplaceBrokenKey, false)});
  }
  check_keys(json, {"type"});
  NormalizerPtr plain = plain_normalizer(type);
  if (!plain) json.at("type").refuse("a normalizer that Heddle has");
  return plain;
}

}  // namespace heddle::text
