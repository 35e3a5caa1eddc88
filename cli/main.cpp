// heddle: parses the command line and turns errors into messages and exit codes.
//   0 done; 1 it ran and failed; 2 the input or usage is at fault
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "command.h"
#include "heddle/error.h"
#include "help/help.h"
#include "help/suggest.h"
#include "language/language.h"
#include "language_option.h"
#include "signals.h"

namespace {

std::string command_of(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? "" : chosen.front()->get_name() + ": ";
}

int run_command(int argc, char** argv) {
  CLI::App app(
      heddle::mark(
          "Heddle: a Transformer engine. A recipe says what a model is; the commands train it and "
          "use it."),
      "heddle");
  app.set_version_flag("--version", heddle::cli::version_command::text,
                       "version, commit and the instruction sets of this machine");
  app.set_help_flag("-h,--help", "this help");
  const auto formatter = std::make_shared<heddle::cli::HelpFormatter>();
  formatter->label("Positionals", heddle::mark("Arguments"));
  app.formatter(formatter);
  std::string language;  // taken out of the arguments before they are parsed: here for the help
  app.add_option("--lang", language,
                 "language of help, screens and pages, before or behind the command; otherwise "
                 "HEDDLE_LANG or the locale decides")
      ->check(CLI::IsMember({"en", "zh"}));
  app.footer("heddle help COMMAND says more, with an example; heddle help lists topics.");
  app.failure_message([](const CLI::App* parsed, const CLI::Error& e) {
    return "heddle: " + CLI::FailureMessage::simple(parsed, e);
  });
  // One command: names of others behind it are its words (heddle help train), not further commands.
  app.require_subcommand(0, 1);
  heddle::cli::bench_command::add(app);
  heddle::cli::chat_command::add(app);
  heddle::cli::check_command::add(app);
  heddle::cli::classify_command::add(app);
  heddle::cli::compare_command::add(app);
  heddle::cli::completion_command::add(app);
  heddle::cli::data_command::add(app);
  heddle::cli::embed_command::add(app);
  heddle::cli::eval_command::add(app);
  heddle::cli::generate_command::add(app);
  heddle::cli::help_command::add(app);
  heddle::cli::info_command::add(app);
  heddle::cli::init_command::add(app);
  heddle::cli::inspect_command::add(app);
  heddle::cli::keys_command::add(app);
  heddle::cli::lab_command::add(app);
  heddle::cli::logits_command::add(app);
  heddle::cli::export_command::add(app);
  heddle::cli::plan_command::add(app);
  heddle::cli::report_command::add(app);
  heddle::cli::tag_command::add(app);
  heddle::cli::tokenize_command::add(app);
  heddle::cli::tokenizer_command::add(app);
  heddle::cli::train_command::add(app);
  heddle::cli::translate_command::add(app);
  heddle::cli::version_command::add(app);
  heddle::cli::watch_command::add(app);
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  try {
    heddle::set_language(heddle::cli::chosen_language(arguments));
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    if (arguments.empty()) std::cout << app.help();
    return 0;
  } catch (const CLI::ParseError& e) {
    if (const std::string complaint = heddle::cli::usage_complaint(app, arguments, e);
        !complaint.empty()) {
      std::cerr << "heddle: " << complaint << "\n";
      return 2;
    }
    return app.exit(e) == 0 ? 0 : 2;  // --help and --version are no fault
  } catch (const heddle::cli::ExitStatus& status) {
    return status.code;
  } catch (const heddle::Error& e) {
    // Memory that was not there is no fault of the command line: so its command is named as well.
    const bool no_memory = e.code() == heddle::ErrorCode::out_of_memory;
    // At once: other ranks of a run may be writing as well.
    std::cerr << "heddle: " + (no_memory ? command_of(app) : "") + e.what() + "\n";
    return no_memory || e.code() == heddle::ErrorCode::failed ? 1 : 2;
  } catch (const std::bad_alloc&) {
    std::cerr << "heddle: " << command_of(app) << "out of memory\n";
    return 1;
  } catch (const std::exception& e) {
    std::cerr << "heddle: " << e.what() << "\n";
    return 1;
  }
}

// A file that is opened takes the lowest free number, so with a closed standard error the progress
// of a training would go into its own log. A closed one is taken by what cannot be written (or has
// nothing to read), so that printing fails as it would have.
void occupy_standard_files() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(standard, F_GETFD) < 0 && open("/dev/null", O_RDONLY | O_CLOEXEC) != standard) return;
}

// A result that went nowhere (a full disk) must not look like one that is there. What is still in
// the buffers is written now, while the exit status can tell.
int after_output(int status) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (written) return status;
  if (heddle::cli::caught_signal() == SIGPIPE) return 128 + SIGPIPE;  // its reader wants no more
  std::cerr << "heddle: standard output: could not be written to the end\n";
  return status == 0 ? 1 : status;
}

// Where memory ends before the commands are there, none of them can say that it is the one: their
// words stand on the command line. Takes no memory itself.
int run_or_say_why(int argc, char** argv) {
  try {
    return run_command(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "heddle: %s%sout of memory\n", argc > 1 ? argv[1] : "",
                 argc > 1 ? ": " : "");
    return 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_files();
  // A file that may not grow any more (ulimit -f) is a disk without space: writing says so.
  std::signal(SIGXFSZ, SIG_IGN);
  // For tests: what a screen had no Chinese for.
  const heddle::UntranslatedTexts untranslated;
  const int status = after_output(run_or_say_why(argc, argv));
  if (std::getenv("HEDDLE_SHOW_UNTRANSLATED") != nullptr)
    for (const std::string& text : untranslated.found())
      std::cerr << "untranslated: " << text << "\n";
  return status;
}
