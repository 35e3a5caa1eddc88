// heddle lab: the theory, run.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "heddle/error.h"
#include "help/help.h"
#include "io/files/file.h"
#include "lab/experiments.h"
#include "lab/present/present.h"
#include "progress.h"

namespace heddle::cli::lab_command {

namespace {

struct Arguments {
  std::vector<std::string> names;
  bool slow = false, as_json = false;
  std::string page, markdown, fault;
};

void list(const Arguments& a) {
  const bool only_for_runs = a.slow || !a.page.empty() || !a.markdown.empty() || !a.fault.empty();
  if (a.names.empty() && only_for_runs)
    fail(ErrorCode::invalid_argument, "lab", "no experiment is named",
         "all, or names of some (heddle lab list shows them) beside --slow, --out, --markdown or "
         "--plant: heddle lab all --out lab.html");
  if (a.names.size() > 1 || only_for_runs)
    fail(ErrorCode::invalid_argument, "lab list", "only shows the experiments",
         "neither names nor --slow, --out, --markdown, --plant; to run them: heddle lab all");
  const std::vector<std::string> all = {"all"};
  const auto chosen = lab::choose(lab::experiments(), all, true);
  std::cout << (a.as_json ? lab::list_json(chosen) + "\n" : lab::list_text(chosen, help_columns()));
}

// A file that cannot be written must not cost a run of minutes: this is known before it.
void check_outputs(const Arguments& a) {
  for (const std::string& path : {a.page, a.markdown})
    if (!path.empty()) const io::AtomicFile writable(path);
}

std::string names_of(const std::vector<const lab::Experiment*>& experiments) {
  std::string names;
  for (const lab::Experiment* e : experiments) names += (names.empty() ? "" : ", ") + e->name;
  return names;
}

// Standard output is for what was found.
void tell_matches(const Arguments& a) {
  for (const lab::Match& m : lab::found_by(lab::experiments(), a.names)) {
    if (!m.experiments.empty())
      std::cerr << tr("{} is in: {}", m.word, names_of(m.experiments)) << "\n";
    if (!m.slow.empty())
      std::cerr << tr("also about {}, but slow (run by name): {}", m.word, names_of(m.slow))
                << "\n";
  }
}

void tell_written(const Arguments& a) {
  for (const std::string& path : {a.page, a.markdown})
    if (!path.empty()) std::cout << tr("written: {}", path) << "\n";
}

void run(const Arguments& a) {
  const auto chosen = lab::choose(lab::experiments(), a.names, a.slow);
  if (!a.fault.empty() && !a.markdown.empty())
    fail(ErrorCode::invalid_argument, "lab", "--plant beside --markdown",
         "one of them: what docs/lab.md shows was measured without faults");
  check_outputs(a);
  tell_matches(a);
  const bool colour = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  ProgressLine progress;
  lab::Watch watch;
  watch.begins = [&](const lab::Experiment& e, std::size_t number, std::size_t of) {
    progress.show_last(std::to_string(number) + "/" + std::to_string(of) + " " + e.name);
  };
  watch.ended = [&](const lab::Outcome& o) {
    if (!a.as_json)
      std::cout << lab::outcome_text(o, colour, help_columns()) << "\n"
                << std::flush;  // as soon as it is there
  };
  const std::vector<lab::Outcome> outcomes = lab::run(chosen, watch, a.fault);
  if (!a.page.empty()) io::write_file_atomic(a.page, lab::outcomes_page(outcomes));
  if (!a.markdown.empty()) io::write_file_atomic(a.markdown, lab::outcomes_markdown(outcomes));
  std::cout << (a.as_json ? lab::outcomes_json(outcomes) + "\n" : lab::summary_text(outcomes));
  if (!a.as_json) tell_written(a);
  throw ExitStatus{lab::exit_status(outcomes)};
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("lab", "the theory, run: each claim with its numbers and its verdict");
  command->footer(
      "list (or nothing) shows the experiments, all runs those that take seconds. The status is 1\n"
      "when a measured verdict differs from the one that the experiment states.\n"
      "Example: heddle lab all --out lab.html --lang zh");
  auto a = std::make_shared<Arguments>();
  command->add_option("names", a->names,
                      "list, all, names of experiments, or a word: heddle lab rope");
  command->add_flag("--slow", a->slow, "with all: the slow ones too");
  command->add_option("--out", a->page, "write a page with figures")->type_name("FILE.html");
  command->add_option("--markdown", a->markdown, "write what docs/lab.md is")->type_name("FILE.md");
  command
      ->add_option("--plant", a->fault,
                   "let one experiment measure wrongly, to see that it notices: it must not pass")
      ->type_name("FAULT");
  command->add_flag("--json", a->as_json, "one JSON document on standard output");
  command->callback([a] {
    if (a->names.empty() || a->names.front() == "list")
      list(*a);
    else
      run(*a);
  });
}

}  // namespace heddle::cli::lab_command
