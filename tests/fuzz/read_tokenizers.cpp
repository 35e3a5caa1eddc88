#include "fuzz/read_tokenizers.h"

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "heddle/error.h"
#include "io/test_support.h"
#include "text/pretrained/pretrained.h"
#include "text/pretrained/sentencepiece.h"
#include "text/tokenizer.h"

namespace heddle::fuzz {
namespace {

// Text that reaches most parts of a tokenizer: words, marks, special names, broken UTF-8.
constexpr std::string_view kText =
    "The unable\u00E9 a\u0301b  12345 it's\n\n<mask> <tool> \u4F60\u597D <sep>!</s>\xFF\xE4\xBD";

void use(const text::Tokenizer& tokenizer) {
  try {
    const std::vector<std::int32_t> ids = tokenizer.encode(kText);
    tokenizer.encode(kText, text::SpecialsInText::plain);
    tokenizer.decode(ids, text::ShowSpecials::no);
    tokenizer.framed(ids, ids);
  } catch (const Error& e) {
    // A text may have no tokens; that is no fault of the file.
    if (e.code() == ErrorCode::io) throw std::logic_error(e.what());
  }
}

// The files of a directory, with this one in the place of the sound one.
void read_directory(std::string_view name, const std::string& bytes) {
  const io::TempDir folder;
  folder.file("vocab.json", R"({"a": 0, "b": 1, "ab": 2, "abb": 3})");
  folder.file("merges.txt", "a b\nab b\n");
  folder.file("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})");
  folder.file(std::string(name), bytes);
  use(*text::load_pretrained_tokenizer(folder.path()).tokenizer);
}

}  // namespace

void read_tokenizer(std::string_view name, const std::string& bytes) {
  if (name.ends_with(".model")) {
    const text::SentencePieceModel model = text::read_sentencepiece(bytes, "fuzz");
    use(*text::Tokenizer::from_json(text::sentencepiece_json(model, "fuzz"), "fuzz"));
  } else if (name == "vocab.txt") {
    const io::TempDir folder;
    folder.file("vocab.txt", bytes);
    folder.file("config.json", R"({"model_type": "bert"})");
    use(*text::load_pretrained_tokenizer(folder.path()).tokenizer);
  } else if (name == "merges.txt" || name == "tokenizer_config.json") {
    read_directory(name, bytes);
  } else {
    use(*text::Tokenizer::from_json(bytes, "fuzz"));
  }
}

}  // namespace heddle::fuzz
