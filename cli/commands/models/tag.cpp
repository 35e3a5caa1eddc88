// heddle tag: a tag for each word.
#include <fmt/core.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "heddle/tagger.h"
#include "print_json.h"
#include "with_model.h"

namespace heddle::cli::tag_command {

namespace {

using nlohmann::json;

struct Arguments {
  ModelArguments model;
  std::string format = "lines";
  PredictionOptions options;
};

// lines: a sentence a line. words: a word a line, in the first column, and an empty line between
// sentences.
std::vector<Words> sentences_of(const io::TextLines& lines, bool one_word_a_line) {
  std::vector<Words> sentences;
  bool between = true;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    Words words = words_of(lines[i]);
    if (!one_word_a_line) {
      sentences.push_back(std::move(words));
      continue;
    }
    if (!words.empty() && between) sentences.emplace_back();
    between = words.empty();
    if (!between) sentences.back().push_back(words.front());
  }
  return sentences;
}

void run(Arguments& a) {
  const Tagger model(open_model(a.model, model::Task::tag));
  const io::TextLines lines = read_standard_lines();
  const std::vector<Words> sentences = sentences_of(lines, a.format == "words");
  const auto tags = model.tag(sentences, a.options);
  json list = json::array();
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    json sentence = json::array();
    for (std::size_t j = 0; j < sentences[i].size(); ++j) {
      const Prediction& p = tags[i][j];
      if (a.model.as_json)
        sentence.push_back(
            {{"word", sentences[i][j]}, {"tag", p.label}, {"probability", p.probability}});
      else
        std::cout << sentences[i][j] << '\t' << p.label << '\n';
    }
    if (a.model.as_json)
      list.push_back(std::move(sentence));
    else
      std::cout << '\n';
  }
  if (a.model.as_json) cli::print_json(json{{"sentences", std::move(list)}});
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "tag", "word<TAB>tag for the words of standard input, an empty line behind each sentence");
  command->footer("Example: echo 'The cat sat .' | heddle tag runs/pos-tagger");
  auto a = std::make_shared<Arguments>();
  declare_model(*command, a->model);
  command
      ->add_option("--input", a->format,
                   "lines: a sentence a line, words separated by spaces; words: a word a line (in "
                   "the first column), an empty line between sentences")
      ->check(CLI::IsMember({"lines", "words"}))
      ->capture_default_str();
  command->add_option("--batch", a->options.batch, "sentences at a time, at most")
      ->capture_default_str();
  command->callback([a] { run(*a); });
}

}  // namespace heddle::cli::tag_command
