// heddle completion: what a shell asks for.
#include "completion.h"

#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <vector>

#include "command.h"
#include "find_recipe.h"
#include "help/help.h"
#include "language/language.h"
#include "recipe/shipped/shipped.h"

namespace heddle::cli {

namespace {

using Visit = std::function<void(const CLI::App&, const std::string& path)>;

// Every command, "train" and "bench roofline", parents first.
void for_each_command(const CLI::App& app, const std::string& path, const Visit& visit) {
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    const std::string whole = path.empty() ? command->get_name() : path + " " + command->get_name();
    visit(*command, whole);
    for_each_command(*command, whole, visit);
  }
}

std::vector<std::string> long_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  names.emplace_back("--lang");
  return names;
}

bool takes_recipe(const CLI::App& command) {
  return std::ranges::any_of(command.get_options(),
                             [](const CLI::Option* o) { return o->get_name(true) == "RECIPE"; });
}

// "fp32 bf16" where only these may be said.
std::string choices(const CLI::Option& option) {
  std::string name = value_words(option.get_type_name()).name;
  if (name.find('|') == std::string::npos) return {};
  std::ranges::replace(name, '|', ' ');
  return name;
}

std::string words(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& word : all) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string subcommands(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* one : command.get_subcommands(nullptr)) names.push_back(one->get_name());
  return words(names);
}

// In single quotes, for any shell.
std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The first sentence is enough beside a list.
std::string short_text(const std::string& description) {
  std::string text =
      description.substr(0, std::min(description.find_first_of(";\n"), description.find("；")));
  std::erase_if(text, [](char c) { return c == '[' || c == ']' || c == ':'; });
  return text;
}

// Text of a manual page: a backslash begins a request, and so do dots at the start of a line.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool line_start = out.empty() || out.back() == '\n';
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    out += c == '\\' ? std::string("\\e") : c == '-' ? std::string("\\-") : std::string(1, c);
  }
  return out;
}

std::string manual_options(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    const bool positional = option->get_positional();
    std::string name = option->get_name(positional, !positional);
    if (!positional && option->get_type_size() != 0)
      name += " " + value_words(option->get_type_name()).name;
    text += ".TP\n.B " + roff(name) + "\n" + roff(tr(option->get_description())) + "\n";
  }
  return text;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string cases, values;
  for_each_command(app, "", [&](const CLI::App& command, const std::string& path) {
    std::string plain = subcommands(command);
    if (takes_recipe(command))
      plain += (plain.empty() ? "" : " ") + words(recipe::shipped_recipes());
    cases += "    " + in_quotes(path) + ") options=" + in_quotes(words(long_options(command))) +
             " plain=" + in_quotes(plain) + " ;;\n";
    for (const CLI::Option* option : command.get_options())
      if (const std::string list = choices(*option); !list.empty() && option->nonpositional())
        values += "    " + in_quotes(path + " --" + option->get_lnames().front()) +
                  ") plain=" + in_quotes(list) + " only=1 ;;\n";
  });
  return "# heddle completion bash > /etc/bash_completion.d/heddle\n"
         "_heddle() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
         "  local command= options= plain= only= word at=1\n"
         "  while [ $at -lt $COMP_CWORD ]; do\n"
         "    word=${COMP_WORDS[at]}\n"
         "    case \"$word\" in --lang) at=$((at + 2)); continue ;; -*) break ;; esac\n"
         "    case \"${command:+$command }$word\" in\n" +
         [&] {
           std::string known;
           for_each_command(app, "", [&](const CLI::App&, const std::string& path) {
             known += "      " + in_quotes(path) + ") command=" + in_quotes(path) + " ;;\n";
           });
           return known;
         }() +
         "      *) break ;;\n"
         "    esac\n"
         "    at=$((at + 1))\n"
         "  done\n"
         "  case \"$command\" in\n"
         "    '') plain=" +
         in_quotes(subcommands(app)) + " options='--help --version --lang' only=1 ;;\n" + cases +
         "  esac\n"
         "  case \"$command $before\" in\n" +
         values +
         "    *' --lang') plain='en zh' only=1 ;;\n"
         "  esac\n"
         "  case \"$current\" in\n"
         "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\")) ;;\n"
         "    *) COMPREPLY=($(compgen -W \"$plain\" -- \"$current\"))\n"
         "       [ -n \"$only\" ] || COMPREPLY+=($(compgen -f -- \"$current\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _heddle heddle\n";
}

std::string zsh_completion(const CLI::App& app) {
  return "#compdef heddle\n"
         "# heddle completion zsh > \"${fpath[1]}/_heddle\"\n"
         "autoload -U +X bashcompinit && bashcompinit\n" +
         bash_completion(app);
}

std::string fish_completion(const CLI::App& app) {
  std::string text =
      "# heddle completion fish > ~/.config/fish/completions/heddle.fish\n"
      "complete -c heddle -l lang -r -f -a 'en zh' -d " +
      in_quotes(short_text(tr(app.get_option("--lang")->get_description()))) + "\n";
  for_each_command(app, "", [&](const CLI::App& command, const std::string& path) {
    const std::string parent =
        path.find(' ') == std::string::npos
            ? "__fish_use_subcommand"
            : "__fish_seen_subcommand_from " + path.substr(0, path.find(' '));
    text += "complete -c heddle -f -n " + in_quotes(parent) + " -a " + command.get_name() + " -d " +
            in_quotes(short_text(tr(command.get_description()))) + "\n";
    const std::string seen = in_quotes("__fish_seen_subcommand_from " + command.get_name());
    for (const CLI::Option* option : command.get_options()) {
      if (!option->nonpositional()) continue;
      text += "complete -c heddle -n " + seen + " -l " + option->get_lnames().front();
      if (option->get_type_size() != 0) text += " -r";
      if (const std::string list = choices(*option); !list.empty())
        text += " -f -a " + in_quotes(list);
      text += " -d " + in_quotes(short_text(tr(option->get_description()))) + "\n";
    }
    if (takes_recipe(command))
      text += "complete -c heddle -n " + seen + " -a " +
              in_quotes(words(recipe::shipped_recipes())) + "\n";
  });
  return text;
}

namespace {

std::string manual_section(const std::string& title, const std::string& text) {
  return ".SH " + title + "\n" + text + "\n";
}

std::string manual_variable(const char* name, const std::string& text) {
  return std::string(".TP\n.B ") + name + "\n" + roff(text) + "\n";
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string text =
      ".TH HEDDLE 1 \"\" \"heddle " HEDDLE_VERSION "\" \"" + tr("User Commands") + "\"\n";
  text += manual_section(tr("NAME"), "heddle \\- " + roff(tr("a Transformer engine")));
  text += manual_section(tr("SYNOPSIS"), ".B heddle\n" + tr("COMMAND [OPTION]..."));
  text += manual_section(tr("DESCRIPTION"), roff(tr(app.get_description())));
  text += ".SH " + tr("OPTIONS") + "\n" + manual_options(app);
  text += manual_section(tr("EXIT STATUS"),
                         roff(tr("0 done; 1 it ran and failed; 2 the input or usage is at fault; "
                                 "130 interrupted, what was saved is whole.")));
  text +=
      ".SH " + tr("ENVIRONMENT") + "\n" +
      manual_variable("HEDDLE_THREADS", tr("threads to compute with")) +
      manual_variable("HEDDLE_LANG", tr("the language: en or zh")) +
      manual_variable("HEDDLE_ISA", tr("a lower instruction set than the best one")) +
      manual_variable("HEDDLE_CUBLASLT", tr("cuBLASLt for products on GPUs: off leaves it alone")) +
      manual_variable("HEDDLE_DATA", tr("the folder of data sets")) +
      manual_variable("NO_COLOR", tr("no colours"));
  for_each_command(app, "", [&](const CLI::App& command, const std::string& path) {
    text += ".SH " + roff("heddle " + path) + "\n" + roff(tr(command.get_description())) + ".\n" +
            manual_options(command);
    if (const std::string footer = command.get_footer(); !footer.empty())
      text += ".PP\n.nf\n" + roff(tr(footer)) + "\n.fi\n";
  });
  return text;
}

namespace completion_command {

void add(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("completion", "completion for a shell, or the manual page");
  command->footer(
      "Examples: heddle completion bash > /etc/bash_completion.d/heddle\n"
      "          heddle completion man | man -l -");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "bash, zsh, fish, or man for the manual page")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}));
  command->callback([&app, shell] {
    std::cout << (*shell == "bash"   ? bash_completion(app)
                  : *shell == "zsh"  ? zsh_completion(app)
                  : *shell == "fish" ? fish_completion(app)
                                     : manual_page(app));
  });
}

}  // namespace completion_command

}  // namespace heddle::cli
