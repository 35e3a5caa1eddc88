// heddle compare: variants of a recipe, trained in turns, and what differs.
#include <fmt/core.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "find_recipe.h"
#include "help.h"
#include "language/language.h"
#include "language/layout.h"
#include "print_json.h"
#include "progress.h"
#include "report/compare.h"
#include "report/numbers.h"
#include "signals.h"
#include "tell.h"
#include "train/compare/comparison.h"
#include "train/compare/results.h"

namespace heddle::cli::compare_command {

namespace {

using train::Comparison;
using train::ComparisonResults;

struct Arguments {
  RecipeArguments recipe;
  train::ComparisonSpec spec;  // without the recipe and what is set in it
  std::int64_t seeds = 0;
  bool as_json = false;
};

using Row = std::vector<std::string>;

// A column of steps only where it tells something: under --budget steps they are all the same.
std::vector<Row> table_of(const ComparisonResults& r) {
  const bool with_steps = r.unequal_steps();
  std::vector<Row> rows = {
      {tr("variant"), r.validation ? tr("validation loss") : tr("training loss")}};
  if (with_steps) rows[0].push_back(tr("steps"));
  for (const char* name :
       {mark("time/step"), mark("tokens/s"), mark("memory"), mark("cache per token")})
    rows[0].push_back(tr(name));
  for (std::size_t i = 0; i < r.variants.size(); ++i) {
    const train::VariantResult& v = r.variants[i];
    Row row = {v.name + (r.best == i ? " *" : ""), report::loss_text(v, r)};
    if (with_steps) row.push_back(fmt::format("{}", v.steps));
    const bool timed = v.step_seconds > 0;
    row.push_back(timed ? report::time_text(v) : "-");
    row.push_back(timed ? count(v.tokens_per_s) : "-");
    row.push_back(v.peak_bytes > 0 ? report::bytes_text(static_cast<double>(v.peak_bytes)) : "-");
    row.push_back(v.kv_bytes_per_token > 0 ? fmt::format("{} B", v.kv_bytes_per_token) : "-");
    rows.push_back(std::move(row));
  }
  return rows;
}

void print(const std::vector<Row>& rows) {
  Row lines(rows.size());
  for (std::size_t column = 0; column < rows[0].size(); ++column) {
    std::size_t width = column == 0 ? 0 : 10;
    for (const Row& row : rows) width = std::max(width, columns_of(row[column]));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string blanks(width - columns_of(rows[i][column]), ' ');
      lines[i] += column == 0 ? rows[i][0] + blanks : "  " + blanks + rows[i][column];
    }
  }
  for (const std::string& line : lines) fmt::print("{}\n", line);
}

void print_wrapped(const std::string& text) {
  fmt::print("{}\n", wrapped(text, help_columns(), 2));
}

void print(const ComparisonResults& r) {
  print(table_of(r));
  fmt::print("\n");
  for (const train::VariantResult& v : r.variants)
    if (!v.diverged.empty()) print_wrapped(report::divergence_in_words(v, r.seeds));
  bool suggests = false;
  for (const train::PairResult& p : r.pairs) {
    if (p.a != r.base()) continue;
    const std::string seeds = report::seeds_in_words(p, r);
    print_wrapped(report::in_words(p, r) + (seeds.empty() ? "" : " " + seeds));
    suggests = suggests || !seeds.empty();
  }
  if (!r.effects.empty()) {
    fmt::print("\n");
    print_wrapped(report::effects_note(r));
    print(report::effects_table(r));
  }
  if (r.pairs.empty()) return;
  fmt::print("\n");
  print_wrapped(report::noise_note(r));
  if (suggests) print_wrapped(report::seeds_formula());
}

void show(ProgressLine& line, const train::TurnReport& t) {
  std::string text = fmt::format("{:3.0f}%  round {}/{}  {}", 100 * t.share_done, t.round, t.rounds,
                                 t.variant->name);
  if (t.seeds > 1) text += fmt::format("  seed {}", t.seed);
  text += fmt::format("  step {}/{}  loss {:.4f}  {:.3g} ms", t.step.step, t.steps, t.step.loss,
                      1e3 * t.step.seconds);
  if (t.seconds_left > 0) text += "  " + report::duration_text(t.seconds_left) + " left";
  line.show(text);
}

bool run_turns(Comparison& comparison, ProgressLine& line) {
  train::ComparisonHooks hooks;
  hooks.on_step = [&line](const train::TurnReport& t) { show(line, t); };
  hooks.machine = train::measure_machine;
  hooks.on_note = [&line](const std::string& sentence) { line.say(sentence); };
  hooks.should_stop = [] { return caught_signal() != 0; };
  try {
    return comparison.run(hooks);
  } catch (const Error& e) {
    line.finish();
    tell("heddle: {}\nwhat was saved is whole; the same command again goes on\n", e.what());
    throw ExitStatus{1};
  }
}

void run(const Arguments& a) {
  train::ComparisonSpec spec = a.spec;
  spec.recipe = recipe_file(a.recipe);
  spec.set = a.recipe.set;
  for (std::string& other : spec.also) other = recipe_file(other);
  if (spec.out.empty()) spec.out = "runs/compare-" + recipe_name(a.recipe);
  if (a.seeds > 0) spec.seeds = a.seeds;
  end_on_signals("heddle: interrupted before the first step; the same command again begins\n");
  Comparison comparison(std::move(spec));
  catch_signals();
  ProgressLine line;
  const std::string& out = comparison.spec().out;
  line.say(fmt::format("{} variants x {} seed{}, {} each; writing to {}",
                       comparison.variants().size(), comparison.seeds(),
                       comparison.seeds() == 1 ? "" : "s", comparison.budget().text, out));
  const bool finished = run_turns(comparison, line);
  line.finish();
  if (!finished) {
    tell("stopped; the same command again goes on\n");
    throw ExitStatus{128 + caught_signal()};
  }
  const ComparisonResults results = train::collect(comparison);
  train::write_results(out, results);
  const std::string page = report::write_comparison_report(out, results);
  if (a.as_json)
    cli::print_json(train::to_json(results));
  else {
    print(results);
    fmt::print("{}\n", page);
  }
  if (!results.best) throw ExitStatus{1};  // all diverged
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("compare", "train variants of a recipe in turns and say what differs");
  command->footer(
      "All combinations of --vary are trained with the same data order, seeds and budget. The "
      "same\n"
      "command again goes on where it was stopped or killed. With [compare] in the recipe, --vary\n"
      "may be left out.\n"
      "Examples:\n"
      "  heddle compare rope-gqa\n"
      "  heddle compare char-gpt --vary model.attention.kv_heads=1,2,4 --seeds 3\n"
      "      --budget steps=200 --out runs/kv-heads");
  auto a = std::make_shared<Arguments>();
  declare_recipe(*command, a->recipe);
  command->add_option("--vary", a->spec.vary, "values to compare: model.attention.kv_heads=1,2,6")
      ->type_name("KEY=A,B,C")
      ->allow_extra_args(false);
  command->add_option("--also", a->spec.also, "another recipe on the same data as a variant")
      ->type_name("RECIPE")
      ->allow_extra_args(false);
  command->add_option("--seeds", a->seeds, "seeds of each variant, from train.seed on (default: 1)")
      ->check(CLI::Range(1, 1000));
  command->add_option("--budget", a->spec.budget,
                      "of each variant: steps=200, tokens=1M, time=60s or flops=1e12 (default: the "
                      "recipe's train.steps)");
  command
      ->add_option("--out", a->spec.out,
                   "directory for runs, results.json and index.html (default: runs/compare- and "
                   "the recipe's name)")
      ->type_name("DIR");
  command->add_flag("--json", a->as_json, "one JSON document on standard output at the end");
  command->callback([a] { run(*a); });
}

}  // namespace heddle::cli::compare_command
