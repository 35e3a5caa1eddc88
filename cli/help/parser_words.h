// Complaints of the parser of the command line, in words for people.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace heddle::cli {

// "--tokens: expected a whole number; got many". `command` is the one whose options were parsed.
// Empty where the parser's own words will do.
std::string in_words(const CLI::App& command, const CLI::ParseError& error);

}  // namespace heddle::cli
