// heddle help: a command's help, or a chapter of the documentation that the program carries.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "heddle/error.h"
#include "help/chapter.h"
#include "help/help.h"
#include "help/help_topics.h"
#include "io/errors.h"
#include "language/language.h"
#include "language/layout.h"

namespace heddle::cli::help_command {

namespace {

void list(const CLI::App& app) {
  // Its help() would be that of the command that was given, which is this one.
  std::cout << app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal)
            << "\n"
            << tr("Topics of heddle help TOPIC:") << "\n";
  for (const HelpTopic& topic : help_topics()) {
    std::cout << two_columns(std::string(topic.name), tr(topic.title));
  }
}

const HelpTopic* topic_named(const std::string& name) {
  const auto topics = help_topics();
  const auto found = std::ranges::find(topics, name, &HelpTopic::name);
  return found == topics.end() ? nullptr : &*found;
}

// A word may name both, as "data" does: then the command comes first, and its chapter behind it.
void show(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::vector<std::string> known;
  std::string path;  // "heddle bench", for the usage of "train"
  for (const std::string& word : words) {
    known.clear();
    const auto within = command->get_subcommands(nullptr);
    for (const CLI::App* one : within) known.push_back(one->get_name());
    const auto found = std::ranges::find(within, word, &CLI::App::get_name);
    if (found == within.end()) {
      command = nullptr;
      break;
    }
    path += (path.empty() ? "" : " ") + command->get_name();
    command = *found;
  }
  const HelpTopic* topic = words.size() == 1 ? topic_named(words[0]) : nullptr;
  if (command != nullptr) std::cout << command->help(path) << (topic != nullptr ? "\n" : "");
  if (topic != nullptr) {
    const bool chinese = language() == Language::chinese;
    std::cout << chapter_text(chinese ? topic->chinese : topic->english, help_columns());
  }
  if (command != nullptr || topic != nullptr) return;
  if (words.size() == 1)
    for (const HelpTopic& one : help_topics()) known.emplace_back(one.name);
  const std::string near = io::nearest_name(words.back(), known);
  fail(ErrorCode::invalid_argument, "help",
       "there is no command or topic " + io::shown(words.back()),
       near.empty() ? "one that heddle help lists" : near + ", or another that heddle help lists");
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("help", "a command or a topic explained: heddle help train");
  command->footer("Examples: heddle help train\n          heddle help recipes | less");
  auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("TOPIC", *words, "a command, or a topic; absent: the list of both");
  command->callback([&app, words] { words->empty() ? list(app) : show(app, *words); });
}

}  // namespace heddle::cli::help_command
