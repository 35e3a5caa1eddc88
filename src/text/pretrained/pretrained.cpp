#include "text/pretrained/pretrained.h"

#include <algorithm>
#include <utility>

#include "io/errors.h"
#include "io/files/file.h"
#include "io/gguf/gguf.h"
#include "text/pretrained/sources.h"
#include "text/pretrained/tokenizer_config.h"

namespace heddle::text {

namespace {

PretrainedTokenizer load_directory(const std::filesystem::path& directory) {
  TokenizerConfig config = read_tokenizer_config(directory);
  const auto file = [&](const char* name) { return (directory / name).string(); };
  const auto has = [&](const char* name) { return io::file_exists(file(name)); };
  if (has("tokenizer.json"))
    return with_config(Tokenizer::load(file("tokenizer.json")), std::move(config));
  std::string json, source;
  if (has("source.spm")) return load_marian(directory, std::move(config));
  for (const char* name : {"tokenizer.model", "spiece.model"}) {
    if (!json.empty() || !has(name)) continue;
    source = file(name);
    json = sentencepiece_file_json(source, config);
  }
  if (json.empty() && has("vocab.json") && has("merges.txt")) {
    source = file("vocab.json");
    json = vocabulary_and_merges_json(source, file("merges.txt"), config);
  }
  if (json.empty() && has("vocab.txt")) {
    source = file("vocab.txt");
    json = word_piece_file_json(source, config);
  }
  if (json.empty())
    io::fail_io(directory.string(), "no tokenizer",
                "tokenizer.json, tokenizer.model, spiece.model, source.spm, vocab.json with "
                "merges.txt, or vocab.txt",
                "none of them");
  return with_config(Tokenizer::from_json(json, source), std::move(config));
}

}  // namespace

const std::string* PretrainedTokenizer::chat_template() const {
  const auto found = std::find_if(templates.begin(), templates.end(),
                                  [](const NamedTemplate& t) { return t.name == "default"; });
  return found == templates.end() ? nullptr : &found->text;
}

PretrainedTokenizer load_pretrained_tokenizer(const std::filesystem::path& path) {
  if (io::directory_exists(path.string())) return load_directory(path);
  return load_pretrained_tokenizer(io::GgufFile(path.string()));
}

PretrainedTokenizer load_pretrained_tokenizer(const io::GgufFile& file) {
  return load_gguf_tokenizer(file.metadata(), file.path());
}

}  // namespace heddle::text
