// Tokenizers in files that are no tokenizer.json. Such files do not say all that a tokenizer is:
// the rest is in the code of the class that tokenizer_config.json names. A class that is not known
// here is refused.
#include <algorithm>
#include <array>
#include <utility>

#include "io/errors.h"
#include "io/files/file.h"
#include "text/json/read_parts.h"
#include "text/pretrained/document.h"
#include "text/pretrained/sentencepiece.h"
#include "text/pretrained/sources.h"
#include "text/split/known_patterns.h"

namespace heddle::text {

namespace {

using io::Json;

constexpr std::size_t kMaxFileBytes = io::JsonLimits{}.max_bytes;

// The class, or the one that goes with the model's type where no file names one.
std::string class_of(const TokenizerConfig& config) {
  if (!config.tokenizer_class.empty()) return config.tokenizer_class;
  constexpr std::array classes = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"gpt2", "GPT2Tokenizer"},
      {"llama", "LlamaTokenizer"},
      {"mistral", "LlamaTokenizer"},
      {"gemma", "GemmaTokenizer"},
      {"gemma2", "GemmaTokenizer"},
      {"t5", "T5Tokenizer"},
      {"mt5", "T5Tokenizer"},
      {"bart", "BartTokenizer"},
      {"bert", "BertTokenizer"},
      {"distilbert", "DistilBertTokenizer"},
      {"qwen2", "Qwen2Tokenizer"},
      {"qwen3", "Qwen2Tokenizer"},
  });
  for (const auto& [type, name] : classes)
    if (type == config.model_type) return std::string(name);
  return {};
}

[[noreturn]] void refuse_class(const TokenizerConfig& config, std::string_view known,
                               std::string_view what) {
  const std::string name = class_of(config);
  io::fail_io(
      config.directory,
      "the tokenizer's class (tokenizer_class of tokenizer_config.json) with " + std::string(what),
      std::string(known) + ", or a tokenizer.json beside it",
      name.empty() ? "no file that names it" : name);
}

// Tokens that the configuration adds to those of the file.
void add_configured(const TokenizerConfig& config, std::vector<AddedToken>& added) {
  for (const AddedToken& token : config.added) {
    const auto known = std::find_if(added.begin(), added.end(), [&](const AddedToken& other) {
      return other.content == token.content;
    });
    if (known == added.end()) {
      added.push_back(token);
    } else {
      *known = token;
    }
  }
  // Special tokens of the model's own that nobody lists.
  std::sort(added.begin(), added.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
}

// Names of special tokens are added tokens: they are found in a text, and can be left out of it.
void add_specials(const TokenizerConfig& config, const NameIds& ids,
                  std::vector<AddedToken>& added) {
  for (const auto* special : {&config.pad, &config.begin, &config.end, &config.unknown,
                              &config.mask, &config.separator, &config.classify}) {
    if (!*special) continue;
    const bool is_known = std::any_of(added.begin(), added.end(), [&](const AddedToken& token) {
      return token.content == (*special)->name;
    });
    const auto id = find_name(ids, (*special)->name);
    if (!is_known && id) added.push_back({.id = *id, .content = (*special)->name});
  }
}

// The name that a class has where no file gives another.
void fallback(std::optional<NamedSpecial>& special, const char* token, const char* where) {
  if (!special) special = NamedSpecial{.name = token, .where = where};
}

void name_bart_tokens(TokenizerConfig& config) {
  const char* const bart = "the class BartTokenizer";
  fallback(config.begin, "<s>", bart);
  fallback(config.end, "</s>", bart);
  fallback(config.unknown, "<unk>", bart);
  fallback(config.pad, "<pad>", bart);
  fallback(config.mask, "<mask>", bart);
}

// T5's gaps in a text, <extra_id_0> and so on: behind the pieces, the last of them first. Files
// list them, or say how many there are.
std::vector<AddedToken> behind_pieces(const SentencePieceModel& model,
                                      const TokenizerConfig& config) {
  if (!config.added.empty()) return config.added;
  constexpr std::int64_t usual = 100, most = 65536;
  const std::int64_t count = config.json && config.json->has("extra_ids")
                                 ? config.json->at("extra_ids").integer(0, most)
                                 : usual;
  std::vector<AddedToken> added;
  added.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    added.push_back({.id = static_cast<std::int32_t>(std::ssize(model.pieces) + i),
                     .content = "<extra_id_" + std::to_string(count - 1 - i) + ">",
                     .lstrip = true,
                     .rstrip = true});
  return added;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

}  // namespace

std::string sentencepiece_file_json(const std::string& path, TokenizerConfig& config) {
  const std::string name = class_of(config);
  const bool is_llama = name == "LlamaTokenizer" || name == "CodeLlamaTokenizer" ||
                        name == "GemmaTokenizer" || name == "InternLM2Tokenizer" ||
                        name == "BaichuanTokenizer" || name == "YiTokenizer";
  if (!is_llama && name != "T5Tokenizer")
    refuse_class(config, "LlamaTokenizer, GemmaTokenizer or T5Tokenizer", "a SentencePiece model");
  const SentencePieceModel model = read_sentencepiece(io::read_file(path, kMaxFileBytes), path);
  if (is_llama && !config.added.empty())
    io::fail_io(config.directory, "tokens that are added to " + path,
                "none, or a tokenizer.json beside it",
                std::to_string(config.added.size()) + " (added_tokens)");
  if (is_llama) {
    if (!config.add_begin) config.add_begin = true;
    if (!config.add_end) config.add_end = false;
  } else {
    config.add_begin = false;
    config.add_end = true;
    const auto has = [&](std::string_view piece) {
      return std::ranges::any_of(model.pieces, [&](const auto& p) { return p.name == piece; });
    };
    const char* const t5 = "the class T5Tokenizer";
    if (has("</s>")) fallback(config.end, "</s>", t5);
    if (has("<unk>")) fallback(config.unknown, "<unk>", t5);
    if (has("<pad>")) fallback(config.pad, "<pad>", t5);
  }
  return sentencepiece_json(model, path, is_llama ? config.added : behind_pieces(model, config));
}

std::string vocabulary_and_merges_json(const std::string& vocabulary, const std::string& merges,
                                       TokenizerConfig& config) {
  const std::string name = class_of(config);
  const bool is_qwen = name == "Qwen2Tokenizer", is_bart = name == "BartTokenizer";
  if (name != "GPT2Tokenizer" && !is_qwen && !is_bart)
    refuse_class(config, "GPT2Tokenizer, Qwen2Tokenizer or BartTokenizer",
                 "vocab.json and merges.txt");
  if (is_bart) name_bart_tokens(config);
  const Json json = Json::read(vocabulary);
  NameIds ids;
  std::vector<std::pair<std::string, std::int32_t>> names;
  for (const std::string& token : json.keys()) {
    const auto id = static_cast<std::int32_t>(json.at(token).integer(0, kMaxVocabulary - 1));
    names.emplace_back(token, id);
    ids.emplace(token, id);
  }
  std::vector<Document> list;
  for (const std::string& line : lines_of(io::read_file(merges, kMaxFileBytes))) {
    if (line.empty() || line.starts_with("#version")) continue;
    const std::size_t space = line.find(' ');
    if (space == std::string::npos)
      io::fail_io(merges, "line " + io::shown(line), "two tokens with a space between them",
                  "no space");
    list.push_back(Document::array({line.substr(0, space), line.substr(space + 1)}));
  }
  DocumentParts parts;
  add_configured(config, parts.added);
  add_specials(config, ids, parts.added);
  const bool prefix_space = config.json && config.json->boolean_or("add_prefix_space", false);
  if (is_qwen) {
    parts.normalizer = {{"type", "NFC"}};
    parts.pre_tokenizer = sequence_of(
        "pretokenizers", {split_step(kQwen2Pattern), byte_level_step(prefix_space, false)});
  } else {
    parts.pre_tokenizer = byte_level_step(prefix_space, true);
  }
  parts.decoder = byte_level_step(prefix_space, true);
  parts.model = {{"type", "BPE"}, {"vocab", vocabulary_object(names)}, {"merges", std::move(list)}};
  if (!config.add_begin) config.add_begin = is_bart;
  if (!config.add_end && is_bart) config.add_end = true;
  return document_text(parts, config.directory);
}

std::string word_piece_file_json(const std::string& path, TokenizerConfig& config) {
  const std::string name = class_of(config);
  if (name != "BertTokenizer" && name != "DistilBertTokenizer" && name != "ElectraTokenizer")
    refuse_class(config, "BertTokenizer, DistilBertTokenizer or ElectraTokenizer", "vocab.txt");
  NameIds ids;
  std::vector<std::pair<std::string, std::int32_t>> names;
  for (const std::string& line : lines_of(io::read_file(path, kMaxFileBytes))) {
    const auto id = static_cast<std::int32_t>(names.size());
    names.emplace_back(line, id);
    if (!ids.emplace(line, id).second)
      io::fail_io(path, "the token " + io::shown(line), "once", "twice");
  }
  const char* const bert = "the class BertTokenizer";
  fallback(config.unknown, "[UNK]", bert);
  fallback(config.pad, "[PAD]", bert);
  fallback(config.separator, "[SEP]", bert);
  fallback(config.classify, "[CLS]", bert);
  fallback(config.mask, "[MASK]", bert);
  const auto frame_token = [&](const NamedSpecial& special) {
    const auto id = find_name(ids, special.name);
    if (!id)
      io::fail_io(path, "the token " + io::shown(special.name) + " (" + special.where + ")",
                  "a line of its own", "none");
    return FrameToken{special.name, *id};
  };
  const auto option = [&](const char* key, bool usual) {
    return config.json ? config.json->boolean_or(key, usual) : usual;
  };
  const bool lower = option("do_lower_case", true);
  DocumentParts parts;
  add_configured(config, parts.added);
  add_specials(config, ids, parts.added);
  parts.normalizer = {{"type", "BertNormalizer"},
                      {"clean_text", true},
                      {"handle_chinese_chars", option("tokenize_chinese_chars", true)},
                      {"strip_accents", option("strip_accents", lower)},
                      {"lowercase", lower}};
  parts.pre_tokenizer = {{"type", "BertPreTokenizer"}};
  parts.post_processor = bert_frame(frame_token(*config.classify), frame_token(*config.separator));
  parts.decoder = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  parts.model = {{"type", "WordPiece"},
                 {"unk_token", config.unknown->name},
                 {"continuing_subword_prefix", "##"},
                 {"max_input_chars_per_word", 100},
                 {"vocab", vocabulary_object(names)}};
  return document_text(parts, path);
}

}  // namespace heddle::text
