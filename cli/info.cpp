// heddle info: the machine as Heddle sees it.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "heddle/runtime.h"
#include "language/language.h"
#include "language/layout.h"
#include "print_json.h"

namespace heddle::cli::info_command {

namespace {

void print(bool as_json) {
  if (as_json) {
    const nlohmann::json document = {{"cpu", cpu_name()},
                                     {"isa", available_instruction_sets()},
                                     {"isa_in_use", instruction_set()},
                                     {"threads", threads()}};
    cli::print_json(document);
    return;
  }
  // Everything is asked for before anything is printed: a bad HEDDLE_ISA gives its message alone.
  const std::string in_use = instruction_set();
  const int count = threads();
  std::string sets;
  for (const std::string& isa : available_instruction_sets())
    sets += (sets.empty() ? "" : " ") + isa;
  const auto line = [](const std::string& name, const std::string& value) {
    std::cout << padded(name, 10) << value << "\n";
  };
  line(tr("cpu:"), cpu_name());
  line(tr("isa:"), tr("{} (in use: {})", sets, in_use));
  line(tr("threads:"), std::to_string(count));
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand("info", "what Heddle sees of this machine");
  command->footer("Example: HEDDLE_ISA=avx2 heddle info --json");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "one JSON document on standard output");
  command->callback([as_json] { print(*as_json); });
}

}  // namespace heddle::cli::info_command
