// heddle tokenize: lines of text to arrays of ids, and back.
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "data/codec/codec.h"
#include "heddle/error.h"
#include "io/files/file.h"
#include "io/files/memory_limit.h"
#include "io/json/json.h"
#include "text/pretrained/pretrained.h"
#include "text/tokenizer.h"

namespace heddle::cli::tokenize_command {

namespace {

struct Options {
  std::string model;
  bool decode = false, whole = false, plain = false, hide_specials = false;
};

std::string to_json(const std::vector<std::int32_t>& ids) {
  std::string line = "[";
  for (const std::int32_t id : ids) {
    if (line.size() > 1) line += ',';
    line += std::to_string(id);
  }
  return line + "]";
}

std::string decoded(const text::Tokenizer& tokenizer, const Options& options,
                    const std::string& line, const std::string& where) {
  const io::Json json = io::Json::parse(line, where);
  std::vector<std::int32_t> ids;
  for (const std::int64_t id : json.integers()) {
    if (id < 0 || id >= tokenizer.vocabulary())
      fail(ErrorCode::out_of_range, where, "no such token",
           "ids from 0 to " + std::to_string(tokenizer.vocabulary() - 1), std::to_string(id));
    ids.push_back(static_cast<std::int32_t>(id));
  }
  return tokenizer.decode(ids,
                          options.hide_specials ? text::ShowSpecials::no : text::ShowSpecials::yes);
}

std::string encoded(const text::Tokenizer& tokenizer, const Options& options,
                    const std::string& line, const std::string& where) {
  try {
    return to_json(tokenizer.encode(
        line, options.plain ? text::SpecialsInText::plain : text::SpecialsInText::recognised));
  } catch (const Error& e) {
    throw Error(e.code(), where, e.problem(), e.expected(), e.got());
  }
}

std::string answer(const text::Tokenizer& tokenizer, const Options& options,
                   const std::string& question, const std::string& where) {
  return options.decode ? decoded(tokenizer, options, question, where)
                        : encoded(tokenizer, options, question, where);
}

// Without its end. A line may be as long as a file: a device has none that ends.
bool next_line(std::string& line) {
  constexpr int kEnd = std::char_traits<char>::eof();
  line.clear();
  for (int c = std::cin.rdbuf()->sbumpc(); c != '\n'; c = std::cin.rdbuf()->sbumpc()) {
    if (c == kEnd) return !line.empty();
    if (line.size() == io::file_limit())
      fail(ErrorCode::io, "standard input", "has a line that is too long",
           "at most " + io::file_limit_text(), "more");
    line += static_cast<char>(c);
  }
  return true;
}

// A run knows whether its tokenizer is as it was written. Whatever is no run and no tokenizer.json
// came with a pretrained model.
std::shared_ptr<const text::Tokenizer> load_tokenizer(const std::string& model) {
  if (io::directory_exists(model) || model.ends_with(".gguf")) {
    if (!data::Codec::exists(model)) return text::load_pretrained_tokenizer(model).tokenizer;
  } else {
    return text::Tokenizer::load(model);
  }
  const std::shared_ptr<const data::Codec> codec = data::Codec::load(model);
  return {codec, &codec->source()};
}

void run(const Options& options) {
  const std::shared_ptr<const text::Tokenizer> tokenizer = load_tokenizer(options.model);
  std::ios::sync_with_stdio(false);
  std::cin.tie(nullptr);
  const std::string where = "standard input";
  if (options.whole) {
    const std::string all = io::read_standard_input();
    // Text ends as it ended; JSON ends its line.
    std::cout << answer(*tokenizer, options, all, where) << (options.decode ? "" : "\n");
    return;
  }
  std::string line;
  for (std::int64_t number = 1; next_line(line); ++number) {
    std::cout << answer(*tokenizer, options, line, where + ":" + std::to_string(number)) << '\n';
    // Answers must not wait for questions, but a write for each line of a large file is slow.
    if (std::cin.rdbuf()->in_avail() <= 0) std::cout.flush();
  }
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "tokenize", "lines of standard input to one JSON array of token ids a line");
  command->footer("Example: echo 'To be or not to be' | heddle tokenize tokenizer.json");
  auto options = std::make_shared<Options>();
  command
      ->add_option("MODEL", options->model,
                   "a tokenizer.json, the directory of a model, or a .gguf file")
      ->required();
  command->add_flag("--decode", options->decode, "the other way round: arrays of ids to text");
  command->add_flag("--whole", options->whole,
                    "standard input is one text, newlines and all, and not one a line");
  command->add_flag("--plain", options->plain, "read names of special tokens as plain text")
      ->excludes("--decode");
  command
      ->add_flag("--hide-specials", options->hide_specials,
                 "with --decode: leave special tokens out")
      ->needs("--decode");
  command->callback([options] { run(*options); });
}

}  // namespace heddle::cli::tokenize_command
