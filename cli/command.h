// A command of the program: adds itself to the parser; the parser calls it back.
#pragma once

#include <CLI/CLI.hpp>

namespace heddle::cli {

void add_bench(CLI::App& app);
void add_info(CLI::App& app);

}  // namespace heddle::cli
