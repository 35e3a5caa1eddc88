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
  if (has("tokenizer.json")) {
    std::unique_ptr<Tokenizer> tokenizer = Tokenizer::load(file("tokenizer.json"));
    return with_config(std::move(tokenizer), std::move(config));
  }
  io::fail_io(directory.string(), "no tokenizer", "tokenizer.json", "none of them");
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
  return load_gguf_tokenizer(file.metadata());
}

}  // namespace heddle::text
