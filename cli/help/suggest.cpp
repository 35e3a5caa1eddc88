#include "help/suggest.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "help/parser_words.h"
#include "io/errors.h"
#include "recipe/synonyms.h"

namespace heddle::cli {

namespace {

struct Habit {
  std::string_view given, option;
};

// Options that other programs call otherwise.
constexpr std::array kHabits = {
    Habit{"--max-tokens", "--tokens"},
    Habit{"--max-new-tokens", "--tokens"},
    Habit{"--max-length", "--tokens"},
    Habit{"--n-predict", "--tokens"},
    Habit{"--length", "--tokens"},
    Habit{"-n", "--tokens"},
    Habit{"--temp", "--temperature"},
    Habit{"--num-beams", "--beam"},
    Habit{"--beam-size", "--beam"},
    Habit{"--num-samples", "--samples"},
    Habit{"--num-return-sequences", "--samples"},
    Habit{"--repeat-penalty", "--repetition-penalty"},
    Habit{"--text", "--prompt"},
    Habit{"--input", "--prompt"},
    Habit{"-p", "--prompt"},
    Habit{"-o", "--out"},
    Habit{"--output", "--out"},
    Habit{"--output-dir", "--out"},
    Habit{"--out-dir", "--out"},
    Habit{"--output_dir", "--out"},
    Habit{"--dtype", "--precision"},
    Habit{"--continue", "--resume"},
    Habit{"--lang-code", "--lang"},
    Habit{"--language", "--lang"},
    Habit{"--num-seeds", "--seeds"},
    Habit{"--sweep", "--vary"},
    Habit{"--grid", "--vary"},
    Habit{"--override", "--set"},
};

// Things that are no option of any command.
constexpr std::array kElsewhere = {
    Habit{"--threads",
          "the number of threads is set before the command: HEDDLE_THREADS=4 heddle ..."},
    Habit{"--num-threads",
          "the number of threads is set before the command: HEDDLE_THREADS=4 heddle ..."},
    Habit{"--device", "this command computes on the CPU; heddle train, generate and others choose"},
    Habit{"--gpu", "the device is chosen by --device cuda, by those commands that have it"},
    Habit{"--cuda", "the device is chosen by --device cuda, by those commands that have it"},
    Habit{"--model", "the model is given without an option: heddle generate runs/mine"},
    Habit{"-m", "the model is given without an option: heddle generate runs/mine"},
    Habit{"--config", "the recipe is given without an option: heddle train my.toml"},
    Habit{"-c", "the recipe is given without an option: heddle train my.toml"},
    Habit{"-v", "heddle version says which version this is"},
    Habit{"--verbose", "there is nothing more to say; --json gives every number"},
};

template <class Table>
std::string_view find(const Table& table, std::string_view given) {
  const auto found = std::ranges::find(table, given, &Habit::given);
  return found == table.end() ? std::string_view() : found->option;
}

bool has(const std::vector<std::string>& known, std::string_view option) {
  return std::ranges::find(known, option) != known.end();
}

// "--batch-size" where the command takes a recipe: the key that decides it.
std::string as_key(const std::string& option) {
  std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  std::ranges::replace(name, '-', '_');
  return recipe::recipe_key(name);
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  return names;
}

std::string whole_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name()
                                     : whole_name(*app.get_parent()) + " " + app.get_name();
}

std::string unknown_command(const CLI::App& app, const std::string& given) {
  const std::vector<std::string> names = command_names(app);
  if (const std::string near = io::nearest_name(given, names); !near.empty())
    return "there is no command " + given + "; did you mean " + near + "?";
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return "there is no command " + whole_name(app) + " " + given + "; there are: " + list;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    if (option->nonpositional()) names.push_back("--" + option->get_lnames().front());
  return names;
}

// The first of what the parser had no place for; options before others, which may be their values.
std::string first_extra(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining(true);
  for (const std::string& extra : extras)
    if (extra.starts_with("-") && extra != "-" && extra != "--") return extra;
  return extras.empty() ? "" : extras.front();
}

}  // namespace

std::string usage_complaint(const CLI::App& app, const std::vector<std::string>& arguments,
                            const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::size_t depth = 0;
  for (; depth < arguments.size() && !command->get_subcommands(nullptr).empty(); ++depth) {
    const auto within = command->get_subcommands(nullptr);
    const auto found = std::ranges::find(within, arguments[depth], &CLI::App::get_name);
    if (found == within.end()) break;
    command = *found;
  }
  const bool wants_command = command == &app || command->get_require_subcommand_min() > 0;
  if (wants_command && depth < arguments.size() && !arguments[depth].starts_with("-"))
    return unknown_command(*command, arguments[depth]);
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return in_words(*command, error);
  const std::string extra = first_extra(app);
  if (!extra.starts_with("-"))
    return "what is " + extra + " for? " + whole_name(*command) + " --help shows what it takes";
  const std::string meant = suggest_option(extra, option_names(*command));
  return whole_name(*command) + " has no option " + extra.substr(0, extra.find('=')) + "; " +
         (meant.empty() ? whole_name(*command) + " --help lists them" : meant);
}

std::string suggest_option(const std::string& given, const std::vector<std::string>& known) {
  const std::string option = given.substr(0, given.find('='));
  if (const auto habit = find(kHabits, option); !habit.empty() && has(known, habit))
    return "did you mean " + std::string(habit) + "?";
  if (const auto elsewhere = find(kElsewhere, option); !elsewhere.empty())
    return std::string(elsewhere);
  if (const std::string near = io::nearest_name(option, known); !near.empty())
    return "did you mean " + near + "?";
  const std::string key = has(known, "--set") ? as_key(option) : "";
  return key.empty() ? "" : "it is a key of the recipe: --set " + key + "=VALUE";
}

}  // namespace heddle::cli
