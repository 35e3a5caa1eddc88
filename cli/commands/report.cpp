// heddle report: the page of a run, made anew from its files.
#include <fmt/core.h>

#include <memory>
#include <string>

#include "command.h"
#include "report/compare/compare.h"

namespace heddle::cli::report_command {

namespace {

struct Arguments {
  std::string run, out;
};

}  // namespace

void add(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("report", "make the page of a run or a comparison anew from its files");
  command->footer(
      "A run writes report.html by itself, from its first evaluation on; this makes it for one\n"
      "that was killed, or anywhere else.\n"
      "Examples:\n"
      "  heddle report runs/char-gpt\n"
      "  heddle report runs/char-gpt --out /tmp/look.html");
  auto a = std::make_shared<Arguments>();
  command->add_option("RUN", a->run, "directory of a run or of a comparison, finished or not")
      ->required();
  command
      ->add_option("--out", a->out,
                   "the page (default: report.html of the run, index.html of the comparison)")
      ->type_name("FILE");
  command->callback([a] {
    for (const std::string& page : report::write_report(a->run, a->out)) fmt::print("{}\n", page);
  });
}

}  // namespace heddle::cli::report_command
