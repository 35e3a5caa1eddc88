// heddle translate: lines of text into lines of another.
#include <fmt/core.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/stopwatch.h"
#include "command.h"
#include "heddle/translator.h"
#include "language/language.h"
#include "print_json.h"
#include "progress.h"
#include "with_model.h"

namespace heddle::cli::translate_command {

namespace {

using nlohmann::json;

struct Arguments {
  ModelArguments model;
  TranslationOptions options;
};

json to_json(const Translation& t) {
  json j = {{"text", t.text}, {"source_tokens", t.source_tokens}};
  if (t.best.empty()) return j;  // an empty line
  j["score"] = t.best[0].score;
  j["log_probability"] = t.best[0].log_probability;
  j["finished"] = t.best[0].finished;
  for (std::size_t i = 0; t.best.size() > 1 && i < t.best.size(); ++i)
    j["best"].push_back({{"text", t.best[i].text},
                         {"score", t.best[i].score},
                         {"log_probability", t.best[i].log_probability},
                         {"finished", t.best[i].finished}});
  return j;
}

void print(const std::vector<Translation>& all, bool scores) {
  for (const Translation& t : all) {
    if (!scores) std::cout << one_line(t.text) << '\n';
    for (std::size_t i = 0; scores && i < t.best.size(); ++i)
      std::cout << fmt::format("{:.4f}\t{}\n", t.best[i].score, one_line(t.best[i].text));
    if (scores) std::cout << '\n';  // between the texts of two lines
  }
}

void run(Arguments& a) {
  const Translator model(open_model(a.model, model::Task::translate));
  const io::TextLines lines = read_standard_lines();
  ProgressLine progress;
  a.options.progress = [&](std::size_t done, std::size_t count) {
    progress.show(tr("translated {} of {} lines", done, count));
  };
  const Stopwatch stopwatch;
  const auto all = model.translate(all_of(lines), a.options);
  const double seconds = stopwatch.seconds();
  progress.finish();
  if (!a.model.as_json) return print(all, a.options.beam.best > 1);
  json document = {{"translations", json::array()}, {"seconds", seconds}};
  for (const Translation& t : all) document["translations"].push_back(to_json(t));
  cli::print_json(document);
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("translate", "lines of standard input into lines of another language");
  command->footer(
      "Example: echo 'A man is reading.' | heddle translate runs/transformer-translate");
  auto a = std::make_shared<Arguments>();
  declare_model(*command, a->model);
  declare_beam(*command, a->options.beam);
  declare_best(*command, a->options.beam);
  command->add_option("--batch", a->options.batch, "lines at a time, at most")
      ->capture_default_str();
  command
      ->add_option("--longest-ratio", a->options.longest_ratio,
                   "a translation has at most so many tokens for each of its source, ...")
      ->capture_default_str();
  command->add_option("--longest-extra", a->options.longest_extra, "... and so many more")
      ->capture_default_str();
  command->callback([a] { run(*a); });
}

}  // namespace heddle::cli::translate_command
