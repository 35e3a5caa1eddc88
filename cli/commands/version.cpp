// heddle version: which program this is, for a report of what went wrong.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "command.h"
#include "commit.h"
#include "heddle/runtime.h"
#include "language/language.h"
#include "print_json.h"

namespace heddle::cli::version_command {

namespace {

constexpr const char* kCompiler =
#ifdef __clang__
    "clang " __clang_version__;
#else
    "g++ " __VERSION__;
#endif

void print(bool as_json) {
  if (as_json) {
    cli::print_json(
        nlohmann::json{{"version", HEDDLE_VERSION},
                       {"commit", *commit() == '\0' ? nlohmann::json() : nlohmann::json(commit())},
                       {"compiler", kCompiler},
                       {"isa", available_instruction_sets()},
                       {"isa_in_use", instruction_set()}});
    return;
  }
  std::cout << text() << "\n" << tr("built by {}", kCompiler) << "\n";
}

}  // namespace

std::string text() {
  std::string all = "heddle " HEDDLE_VERSION;
  if (*commit() != '\0') all += " (" + std::string(commit()) + ")";
  std::string sets;
  for (const std::string& one : available_instruction_sets()) sets += " " + one;
  return all + "\n" + tr("instruction sets here:{}", sets) + "\n" +
         tr("computes with {}", instruction_set());
}

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand("version", "which version this is, and what built it");
  command->footer("Example: heddle version --json");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "one JSON document on standard output");
  command->callback([as_json] { print(*as_json); });
}

}  // namespace heddle::cli::version_command
