#include "help/help.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

#include "language/language.h"
#include "language/layout.h"

namespace heddle::cli {

namespace {

constexpr std::size_t kNarrowest = 60, kWidest = 110, kNoTerminal = 80;
constexpr std::size_t kColumn = 26;  // where descriptions begin

// A bound beyond this is "as large as the type", and says nothing to a reader.
constexpr double kWorthSaying = 1e7;

std::string joined(const std::vector<std::string>& parts, std::string_view with) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : std::string(with)) + part;
  return all;
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// "INT in [1 - 64]" -> "1 to 64"; empty for what is no range, or one that nobody will leave.
std::string range_words(const std::string& text) {
  const std::size_t open = text.find(" in ["), dash = text.find(" - ");
  if (open == std::string::npos || dash == std::string::npos || !text.ends_with("]")) return {};
  const std::string low = text.substr(open + 5, dash - open - 5);
  const std::string high = text.substr(dash + 3, text.size() - dash - 4);
  double last = 0;
  const auto [end, error] = std::from_chars(high.data(), high.data() + high.size(), last);
  if (error != std::errc() || end != high.data() + high.size()) return {};
  if (last <= kWorthSaying) return tr("{} to {}", low, high);
  return low == "0" || low == "1" ? "" : tr("at least {}", low);
}

std::string plain_name(const std::string& type) {
  if (type == "INT" || type == "UINT") return "N";
  if (type == "FLOAT") return "X";
  return type;
}

// By name: the set is in the order of addresses.
std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  names.reserve(options.size());
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::ranges::sort(names);
  return joined(names, ", ");
}

// A default that is a value is the same in every language; one in words is not: "none: draw".
std::string default_words(const std::string& text) {
  return text.find(' ') == std::string::npos ? text : tr(text);
}

// Remarks behind the description: "(1 to 64; default: 4; not with --beam)".
std::string remarks(const CLI::Option& option, const ValueWords& words) {
  std::vector<std::string> all;
  if (!words.range.empty()) all.push_back(words.range);
  if (option.get_type_size() != 0 && !option.get_default_str().empty())
    all.push_back(tr("default: {}", default_words(option.get_default_str())));
  if (!option.get_needs().empty()) all.push_back(tr("with {}", names_of(option.get_needs())));
  if (!option.get_excludes().empty())
    all.push_back(tr("not with {}", names_of(option.get_excludes())));
  return all.empty() ? "" : tr(" ({})", joined(all, tr("; ")));
}

}  // namespace

std::size_t terminal_columns() {
  std::size_t columns = 0;
  if (const char* given = std::getenv("COLUMNS")) columns = std::strtoul(given, nullptr, 10);
  winsize size{};
  if (columns == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  return columns == 0 ? std::numeric_limits<std::size_t>::max() : columns;
}

std::size_t help_columns() {
  const std::size_t columns = terminal_columns();
  return columns == std::numeric_limits<std::size_t>::max()
             ? kNoTerminal
             : std::clamp(columns, kNarrowest, kWidest);
}

std::string two_columns(const std::string& name, const std::string& text) {
  std::string left = "  " + name;
  if (columns_of(left) + 2 > kColumn)
    left += "\n" + std::string(kColumn, ' ');
  else
    left = padded(left, kColumn);
  return left + wrapped(text, help_columns() - kColumn, kColumn) + "\n";
}

ValueWords value_words(const std::string& type) {
  ValueWords words;
  for (const std::string& part : split(type, ':')) {
    if (words.name.empty()) words.name = plain_name(part);
    if (part.starts_with("{") && part.ends_with("}"))
      words.name = joined(split(part.substr(1, part.size() - 2), ','), "|");
    if (part.starts_with("SIZE")) words.name = "SIZE";
    if (const std::string range = range_words(part); !range.empty()) words.range = range;
  }
  return words;
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  const ValueWords words = value_words(option->get_type_name());
  std::string name = make_option_name(option, is_positional);
  if (const std::size_t comma = name.find(','); comma != std::string::npos)
    name.insert(comma + 1, " ");
  if (!is_positional && option->get_type_size() != 0) name += " " + words.name;
  return two_columns(name, tr(option->get_description()) + remarks(*option, words));
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  std::string line = tr("usage: {}", name);
  for (const CLI::Option* option :
       app->get_options([](const CLI::Option* o) { return o->get_positional(); }))
    line +=
        option->get_required() ? " " + option->get_name(true) : " [" + option->get_name(true) + "]";
  // An option group is a command without a name.
  const bool has_commands =
      !app->get_subcommands([](const CLI::App* one) { return !one->get_name().empty(); }).empty();
  if (has_commands)
    line +=
        app->get_require_subcommand_min() > 0 ? " " + tr("COMMAND") : " [" + tr("COMMAND") + "]";
  return line + " [" + tr("OPTION") + "]...\n";
}

std::string HelpFormatter::make_group(std::string group, bool is_positional,
                                      std::vector<const CLI::Option*> options) const {
  std::string text = "\n" + tr("{}:", group == "Options" ? tr("Options") : tr(group)) + "\n";
  for (const CLI::Option* option : options) text += make_option(option, is_positional);
  return text;
}

// "Commands:" instead of the parser's own word.
std::string HelpFormatter::make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const {
  std::string text = CLI::Formatter::make_subcommands(app, mode);
  constexpr std::string_view kTheirs = "Subcommands:";
  if (const std::size_t at = text.find(kTheirs); at != std::string::npos)
    text.replace(at, kTheirs.size(), tr("{}:", tr("Commands")));
  return text;
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return two_columns(command->get_name(), tr(command->get_description()));
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrapped(tr(app->get_description()), help_columns(), 0) + "\n\n";
}

// Sentences are wrapped, and examples stay as they can be typed.
std::string HelpFormatter::make_footer(const CLI::App* app) const {
  if (app->get_footer().empty()) return "";
  std::string text, prose;
  const auto end_prose = [&] {
    if (!prose.empty()) text += wrapped(prose, help_columns(), 0) + "\n";
    prose.clear();
  };
  const std::string example = tr("Example");
  for (const std::string& line : split(tr(app->get_footer()), '\n')) {
    const bool as_it_is = line.empty() || line[0] == ' ' || line.starts_with(example);
    if (as_it_is) end_prose();
    if (as_it_is)
      text += line + "\n";
    else
      prose = sentences(prose, line);
  }
  end_prose();
  return text;
}

}  // namespace heddle::cli
