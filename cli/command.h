// A command of the program: adds itself to the parser; the parser calls it back.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace heddle::cli {

// Thrown by a command that has said all there is to say: the status the program ends with.
struct ExitStatus {
  int code = 0;
};

// A namespace each, so that they need not ask each other for names.
// clang-format off: one on a line
namespace bench_command { void add(CLI::App& app); }
namespace chat_command { void add(CLI::App& app); }
namespace check_command { void add(CLI::App& app); }
namespace classify_command { void add(CLI::App& app); }
namespace compare_command { void add(CLI::App& app); }
namespace completion_command { void add(CLI::App& app); }
namespace data_command { void add(CLI::App& app); }
namespace embed_command { void add(CLI::App& app); }
namespace eval_command { void add(CLI::App& app); }
namespace export_command { void add(CLI::App& app); }
namespace generate_command { void add(CLI::App& app); }
namespace help_command { void add(CLI::App& app); }
namespace info_command { void add(CLI::App& app); }
namespace init_command { void add(CLI::App& app); }
namespace inspect_command { void add(CLI::App& app); }
namespace keys_command { void add(CLI::App& app); }
namespace lab_command { void add(CLI::App& app); }
namespace logits_command { void add(CLI::App& app); }
namespace plan_command { void add(CLI::App& app); }
namespace report_command { void add(CLI::App& app); }
namespace tag_command { void add(CLI::App& app); }
namespace tokenize_command { void add(CLI::App& app); }
namespace tokenizer_command { void add(CLI::App& app); }
namespace train_command { void add(CLI::App& app); }
namespace translate_command { void add(CLI::App& app); }
namespace version_command { void add(CLI::App& app); std::string text(); }
namespace watch_command { void add(CLI::App& app); }
// clang-format on

}  // namespace heddle::cli
