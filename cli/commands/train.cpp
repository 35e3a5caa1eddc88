// heddle train: from a recipe to a run's directory.
#include <fmt/core.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/process_memory.h"
#include "command.h"
#include "find_recipe.h"
#include "heddle/runtime.h"
#include "io/files/file.h"
#include "io/shell_word.h"
#include "language/language.h"
#include "plan/plan_run.h"
#include "print_json.h"
#include "progress.h"
#include "recipe/shipped/shipped.h"
#include "report/page/numbers.h"
#include "report/run/live_report.h"
#include "run/recipe_file.h"
#include "run/unit.h"
#include "signals.h"
#include "tell.h"
#include "train/job.h"
#include "train/pace.h"

namespace heddle::cli::train_command {

namespace {

using nlohmann::json;
using recipe::Recipe;
using train::Ending;
using train::Job;
using train::Outcome;

struct Arguments {
  RecipeArguments recipe;
  std::string out;
  bool resume = false;
  bool as_json = false;
};

std::string run_directory(const Arguments& a) {
  if (!a.out.empty()) return a.out;
  if (run::is_run(a.recipe.given)) return a.recipe.given;
  return (std::filesystem::path("runs") / recipe_name(a.recipe)).string();
}

std::string how_to_resume(const Job& job) {
  return fmt::format("heddle train {} --resume", io::shell_word(job.paths().directory));
}

class Display {
 public:
  // `shipped`: the name of the recipe, where it is one of those inside the program.
  Display(const Job& job, const std::string& shipped)
      : steps_(job.recipe().train.steps),
        unit_(run::unit_read(job.model().config(), job.data().codec())) {
    if (!shipped.empty()) line_.say(tr("recipe: {}, from inside this program", shipped));
    std::string summary = job.data().summary();
    while (summary.ends_with("\n")) summary.pop_back();
    if (!summary.empty()) line_.say(summary);
    if (!job.recipe().compare.empty())
      line_.say(tr("[compare] is not for training: heddle compare trains its variants"));
    for (const std::string& sentence : job.adopted()) line_.say(tr("fine-tuning: {}", sentence));
    const std::string parameters =
        report::count_text(static_cast<double>(job.model().parameters().count()));
    const char* type = job.recipe().train.precision == DType::bf16 ? "bf16" : "fp32";
    line_.say(threads() == 1 ? tr("{} parameters, {}, 1 thread, {}; writing to {}", parameters,
                                  type, instruction_set(), job.paths().directory)
                             : tr("{} parameters, {}, {} threads, {}; writing to {}", parameters,
                                  type, threads(), instruction_set(), job.paths().directory));
  }

  void show(const train::StepReport& r) {
    pace_.add(r);
    std::string text =
        tr("step {}/{}  loss {:.4f}  {}", r.step, steps_, pace_.loss(),
           unit_.rate_told(report::count_text(unit_.count(pace_.tokens_per_second()))));
    if (peak_) text += "  " + tr("{:.0f}% of peak", 100 * pace_.share_of_peak(*peak_));
    text += "  " + report::bytes_text(r.peak_bytes);
    if (r.step == steps_) {
      line_.show_last(text);
      return;
    }
    const double left = pace_.seconds() * static_cast<double>(steps_ - r.step);
    line_.show(text + "  " + tr("{} left", report::duration_text(left)));
  }

  void show(const train::EvalReport& r) {
    std::string text = tr("step {}: validation loss {:.4f}, perplexity {:.4g}", r.step,
                          r.result.loss, r.result.perplexity);
    if (r.result.accuracy) text += tr(", accuracy {:.2f}%", 100 * *r.result.accuracy);
    line_.say(r.best ? text + line_.styled(tr(" (best)"), "32") : text);
  }

  // The peak that steps are held against from now on.
  void set_peak(std::optional<double> flops) { peak_ = flops; }

  ProgressLine& line() { return line_; }

 private:
  ProgressLine line_;
  std::int64_t steps_;
  run::Unit unit_;
  std::optional<double> peak_;
  train::Pace pace_;
};

const char* name_of(Ending ending) {
  switch (ending) {
    case Ending::finished: return "finished";
    case Ending::patience: return "patience";
    case Ending::stopped: return "stopped";
  }
  return "unknown";
}

json to_json(const Job& job, const Outcome& o) {
  json j = {{"directory", job.paths().directory},
            {"ending", name_of(o.ending)},
            {"step", o.state.step},
            {"tokens", o.state.tokens},
            {"seconds", o.state.seconds},
            {"parameters", job.model().parameters().count()}};
  if (o.peak_bytes > 0) j["peak_bytes"] = o.peak_bytes;
  if (const std::int64_t peak = resident_peak(); peak > 0) j["process_peak_bytes"] = peak;
  if (o.state.best_step > 0) {
    j["best_loss"] = o.state.best_loss;
    j["best_step"] = o.state.best_step;
  }
  if (o.last_evaluation) j["eval_loss"] = o.last_evaluation->loss;
  if (o.last_evaluation && o.last_evaluation->accuracy)
    j["accuracy"] = *o.last_evaluation->accuracy;
  return j;
}

void print(const Job& job, const Outcome& o) {
  if (o.ending == Ending::patience)
    fmt::print("{}\n", o.state.stale == 1
                           ? tr("stopped early: no better validation loss for 1 evaluation")
                           : tr("stopped early: no better validation loss for {} evaluations",
                                o.state.stale));
  if (o.state.best_step > 0)
    fmt::print("{}\n",
               tr("best validation loss {:.4f} at step {}", o.state.best_loss, o.state.best_step));
  const run::Unit unit = run::unit_read(job.model().config(), job.data().codec());
  const std::string read =
      unit.told(report::count_text(unit.count(static_cast<double>(o.state.tokens))));
  const std::string time = report::duration_text(o.state.seconds);
  fmt::print("{}\n{}\n{}\n",
             o.state.step == 1 ? tr("1 step, {} in {}", read, time)
                               : tr("{} steps, {} in {}", o.state.step, read, time),
             job.paths().weights(), job.paths().report());
}

// It ran and failed: whatever went wrong now is no fault of the command line.
[[noreturn]] void end_failed(const Job& job, const Error& e) {
  const std::string directory = io::shell_word(job.paths().directory);
  const bool hopeless = e.code() == ErrorCode::failed;
  tell("heddle: {}\n", e.what());
  if (hopeless && !job.has_saved())
    tell("{}\n", tr("the same recipe would come to the same step: change it; nothing was saved; {} "
                    "is free again",
                    directory));
  else if (!job.has_saved())
    tell("{}\n", tr("nothing was saved; {} is free again", directory));
  else if (hopeless && !io::file_exists(job.paths().weights()))
    tell("{}\n", tr("the same recipe would come to the same step: change it and use another --out; "
                    "{} has its log and no weights",
                    directory));
  else if (hopeless)
    tell("{}\n", tr("the same recipe would come to the same step: change it and use another --out "
                    "(--set train.from={} begins with the weights in it)",
                    directory));
  else
    tell("{}\n", tr("what was saved is whole; to go on: {}", how_to_resume(job)));
  throw ExitStatus{1};
}

Outcome run_job(Job& job, Display& display, report::LiveReport& page) {
  train::Hooks hooks;
  hooks.on_step = [&](const train::StepReport& r) {
    display.show(r);
    page.stepped();
  };
  hooks.on_eval = [&](const train::EvalReport& r) {
    display.show(r);
    page.evaluated();
  };
  hooks.on_damage = [&display](const std::string& sentence) { display.line().say(sentence); };
  hooks.should_stop = [] { return caught_signal() != 0; };
  bool began = false;
  hooks.on_begin = [&began](const run::TrainState&) { began = true; };
  try {
    return job.run(hooks);
  } catch (const Error& e) {
    if (!began) throw;
    display.line().finish();
    if (job.has_saved()) page.end(report::RunState::stopped);
    end_failed(job, e);
  }
}

report::RunState state_after(Ending ending) {
  switch (ending) {
    case Ending::finished: return report::RunState::finished;
    case Ending::patience: return report::RunState::patience;
    case Ending::stopped: break;
  }
  return report::RunState::stopped;
}

std::string nothing_yet() {
  return tr("heddle: interrupted before the first step; nothing to resume") + "\n";
}

void train_and_tell(Job& job, const Arguments& a) {
  const bool ships = recipe::shipped_text(recipe_file(a.recipe)).has_value();
  Display display(job, ships ? recipe_name(a.recipe) : "");
  const auto say = [&display](const std::string& sentence) { display.line().say(sentence); };
  const auto machine = job.write_plan(plan::measure_machine, say);
  if (!a.as_json) display.set_peak(plan::peak_flops(job.recipe().train, machine));
  report::LiveReport page(job.paths().directory, say);
  const Outcome outcome = run_job(job, display, page);
  display.line().finish();
  if (outcome.state.step == 0 && !a.resume) {
    tell("{}", nothing_yet());
    throw ExitStatus{128 + caught_signal()};
  }
  page.end(state_after(outcome.ending));
  if (a.as_json)
    cli::print_json(to_json(job, outcome));
  else if (outcome.ending != Ending::stopped)
    print(job, outcome);
  if (outcome.ending != Ending::stopped) return;
  tell("{}\n", tr("stopped at step {}; to go on: {}", outcome.state.step, how_to_resume(job)));
  throw ExitStatus{128 + caught_signal()};
}

void run(const Arguments& a) {
  end_on_signals(a.resume
                     ? tr("heddle: interrupted before the first step; the run is as it was") + "\n"
                     : nothing_yet());
  Recipe recipe = run::load_recipe(recipe_file(a.recipe), a.recipe.set);
  const std::string directory = run_directory(a);
  Job job = a.resume ? Job::resume(std::move(recipe), directory)
                     : Job::begin(std::move(recipe), directory, catch_signals);
  if (a.resume) catch_signals();
  train_and_tell(job, a);
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "train a model from a recipe");
  command->footer(
      "Examples:\n"
      "  heddle train char-gpt --set data.text=input.txt --set train.steps=500\n"
      "  heddle train my.toml --out runs/mine\n"
      "  heddle train runs/char-gpt --resume");
  auto a = std::make_shared<Arguments>();
  declare_recipe(*command, a->recipe);
  declare_device(*command, a->recipe);
  command
      ->add_option("--out", a->out, "directory of the run (default: runs/ and the recipe's name)")
      ->type_name("DIR");
  command->add_flag("--resume", a->resume,
                    "go on with the run in the directory, at its newest checkpoint");
  command->add_flag("--json", a->as_json, "one JSON document on standard output at the end");
  command->callback([a] { run(*a); });
}

}  // namespace heddle::cli::train_command
