// heddle check: every fast path of a recipe's model against a float64 reference.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "check/check.h"
#include "check/reduce.h"
#include "command.h"
#include "find_recipe.h"
#include "help/help.h"
#include "language/language.h"
#include "language/layout.h"
#include "print_json.h"
#include "progress.h"
#include "recipe/recipe.h"
#include "run/recipe_file.h"

namespace heddle::cli::check_command {

namespace {

using check::Case;
using nlohmann::json;

struct Arguments {
  RecipeArguments recipe;
  bool as_json = false;
};

// JSON has no infinity: the largest number there is stands for it, and for NaN.
double number(double value) {
  return std::isfinite(value) ? value : std::numeric_limits<double>::max();
}

json to_json(const Case& c) {
  json j = {{"path", c.path},       {"dtype", to_string(c.dtype)}, {"isa", c.isa},
            {"threads", c.threads}, {"error", number(c.error)},    {"tolerance", c.tolerance},
            {"pass", c.pass()}};
  if (!c.worst.empty()) j["worst"] = c.worst;
  return j;
}

json to_json(const model::ModelConfig& m) {
  json j = {{"kind", model::to_string(m.kind)},
            {"task", model::to_string(m.task)},
            {"layers", m.layers},
            {"width", m.width},
            {"heads", m.attention.heads},
            {"kv_heads", m.attention.key_heads()},
            {"context", model::positions_of(m)}};
  if (m.attention.look_back) j["look_back"] = *m.attention.look_back;
  return j;
}

// The worst case of each path and type, of all instruction sets and threads.
struct Line {
  const Case* worst = nullptr;
  std::size_t cases = 0, failed = 0;
};

double excess(const Case& c) {
  if (c.error <= c.tolerance && c.tolerance == 0) return 0;
  return std::isnan(c.error) || c.tolerance == 0 ? HUGE_VAL : c.error / c.tolerance;
}

std::vector<Line> lines_of(const check::Report& report) {
  std::vector<Line> lines;
  for (const Case& c : report.cases) {
    auto found = std::ranges::find_if(
        lines, [&](const Line& l) { return l.worst->path == c.path && l.worst->dtype == c.dtype; });
    if (found == lines.end()) found = lines.insert(lines.end(), Line{&c});
    ++found->cases;
    if (!c.pass()) ++found->failed;
    if (excess(c) > excess(*found->worst)) found->worst = &c;
  }
  return lines;
}

std::string text_of(double value) { return value == 0 ? "0" : fmt::format("{:.1e}", value); }

constexpr std::size_t kTable =
    36 + 1 + 5 + 1 + 5 + 1 + 9 + 1 + 9 + 2 + 8;  // columns, without places

// Where the error of a case is largest; nowhere, where there is none.
std::string place_of(const Case& c) {
  if (c.error <= 0) return "";
  const std::string where =
      c.threads == 1 ? tr("{}, 1 thread", c.isa) : tr("{}, {} threads", c.isa, c.threads);
  return c.worst.empty() ? where : tr("{}, {}", where, c.worst);
}

void print(const check::Report& report, const model::ModelConfig& m) {
  fmt::print("{}\n\n", tr("{} of {} layers, width {}, {} tokens, as reduced from the recipe",
                          model::to_string(m.kind), m.layers, m.width, model::positions_of(m)));
  const std::vector<Line> lines = lines_of(report);
  std::size_t widest = 0;
  for (const Line& line : lines) widest = std::max(widest, columns_of(place_of(*line.worst)));
  // Where a terminal is too narrow, places stand below.
  const bool below = kTable + 1 + widest > terminal_columns();
  fmt::print("{} {} {} {} {}  {}{}\n", padded(tr("path"), 36), padded(tr("type"), 5),
             padded_left(tr("cases"), 5), padded_left(tr("error"), 9),
             padded_left(tr("allowed"), 9), below ? tr("verdict") : padded(tr("verdict"), 9),
             below ? "" : tr("worst at"));
  for (const Line& line : lines) {
    const Case& c = *line.worst;
    const std::string verdict = line.failed == 0 ? tr("right") : tr("WRONG");
    const std::string where = place_of(c);
    fmt::print("{} {:5} {:5} {:>9} {:>9}  {}", padded(tr(c.path), 36), to_string(c.dtype),
               line.cases, text_of(c.error), text_of(c.tolerance),
               below || where.empty() ? verdict : padded(verdict, 9) + where);
    fmt::print("{}\n", below && !where.empty() ? "\n    " + tr("worst at {}", where) : "");
  }
  for (const std::string& note : report.notes) fmt::print("{}\n", tr("note: {}", note));
  const auto failed = std::ranges::count_if(report.cases, [](const Case& c) { return !c.pass(); });
  if (failed == 0)
    fmt::print("\n{}\n", tr("all {} cases are within their tolerances", report.cases.size()));
  else
    fmt::print("\n{}\n", tr("{} of {} cases exceed their tolerances", failed, report.cases.size()));
}

void run(const Arguments& a) {
  const recipe::Recipe recipe = run::load_recipe(recipe_file(a.recipe), a.recipe.set);
  if (!recipe.train.device.is_cpu())
    fail(ErrorCode::unsupported, recipe.places.of("train.device"),
         "heddle check proves the CPU's arithmetic only", "--set train.device=cpu",
         to_string(recipe.train.device));
  const model::ModelConfig model = check::reduced(recipe);
  ProgressLine progress;
  check::Options options;
  options.label_smoothing = recipe.train.label_smoothing;
  options.documents = recipe.data.documents != data::Documents::none;
  options.progress = [&progress](const std::string& what) {
    progress.show(tr("checking {}", what));
  };
  const check::Report report = check::check_model(model, options);
  progress.show_last(tr("checked {} cases", report.cases.size()));
  if (a.as_json) {
    json cases = json::array();
    for (const Case& c : report.cases) cases.push_back(to_json(c));
    cli::print_json(json{{"cases", cases},
                         {"pass", report.pass()},
                         {"model", to_json(model)},
                         {"notes", report.notes}});
  } else {
    print(report, model);
  }
  if (!report.pass()) throw ExitStatus{1};
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "check", "every fast path of a recipe's model against float64, at reduced size");
  command->footer(
      "Reads no data. Exit status: 0 when every error is within its tolerance, 1 when one is not.\n"
      "Example: heddle check llama-style");
  auto a = std::make_shared<Arguments>();
  declare_recipe(*command, a->recipe);
  command->add_flag("--json", a->as_json, "one JSON document on standard output");
  command->callback([a] { run(*a); });
}

}  // namespace heddle::cli::check_command
