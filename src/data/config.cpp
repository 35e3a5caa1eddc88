#include "data/config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include "base/number_text.h"
#include "data/keys.h"
#include "data/library/library.h"
#include "data/library/pattern.h"
#include "data/order/mixture.h"
#include "heddle/error.h"
#include "nn/require.h"
#include "text/train.h"

namespace heddle::data {
namespace {

using model::Kind;
using model::Task;
using nn::require;
using TokenizerKind = text::TokenizerSpec::Kind;

constexpr const char* kWhere = "[data]";
constexpr std::int64_t kLongestSequence = std::int64_t{1} << 24;

struct Use {
  Task task;
  bool images;                         // classify
  std::vector<std::string_view> keys;  // of files
  std::string_view wanted;             // the same for people
};

Use use_of(Kind kind, Task task, bool chat) {
  switch (task) {
    case Task::language:
      if (chat && kind == Kind::decoder)
        return {task, false, {"chat"}, "chat for every split, or text for every split"};
      return {task, false, {"text"}, kind == Kind::decoder ? "text, or chat" : "text"};
    case Task::masked: return {task, false, {"text"}, "text"};
    case Task::translate:
      return {task, false, {"source", "target", "pairs"}, "source and target, or pairs"};
    case Task::tag: return {task, false, {"tags"}, "tags"};
    case Task::classify: break;
    case Task::embed: return {task, false, {}, "nothing: such a model is not trained"};
  }
  if (kind != Kind::vit) return {task, false, {"labelled"}, "labelled"};
  return {task, true, {"images", "labels", "image_folder"}, "images and labels, or image_folder"};
}

std::string task_name(const Use& use) {
  std::string name(model::to_string(use.task));
  if (use.task == Task::classify) name += use.images ? " of images" : " of texts";
  return name;
}

// Keys of the recipe: one of [data], and those that decide what it is judged by.
std::string in_data(std::string_view key) { return "data." + std::string(key); }
std::vector<std::string> by_task(std::string_view key) {
  return {in_data(key), "model.task", "model.kind"};
}

void require_for_task(bool ok, std::string_view key, std::string_view expected,
                      std::string_view got) {
  if (!ok) nn::refuse(kWhere, by_task(key), expected, got);
}

void require_for_task(bool ok, std::string_view key, std::string_view expected, double got) {
  if (!ok) require_for_task(false, key, expected, number_text(got));
}

void refuse_key(const Use& use, std::string_view key, const std::string& got) {
  nn::refuse(kWhere, by_task(key),
             "for the task " + task_name(use) + ": " + std::string(use.wanted), got,
             " has no use here");
}

std::vector<std::string> file_keys(Split split) {
  std::vector<std::string> keys = {in_data(key_name(split, "text"))};
  for (const FileKey& key : kFileKeys) keys.push_back(in_data(key_name(split, key.name)));
  return keys;
}

bool is_used(const Use& use, std::string_view key) {
  return std::find(use.keys.begin(), use.keys.end(), key) != use.keys.end();
}

// The keys that come together or exclude each other.
void check_together(const Files& files, Split split, const char* first, const char* second,
                    const char* instead) {
  const auto value = [&](const char* key) { return file_of(files, key); };
  const auto name = [&](const char* key) { return key_name(split, key); };
  const auto full = [&](const char* key) { return in_data(name(key)); };
  const bool both = !value(first).empty() && !value(second).empty();
  const bool any = !value(first).empty() || !value(second).empty();
  if (any && !both)
    require(
        false, kWhere,
        {full(value(first).empty() ? first : second), full(value(first).empty() ? second : first)},
        "a file beside " + name(value(first).empty() ? second : first), "nothing");
  if (any && !value(instead).empty())
    require(false, kWhere, {full(instead), full(first), full(second)},
            "nothing, where " + name(first) + " is given", value(instead));
}

void check_files(const DataConfig& config, const Use& use, const DataNeeds& needs) {
  for (const Split split : {Split::training, Split::validation, Split::test}) {
    const Files& files = config.files(split);
    if (!files.text.empty() && !is_used(use, "text"))
      refuse_key(use, key_name(split, "text"), files.text.front());
    for (const FileKey& key : kFileKeys)
      if (!(files.*key.member).empty() && !is_used(use, key.name))
        refuse_key(use, key_name(split, key.name), files.*key.member);
    if (use.task == Task::translate) check_together(files, split, "source", "target", "pairs");
    if (use.images) check_together(files, split, "images", "labels", "image_folder");
    for (const std::string& file : files.text)
      require(!file.empty(), kWhere, in_data(key_name(split, "text")), "names of files", "\"\"");
  }
  if (needs.training)
    require_for_task(config.training.given(), use.keys.front(),
                     "data for the task " + task_name(use) + ": " + std::string(use.wanted),
                     "nothing");
  if (!config.validation_share) return;
  if (config.validation.given()) {
    std::vector<std::string> keys = file_keys(Split::validation);
    keys.insert(keys.begin(), in_data("validation_share"));
    nn::refuse(kWhere, std::move(keys), "nothing, where validation data has files of its own",
               number_text(*config.validation_share));
  }
  require(*config.validation_share >= 0 && *config.validation_share < 1, kWhere,
          in_data("validation_share"), "0 up to, but not 1", *config.validation_share);
}

// Whether the tokenizer cuts words. An Error when there is no such tokenizer.
bool is_word(std::string_view key, const std::string& spec) {
  if (spec.empty()) return false;
  try {
    return text::TokenizerSpec::parse(spec, kWhere).kind == TokenizerKind::word;
  } catch (const Error& e) {
    nn::refuse(kWhere, {in_data(key)}, e.expected(), e.got(), ": " + e.problem());
  }
}

void check_tokenizers(const DataConfig& config, const Use& use, const DataNeeds& needs) {
  if (use.images) {
    if (!config.tokenizer.empty()) refuse_key(use, "tokenizer", config.tokenizer);
  } else if (needs.codec && is_used(use, "chat")) {
    require(false, kWhere, {"data.chat", "train.from"},
            "train.from with a model that has a chat template", "none");
  } else if (needs.codec) {
    require_for_task(!config.tokenizer.empty(), "tokenizer",
                     "char, byte, word, bpe:N or a tokenizer.json", "nothing");
  }
  if (!config.target_tokenizer.empty() && use.task != Task::translate)
    refuse_key(use, "target_tokenizer", config.target_tokenizer);
  if (config.source_end && use.task != Task::translate)
    refuse_key(use, "source_end", *config.source_end ? "true" : "false");

  const bool source_words = is_word("tokenizer", config.tokenizer);
  const bool target_words = is_word("target_tokenizer", config.target_tokenizer);
  const bool word = source_words || target_words;
  const bool plain_word = config.tokenizer == "word" || config.target_tokenizer == "word";
  if (config.min_count) {
    require(plain_word, kWhere, {"data.min_count", "data.tokenizer", "data.target_tokenizer"},
            "nothing, unless the tokenizer is \"word\"", static_cast<double>(*config.min_count));
    require(*config.min_count >= 1, kWhere, in_data("min_count"), "at least 1",
            static_cast<double>(*config.min_count));
  }
  if (config.word_shapes)
    require(use.task == Task::tag && word, kWhere,
            {"data.word_shapes", "data.tokenizer", "model.task", "model.kind"},
            "nothing, unless words are tagged and the tokenizer is \"word\"",
            *config.word_shapes ? "true" : "false");
}

void check_lengths(const DataConfig& config, const Use& use, const DataNeeds& needs) {
  const bool windows = is_used(use, "text");
  const auto context = static_cast<double>(config.context);
  if (!windows)
    require_for_task(config.context == 0, "context", "nothing: sequences have a max_length",
                     context);
  else if (config.context != 0 || needs.codec)
    require_for_task(config.context >= 1 && config.context <= kLongestSequence, "context",
                     "1 to " + std::to_string(kLongestSequence) + " tokens of a window",
                     config.context == 0 ? "none" : std::to_string(config.context));
  if (config.max_length) {
    const auto length = static_cast<double>(*config.max_length);
    require_for_task(
        !windows && !use.images, "max_length",
        windows ? "nothing: a window has context tokens" : "nothing: images have no tokens",
        length);
    require(*config.max_length >= 1 && *config.max_length <= kLongestSequence, kWhere,
            in_data("max_length"), "1 to " + std::to_string(kLongestSequence), length);
  }
}

void check_chat(const DataConfig& config, const Use& use) {
  const bool chat = is_used(use, "chat");
  if (config.skip_long)
    require(chat, kWhere, {"data.skip_long", "data.chat"}, "nothing, unless chat is given",
            *config.skip_long ? "true" : "false");
  if (!chat) return;
  if (!config.tokenizer.empty())
    require(false, kWhere, {"data.tokenizer", "data.chat"},
            "nothing: conversations need the tokenizer and the chat template of train.from",
            config.tokenizer);
  if (config.prompts)
    require(false, kWhere, {"data.chat", "model.attention.prefix"},
            "nothing: a model with a prefix learns from a text", config.training.chat);
}

void check_documents(const DataConfig& config, const Use& use, Kind kind) {
  if (config.documents == Documents::none) return;
  const std::string_view got = to_string(config.documents);
  require_for_task(is_used(use, "text"), "documents", "none, unless a text is read", got);
  require_for_task(kind == Kind::decoder || kind == Kind::encoder, "documents",
                   "none: the state of a recurrent network runs through the whole window", got);
}

void check_token_folder(const DataConfig& config, const Use& use) {
  if (config.token_folder.empty()) return;
  require_for_task(is_used(use, "text"), "token_folder", "nothing, unless a text is read",
                   config.token_folder);
}

void check_field(const DataConfig& config, const Use& use) {
  if (config.field.empty()) return;
  require_for_task(is_used(use, "text"), "field", "nothing, unless a text is read", config.field);
  const bool fits = config.documents == Documents::none || config.documents == Documents::line;
  require(fits, kWhere, {"data.documents", "data.field"},
          "line or none: with field each line is a document", to_string(config.documents));
}

void check_mixture(const DataConfig& config, const Use& use) {
  if (config.mixture.empty()) return;
  const std::string got = std::to_string(config.mixture.size()) + " weights";
  require_for_task(is_used(use, "text"), "mixture", "nothing, unless a text is read", got);
  const std::size_t texts = config.training.text.size();
  require(config.mixture.size() == texts || texts == 0, kWhere, {"data.mixture", "data.text"},
          "as many weights as text has entries: " + std::to_string(texts), got);
  require(texts <= kMostCorpora, kWhere, {"data.mixture", "data.text"},
          "at most " + std::to_string(kMostCorpora) + " names of text", got);
  for (const double weight : config.mixture)
    require(weight > 0, kWhere, in_data("mixture"), "weights above 0", weight);
  const std::vector<std::int64_t> shares = mixture_shares(config.mixture);
  for (std::size_t i = 0; i < shares.size(); ++i)
    require(shares[i] > 0, kWhere, in_data("mixture"),
            "weights of at least a part in " + std::to_string(kMixtureRound) + " of their sum",
            config.mixture[i]);
}

void check_rest(const DataConfig& config, const Use& use) {
  if (config.mask_share) {
    require_for_task(use.task == Task::masked, "mask_share", "nothing, unless the task is masked",
                     *config.mask_share);
    require(*config.mask_share > 0 && *config.mask_share < 1, kWhere, in_data("mask_share"),
            "between 0 and 1", *config.mask_share);
  }
  if (config.flip) require_for_task(use.images, "flip", "nothing, unless images are read", "true");
  if (config.shift != 0)
    require_for_task(use.images, "shift", "nothing, unless images are read",
                     static_cast<double>(config.shift));
  require(config.shift >= 0, kWhere, in_data("shift"), "0 or more pixels",
          static_cast<double>(config.shift));
  if (!config.label_names.empty())
    require(use.images && config.training.image_folder.empty(), kWhere,
            {"data.label_names", "data.image_folder", "model.task", "model.kind"},
            "nothing, unless labels are numbers", config.label_names.front());
}

// The key of [data] that names a file; empty where none does.
std::string key_of_path(const DataConfig& config, const std::string& path) {
  for (const Split split : {Split::training, Split::validation, Split::test}) {
    const Files& files = config.files(split);
    if (std::ranges::find(files.text, path) != files.text.end()) return key_name(split, "text");
    for (const FileKey& key : kFileKeys)
      if (files.*key.member == path) return key_name(split, key.name);
  }
  if (config.tokenizer == path) return "tokenizer";
  return config.target_tokenizer == path ? "target_tokenizer" : "";
}

}  // namespace

std::string Files::first() const {
  for (const std::string& file : text)
    if (!file.empty()) return file;
  for (const FileKey& key : kFileKeys)
    if (!(this->*key.member).empty()) return this->*key.member;
  return {};
}

std::string_view to_string(Documents documents) {
  switch (documents) {
    case Documents::none: return "none";
    case Documents::line: return "line";
    case Documents::blank_line: return "blank-line";
    case Documents::file: return "file";
  }
  return "none";
}

const Files& DataConfig::files(Split split) const {
  switch (split) {
    case Split::training: return training;
    case Split::validation: return validation;
    case Split::test: return test;
  }
  return training;
}

bool has_chat(const DataConfig& config) {
  return !config.training.chat.empty() || !config.validation.chat.empty() ||
         !config.test.chat.empty();
}

void validate(const DataConfig& config, Kind kind, Task task, const DataNeeds& needs) {
  const Use use = use_of(kind, task, has_chat(config));
  check_files(config, use, needs);
  check_tokenizers(config, use, needs);
  check_lengths(config, use, needs);
  check_chat(config, use);
  check_documents(config, use, kind);
  check_token_folder(config, use);
  check_field(config, use);
  check_mixture(config, use);
  check_rest(config, use);
}

std::vector<std::string> resolve_texts(const DataConfig& config,
                                       const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    const std::string path = resolve_path(config, name);
    std::vector<std::string> files = files_matching(path);
    if (files.empty()) files = {path};
    paths.insert(paths.end(), files.begin(), files.end());
  }
  return paths;
}

std::string resolve_path(const DataConfig& config, const std::string& path) {
  if (const auto found = find_path(config.directory, path)) return *found;
  const KnownData* known = known_data_of(path);
  std::string expected = "one in the working directory";
  if (!config.directory.empty() && config.directory != ".")
    expected += " or in " + config.directory;
  if (std::filesystem::path(path).is_absolute()) expected = "the path of a file that is there";
  if (known != nullptr) expected = "the file (" + how_to_get(*known) + ")";
  if (is_pattern(path)) expected = "a pattern that some file matches: " + expected;
  const std::string key = key_of_path(config, path);
  if (key.empty()) fail(ErrorCode::io, path, "there is no such file", expected);
  throw KeyError(kWhere, {in_data(key)}, ": there is no such file", expected, path);
}

}  // namespace heddle::data
