// heddle compare: variants of a recipe, trained in turns, and what differs.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "command.h"
#include "commit.h"
#include "compare/comparison.h"
#include "compare/results.h"
#include "distributed/launcher.h"
#include "find_recipe.h"
#include "help/help.h"
#include "io/files/checksums/seal.h"
#include "io/files/file.h"
#include "language/language.h"
#include "language/layout.h"
#include "print_json.h"
#include "progress.h"
#include "report/compare/compare.h"
#include "report/page/numbers.h"
#include "share_threads.h"
#include "signals.h"
#include "tell.h"

namespace heddle::cli::compare_command {

namespace {

using compare::Comparison;
using compare::ComparisonResults;

struct Arguments {
  RecipeArguments recipe;
  compare::ComparisonSpec spec;  // without the recipe and what is set in it
  std::int64_t seeds = 0;
  bool as_json = false;
};

using Row = std::vector<std::string>;

std::string bytes_or_none(std::int64_t bytes) {
  return bytes > 0 ? report::bytes_text(static_cast<double>(bytes)) : "-";
}

// A column of steps only where it tells something: under --budget steps they are all the same.
std::vector<Row> table_of(const ComparisonResults& r) {
  const bool with_steps = r.unequal_steps();
  std::vector<Row> rows = {
      {tr("variant"), r.validation ? tr("validation loss") : tr("training loss")}};
  if (with_steps) rows[0].push_back(tr("steps"));
  const std::string rate = r.unit_of(r.variants[0]).rate_title();
  rows[0].insert(rows[0].end(), {tr("time/step"), rate, tr("memory"), tr("cache per token")});
  for (std::size_t i = 0; i < r.variants.size(); ++i) {
    const compare::VariantResult& v = r.variants[i];
    Row row = {v.name + (r.best == i ? " *" : ""), report::loss_text(v)};
    if (with_steps) row.push_back(fmt::format("{}", v.steps));
    const bool timed = v.step_seconds > 0;
    row.push_back(timed ? report::time_text(v) : "-");
    row.push_back(timed ? report::count_text(r.unit_of(v).count(v.tokens_per_s)) : "-");
    row.push_back(bytes_or_none(v.peak_bytes));
    row.push_back(bytes_or_none(v.kv_bytes_per_token));
    rows.push_back(std::move(row));
  }
  return rows;
}

// Where a terminal is too narrow for all columns, the rest follows below, with the first `names`
// columns, which say what a row is about, once more.
void print(const std::vector<Row>& rows, std::size_t names) {
  const std::size_t columns = rows[0].size();
  std::vector<std::size_t> widths(columns);
  for (std::size_t c = 0; c < columns; ++c)
    for (const Row& row : rows) widths[c] = std::max(widths[c], columns_of(row[c]));
  const auto append = [&](Row& lines, std::size_t c) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      lines[i] += c < names ? (c == 0 ? "" : "  ") + padded(rows[i][c], widths[c])
                            : "  " + padded_left(rows[i][c], widths[c]);
  };
  for (std::size_t next = names; next < columns;) {
    if (next > names) fmt::print("\n");
    Row lines(rows.size());
    for (std::size_t c = 0; c < names; ++c) append(lines, c);
    const auto fits = [&] {
      return next < columns && columns_of(lines[0]) + 2 + widths[next] <= terminal_columns();
    };
    do {
      append(lines, next);
      ++next;
    } while (fits());
    for (const std::string& line : lines) fmt::print("{}\n", line);
  }
}

void print_wrapped(const std::string& text) {
  fmt::print("{}\n", wrapped(text, help_columns() - 2, 2));
}

void print(const ComparisonResults& r) {
  print(table_of(r), 1);
  fmt::print("\n");
  print_wrapped(report::figures_note(r, "*"));
  fmt::print("\n");
  for (const compare::VariantResult& v : r.variants)
    if (!v.diverged.empty()) print_wrapped(report::divergence_in_words(v, r.seeds));
  bool suggests = false;
  for (const compare::PairResult& p : r.pairs) {
    if (p.a != r.base()) continue;
    const std::string seeds = report::seeds_in_words(p, r);
    print_wrapped(sentences(report::in_words(p, r), seeds));
    suggests = suggests || !seeds.empty();
  }
  if (!r.effects.empty()) {
    fmt::print("\n");
    print_wrapped(report::effects_note(r));
    print(report::effects_table(r), 2);
  }
  if (r.pairs.empty()) return;
  fmt::print("\n");
  print_wrapped(report::noise_note(r));
  if (suggests) print_wrapped(report::seeds_formula());
}

// The runs of the others are known by their number alone.
std::string share_of_ranks(std::int64_t done, std::int64_t runs) {
  return tr("{} of {} runs done", done, runs);
}

void show(ProgressLine& line, const compare::TurnReport& t) {
  // The name stands last: a narrow terminal cuts what is too long.
  std::string text = t.runs > 0 ? share_of_ranks(t.runs_done, t.runs)
                                : fmt::format("{:3.0f}%", 100 * t.share_done);
  if (t.seconds_left > 0) text += "  " + tr("{} left", report::duration_text(t.seconds_left));
  text += "  " + tr("round {}/{}", t.round, t.rounds);
  text += "  " + tr("step {}/{}  loss {:.4f}  {:.3g} ms", t.step.step, t.steps, t.step.loss,
                    1e3 * t.step.seconds);
  if (t.seeds > 1) text += "  " + tr("seed {}", t.seed);
  line.show(text + "  " + t.variant->name);
}

// What a rank other than the first says is of its own doing: progress is told by rank 0 alone.
void complain(const compare::Team* team, const std::string& what) {
  const bool named = team != nullptr && team->rank() > 0;
  tell("heddle: {}{}\n", named ? "rank " + std::to_string(team->rank()) + ": " : "", what);
}

bool run_turns(Comparison& comparison, ProgressLine& line) {
  const bool speaks = comparison.team() == nullptr || comparison.team()->rank() == 0;
  compare::ComparisonHooks hooks;
  if (speaks) {
    hooks.on_step = [&line](const compare::TurnReport& t) { show(line, t); };
    hooks.on_wait = [&line](std::int64_t done, std::int64_t runs) {
      line.show(sentences(share_of_ranks(done, runs), tr("(other ranks are at the rest)")));
    };
  }
  hooks.machine = plan::measure_machine;
  hooks.on_note = [&line](const std::string& sentence) {
    line.say(line.live() ? wrapped(sentence, help_columns() - 2, 2) : sentence);
  };
  hooks.should_stop = [] { return caught_signal() != 0; };
  try {
    return comparison.run(hooks);
  } catch (const Error& e) {
    line.finish();
    complain(comparison.team(), e.what());
    if (speaks) tell("{}\n", tr("what was saved is whole; the same command again goes on"));
    throw ExitStatus{1};
  }
}

// Version, commit and the sum of the program's file: builds differ in more than they say.
std::string program_sum() {
  return std::string("heddle " HEDDLE_VERSION " ") + commit() + " sum " +
         io::crc32_of(io::read_whole("/proc/self/exe", std::size_t{1} << 31));
}

Comparison open_comparison(compare::ComparisonSpec spec, const compare::Seat& seat) {
  try {
    return Comparison(std::move(spec), seat);
  } catch (const Error& e) {
    if (seat.rank == 0) throw;
    // Rank 0 says the same, where it is there, and a launcher ends all when the first has ended.
    std::this_thread::sleep_for(std::chrono::seconds(3));
    tell("heddle: rank {}: {}\n", seat.rank, e.what());
    throw ExitStatus{e.code() == ErrorCode::failed || e.code() == ErrorCode::out_of_memory ? 1 : 2};
  }
}

compare::Seat take_seat() {
  const distributed::Launch launch = distributed::launch();
  if (!launch.distributed()) return {};
  share_threads(launch);
  return {.rank = launch.rank, .ranks = launch.size, .program = program_sum()};
}

void announce(const Comparison& comparison, ProgressLine& line) {
  const std::string& out = comparison.spec().out;
  const std::size_t variants = comparison.variants().size();
  const std::string& budget = comparison.budget().text;
  line.say(comparison.seeds() == 1
               ? tr("{} variants x 1 seed, {} each; writing to {}", variants, budget, out)
               : tr("{} variants x {} seeds, {} each; writing to {}", variants, comparison.seeds(),
                    budget, out));
  if (comparison.team() == nullptr) return;
  const int ranks = comparison.team()->ranks(), there = comparison.ranks_there();
  line.say(
      tr("{} ranks; each run is trained by one of them, and times are not taken in turns", ranks));
  if (there < ranks)
    line.say(tr("{} of them are not there yet, and are not waited for any longer", ranks - there));
}

// All ranks stop when one is asked to, with its signal.
[[noreturn]] void end_stopped(const Comparison& comparison) {
  int signal = caught_signal();
  const compare::Team* team = comparison.team();
  if (team != nullptr) {
    if (signal != 0) team->ask_to_stop(signal);
    signal = team->stop_signal();
  }
  if (team == nullptr || team->rank() == 0)
    tell("{}\n", tr("stopped; the same command again goes on"));
  if (team != nullptr) team->end_together();
  throw ExitStatus{128 + signal};
}

// Of several ranks one tells the results; the others go when it has.
bool tells(const Comparison& comparison) {
  const compare::Team* team = comparison.team();
  if (team == nullptr) return true;
  const bool told = !team->is_teller([] { return caught_signal() != 0; });
  if (told && caught_signal() != 0) end_stopped(comparison);
  if (!told && team->rank() > 0)
    tell("{}\n", tr("rank {} tells the results: those before it are gone", team->rank()));
  return !told;
}

void tell_results(const Comparison& comparison, bool as_json) {
  const std::string& out = comparison.spec().out;
  const ComparisonResults results = compare::collect(comparison);
  compare::write_results(out, results);
  const std::string page = report::write_comparison_report(out, results);
  if (as_json)
    cli::print_json(compare::to_json(results));
  else {
    print(results);
    fmt::print("{}\n", page);
  }
  if (comparison.team() != nullptr) {
    std::fflush(stdout);
    comparison.team()->set_told();
    comparison.team()->end_together();
  }
  if (!results.best) throw ExitStatus{1};  // all diverged
}

void run(const Arguments& a) {
  compare::ComparisonSpec spec = a.spec;
  spec.recipe = recipe_file(a.recipe);
  spec.set = a.recipe.set;
  for (std::string& other : spec.also) other = recipe_file(other);
  if (spec.out.empty()) spec.out = "runs/compare-" + recipe_name(a.recipe);
  if (a.seeds > 0) spec.seeds = a.seeds;
  const compare::Seat seat = take_seat();
  const std::string words =
      tr("heddle: interrupted before the first step; the same command again begins") + "\n";
  end_on_signals(seat.rank == 0 ? words : "");
  Comparison comparison = open_comparison(std::move(spec), seat);
  catch_signals();
  ProgressLine line;
  if (seat.rank == 0) announce(comparison, line);
  const bool finished = run_turns(comparison, line);
  line.finish();
  if (!finished) end_stopped(comparison);
  if (tells(comparison))
    tell_results(comparison, a.as_json);
  else
    comparison.team()->end_together();
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
      "      --budget steps=200 --out runs/kv-heads\n"
      "  mpirun -np 8 heddle compare rope-gqa     runs dealt out to eight processes");
  auto a = std::make_shared<Arguments>();
  declare_recipe(*command, a->recipe);
  declare_device(*command, a->recipe);
  command->add_option("--vary", a->spec.vary, "values to compare: model.attention.kv_heads=1,2,6")
      ->type_name("KEY=A,B,C")
      ->allow_extra_args(false);
  command->add_option("--also", a->spec.also, "another recipe on the same data as a variant")
      ->type_name("RECIPE")
      ->allow_extra_args(false);
  command->add_option("--seeds", a->seeds, "seeds of each variant, from train.seed on (default: 1)")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--budget", a->spec.budget,
                   "of each variant: steps=200, tokens=1M, time=60s or flops=1e12 (default: the "
                   "recipe's train.steps)")
      ->type_name("UNIT=AMOUNT");
  command
      ->add_option("--out", a->spec.out,
                   "directory for runs, results.json and index.html (default: runs/compare- and "
                   "the recipe's name)")
      ->type_name("DIR");
  command->add_flag("--json", a->as_json, "one JSON document on standard output at the end");
  command->callback([a] { run(*a); });
}

}  // namespace heddle::cli::compare_command
