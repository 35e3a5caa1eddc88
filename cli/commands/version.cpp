// heddle version: which program this is, for a report of what went wrong.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
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
    cli::print_json(nlohmann::json{
        {"version", HEDDLE_VERSION}, {"compiler", kCompiler}, {"isa_in_use", instruction_set()}});
    return;
  }
  std::cout << "heddle " HEDDLE_VERSION "\n"
            << tr("built by {}, computes with {}", kCompiler, instruction_set()) << "\n";
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand("version", "which version this is, and what built it");
  command->footer("Example: heddle version --json");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "one JSON document on standard output");
  command->callback([as_json] { print(*as_json); });
}

}  // namespace heddle::cli::version_command
