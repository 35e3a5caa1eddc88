// Complaints about commands and options that there are not, with what may have been meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace heddle::cli {

// "did you mean --tokens?", "threads are set by HEDDLE_THREADS=4 before the command", or nothing.
// `known` are the options of the command.
std::string suggest_option(const std::string& given, const std::vector<std::string>& known);

// The mistake in a command line that could not be parsed: a command that there is not, an
// option or argument too many. Empty where the parser's own words will do.
std::string usage_complaint(const CLI::App& app, const std::vector<std::string>& arguments,
                            const CLI::ParseError& error);

}  // namespace heddle::cli
