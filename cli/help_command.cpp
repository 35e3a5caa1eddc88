// heddle help: a command's help, or a chapter of the documentation that the program carries.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "heddle/error.h"
#include "help.h"
#include "help_topics.h"
#include "io/errors.h"
#include "language/language.h"
#include "language/layout.h"

namespace heddle::cli::help_command {

namespace {

void list(const CLI::App& app) {
  std::cout << app.help() << "\n" << tr("Topics of heddle help TOPIC:") << "\n";
  for (const HelpTopic& topic : help_topics()) {
    std::cout << padded("  " + std::string(topic.name), 26) << tr(topic.title) << "\n";
  }
}

void show(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::vector<std::string> known;
  for (const std::string& word : words) {
    known.clear();
    const auto within = command->get_subcommands(nullptr);
    for (const CLI::App* one : within) known.push_back(one->get_name());
    const auto found = std::ranges::find(within, word, &CLI::App::get_name);
    if (found == within.end()) {
      command = nullptr;
      break;
    }
    command = *found;
  }
  if (command != nullptr) {
    std::cout << command->help();
    return;
  }
  if (words.size() == 1)
    for (const HelpTopic& topic : help_topics()) {
      if (topic.name == words[0]) {
        if (language() != Language::english)
          std::cout << tr("(This chapter is in English for now.)") << "\n\n";
        std::cout << topic.text;
        return;
      }
      known.emplace_back(topic.name);
    }
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
