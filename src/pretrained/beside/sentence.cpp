#include "pretrained/beside/sentence.h"

#include <array>
#include <string_view>
#include <utility>

#include "io/files/file.h"
#include "io/gguf/gguf.h"
#include "io/json/json.h"
#include "io/toml/toml.h"
#include "pretrained/settings/common.h"

namespace heddle::pretrained {
namespace {

constexpr std::size_t kMaxSentenceFile = std::size_t{1} << 20;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 30;

io::Json sentence_json(const std::string& path) {
  return io::Json::read(path, {.max_bytes = kMaxSentenceFile});
}

// "sentence_transformers.models.Pooling": the class, whatever package it lies in.
std::string class_of(const io::Json& module) {
  const std::string type = module.at("type").string();
  return type.substr(type.rfind('.') + 1);
}

// The folder of a module: of the same directory.
std::string folder_of(const io::Json& module) {
  const std::string name = module.at("path").string();
  if (name.find('/') != std::string::npos || name == "..")
    module.at("path").refuse("the name of a folder in the same directory");
  return name;
}

// Old files have a switch for each way, new ones its name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOldWays = {{
    {"pooling_mode_cls_token", "cls"},
    {"pooling_mode_mean_tokens", "mean"},
    {"pooling_mode_max_tokens", "max"},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
    {"pooling_mode_weightedmean_tokens", "weightedmean"},
    {"pooling_mode_lasttoken", "lasttoken"},
}};

model::Pooling read_pooling(const std::string& path) {
  const io::TomlDocument document = io::TomlDocument::of_json(sentence_json(path));
  const io::TomlTable& t = document.root();
  pass_over(t, {"word_embedding_dimension", "embedding_dimension", "include_prompt"});
  std::string way = t.has("pooling_mode") ? t.string("pooling_mode") : "";
  std::string_view key = "pooling_mode";
  for (const auto& [old, name] : kOldWays) {
    if (!t.boolean_or(old, false)) continue;
    if (!way.empty()) t.refuse(old, "false: one way of pooling, not several behind each other");
    way = name;
    key = old;
  }
  document.finish();
  if (way == "cls") return model::Pooling::first_token;
  if (way == "mean") return model::Pooling::mean;
  t.refuse(key, "cls or mean, the ways that Heddle has");
}

void read_lengths(const std::string& path, SentenceSettings& settings) {
  if (!io::file_exists(path)) return;
  const io::TomlDocument document = io::TomlDocument::of_json(sentence_json(path));
  const io::TomlTable& t = document.root();
  if (t.has("max_seq_length")) settings.longest = t.integer("max_seq_length", {1, kMostTokens});
  require_switch(t, "do_lower_case", false, false);
  (void)t.choice_or("transformer_task", "feature-extraction", {"feature-extraction"});
  // Names of what the layers give, for models of texts and images.
  pass_over(t, {"modality_config", "module_output_name", "processing_kwargs", "unpad_inputs",
                "query_expansion", "message_format"});
  document.finish();
}

void check_prompt(const std::string& path) {
  if (!io::file_exists(path)) return;
  const io::Json config = sentence_json(path);
  if (config.has("default_prompt_name"))
    config.at("default_prompt_name")
        .refuse("null: write what stands before every text into the texts");
}

// 0 is none; whether vectors have length 1 such a file does not say.
std::optional<model::Pooling> gguf_pooling(const std::string& path) {
  constexpr std::int64_t kMean = 1, kClass = 2, kMost = 4;
  const io::GgufFile file(path);
  const io::GgufMetadata& metadata = file.metadata();
  const std::string key = metadata.string("general.architecture") + ".pooling_type";
  const std::int64_t way = metadata.integer_or(key, 0, 0, kMost);
  if (way > kClass) metadata.refuse(key, "1 or 2: the mean or the class token");
  if (way == kMean) return model::Pooling::mean;
  if (way == kClass) return model::Pooling::first_token;
  return std::nullopt;
}

}  // namespace

SentenceSettings read_sentence_settings(const std::string& path) {
  SentenceSettings settings;
  if (path.ends_with(".gguf")) {
    settings.pooling = gguf_pooling(path);
    return settings;
  }
  if (!io::file_exists(path + "/modules.json")) return settings;
  const io::Json modules = sentence_json(path + "/modules.json");
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const io::Json module = modules.at(i);
    const std::string type = class_of(module), folder = folder_of(module);
    const bool in_turn = (type == "Transformer" && i == 0 && folder.empty()) ||
                         (type == "Pooling" && i == 1) || (type == "Normalize" && i == 2);
    if (!in_turn)
      module.at("type").refuse(
          "Transformer, Pooling and perhaps Normalize, in this order: Heddle has no other layers "
          "behind an encoder");
    if (type == "Pooling")
      settings.pooling =
          read_pooling(std::string(path).append("/").append(folder) + "/config.json");
    settings.normalise = type == "Normalize";
  }
  read_lengths(path + "/sentence_bert_config.json", settings);
  check_prompt(path + "/config_sentence_transformers.json");
  return settings;
}

}  // namespace heddle::pretrained
