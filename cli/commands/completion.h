// The command line as other programs want to know it: completion for shells, and the manual page.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace heddle::cli {

// Scripts that complete commands, options, values of a choice, names of recipes, and files.
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string fish_completion(const CLI::App& app);

// heddle(1), in the language of man.
std::string manual_page(const CLI::App& app);

}  // namespace heddle::cli
