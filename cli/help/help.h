// Help as people read it: values by what they are ("N", "fp32|bf16"), never by the types of the
// library that parses them, in the language of the process, and lines that end where the terminal
// does.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace heddle::cli {

// Columns of the terminal, or what COLUMNS says; where there is neither, as many as one likes.
std::size_t terminal_columns();

// The same for running text: from 60 to 110, and 80 where there is none.
std::size_t help_columns();

// Name and description in two columns, as of options; a long name has a line of its own.
std::string two_columns(const std::string& name, const std::string& text);

// "INT:INT in [1 - 64]" -> "N" and "1 to 64"; "TEXT:{fp32,bf16}" -> "fp32|bf16" and nothing.
struct ValueWords {
  std::string name, range;
};
ValueWords value_words(const std::string& type);

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override;
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace heddle::cli
