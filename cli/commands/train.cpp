// heddle train: from a recipe to a run's directory.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <thread>

#include "base/process_memory.h"
#include "command.h"
#include "distributed/communicator.h"
#include "distributed/launcher.h"
#include "distributed/open_transport.h"
#include "find_recipe.h"
#include "heddle/runtime.h"
#include "io/files/file.h"
#include "io/shell_word.h"
#include "language/language.h"
#include "plan/plan_run.h"
#include "print_json.h"
#include "progress.h"
#include "reading_line.h"
#include "recipe/shipped/shipped.h"
#include "report/page/numbers.h"
#include "report/run/live_report.h"
#include "run/recipe_file.h"
#include "run/unit.h"
#include "share_threads.h"
#include "signals.h"
#include "tell.h"
#include "train/job.h"
#include "train/pace.h"
#include "train/shared_recipe.h"

namespace heddle::cli::train_command {

namespace {

using nlohmann::json;
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

// The ranks of this run, and what was decided for them.
struct Ranks {
  distributed::Communicator group = {};
  std::optional<std::int64_t> chosen_parts = {};
  bool in_order = true;  // they end at the same place

  void tell(ProgressLine& line, const recipe::TrainConfig& train) const {
    const std::int64_t parts = train.parts.value_or(1);
    if (group.alone()) return;
    line.say(tr("{} ranks over {}; a batch is computed in {} parts", group.size(), group.engine(),
                parts));
    if (chosen_parts)
      line.say(tr("the recipe has no train.parts: this run takes {}, and keeps it in its recipe",
                  *chosen_parts));
    if (group.size() > parts)
      line.say(tr("{} of the ranks have nothing to compute: a batch has {} parts (train.parts)",
                  group.size() - parts, parts));
  }

  // The signal that stopped the run: of whichever rank caught one.
  int signal() {
    const int mine = caught_signal();
    const auto all = group.all_gather_values(std::span(&mine, 1), "asking for the signal");
    return *std::ranges::max_element(all);
  }
};

distributed::Communicator join(const distributed::Launch& launch) {
  if (!launch.distributed()) return {};
  share_threads(launch);
  try {
    return distributed::Communicator(distributed::open_transport(launch));
  } catch (const Error& e) {
    if (launch.rank == 0) throw;
    // Where rank 0 cannot join either it says the same, and a launcher ends all when the first one
    // has ended. Who is still here then is alone with it.
    std::this_thread::sleep_for(std::chrono::seconds(3));
    tell("heddle: rank {}: {}\n", launch.rank, e.what());
    throw ExitStatus{2};
  }
}

class Display {
 public:
  // `shipped`: the name of the recipe, where it is one of those inside the program.
  Display(const Job& job, const std::string& shipped, const Ranks& ranks)
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
    ranks.tell(line_, job.recipe().train);
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
  const bool told = dynamic_cast<const distributed::PeerFailed*>(&e) != nullptr;
  const bool hopeless = dynamic_cast<const train::Diverged*>(&e) != nullptr;
  if (!told) tell("heddle: {}\n", e.what());
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

Outcome run_job(Job& job, Display& display, report::LiveReport& page, Ranks& ranks) {
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
    // All ranks come to the same loss.
    ranks.in_order = ranks.group.all_know() || dynamic_cast<const train::Diverged*>(&e) != nullptr;
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

void train_and_tell(Job& job, const Arguments& a, Ranks& ranks) {
  const bool ships = recipe::shipped_text(recipe_file(a.recipe)).has_value();
  Display display(job, ships ? recipe_name(a.recipe) : "", ranks);
  const auto say = [&display](const std::string& sentence) { display.line().say(sentence); };
  const auto machine = job.write_plan(plan::measure_machine, say);
  if (!a.as_json) display.set_peak(plan::peak_flops(job.recipe().train, machine));
  report::LiveReport page(job.paths().directory, say);
  const Outcome outcome = run_job(job, display, page, ranks);
  display.line().finish();
  const int signal = outcome.ending == Ending::stopped ? ranks.signal() : 0;
  if (outcome.state.step == 0 && !a.resume) {
    tell("{}", nothing_yet());
    throw ExitStatus{128 + signal};
  }
  page.end(state_after(outcome.ending));
  if (a.as_json)
    cli::print_json(to_json(job, outcome));
  else if (outcome.ending != Ending::stopped)
    print(job, outcome);
  if (outcome.ending != Ending::stopped) return;
  tell("{}\n", tr("stopped at step {}; to go on: {}", outcome.state.step, how_to_resume(job)));
  throw ExitStatus{128 + signal};
}

// Ranks other than the first write and say nothing.
void train_beside(Job& job, Ranks& ranks) {
  train::Hooks hooks;
  hooks.should_stop = [] { return caught_signal() != 0; };
  bool began = false;
  hooks.on_begin = [&began](const run::TrainState&) { began = true; };
  try {
    if (job.run(hooks).ending == Ending::stopped) throw ExitStatus{128 + ranks.signal()};
  } catch (const train::Diverged&) {  // as rank 0 says
    throw ExitStatus{1};
  } catch (const distributed::PeerFailed&) {
    if (!began) throw;
    throw ExitStatus{1};
  }
}

void run_as_rank(const Arguments& a, Ranks& ranks) {
  const std::string directory = run_directory(a);
  train::SharedRecipe shared = train::share_recipe(
      ranks.group,
      [&a](const std::vector<std::string>& overrides) {
        std::vector<std::string> set = a.recipe.set;
        set.insert(set.end(), overrides.begin(), overrides.end());
        return run::load_recipe(recipe_file(a.recipe), set);
      },
      a.resume ? directory : "");
  ranks.chosen_parts = shared.chosen_parts;
  std::optional<Job> job;
  ranks.group.together("opening the run", [&] {
    ReadingLine line;
    const data::ReadingSink reading = ranks.group.is_first() ? line.sink() : data::ReadingSink();
    job.emplace(a.resume ? Job::resume(std::move(shared.recipe), directory, &ranks.group, reading)
                         : Job::begin(std::move(shared.recipe), directory, catch_signals,
                                      &ranks.group, reading));
  });
  if (a.resume) catch_signals();
  if (ranks.group.is_first())
    train_and_tell(*job, a, ranks);
  else
    train_beside(*job, ranks);
}

int status_of(const Error& e) {
  return e.code() == ErrorCode::failed || e.code() == ErrorCode::out_of_memory ? 1 : 2;
}

void run(const Arguments& a) {
  const distributed::Launch launch = distributed::launch();
  const std::string words =
      a.resume ? tr("heddle: interrupted before the first step; the run is as it was") + "\n"
               : nothing_yet();
  end_on_signals(launch.rank == 0 ? words : "");
  Ranks ranks{join(launch)};
  // In order, where all of them end here; otherwise the others see that this one is gone.
  try {
    run_as_rank(a, ranks);
  } catch (const ExitStatus&) {
    if (ranks.in_order) ranks.group.leave();
    throw;
  } catch (const distributed::PeerFailed& e) {  // which has said why
    ranks.group.leave();
    throw ExitStatus{status_of(e)};
  } catch (const Error& e) {
    if (ranks.group.alone()) throw;
    const bool named = dynamic_cast<const distributed::RankLost*>(&e) != nullptr;
    tell("heddle: {}{}\n",
         named || launch.rank == 0 ? "" : "rank " + std::to_string(launch.rank) + ": ", e.what());
    // Said before the others can end: a launcher ends all when the first one has ended.
    if (ranks.group.all_know()) ranks.group.leave();
    throw ExitStatus{status_of(e)};
  }
  ranks.group.leave();
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "train a model from a recipe");
  command->footer(
      "Examples:\n"
      "  heddle train char-gpt --set data.text=input.txt --set train.steps=500\n"
      "  heddle train my.toml --out runs/mine\n"
      "  heddle train runs/char-gpt --resume\n"
      "  mpirun -np 4 heddle train my.toml      on four processes, to the same bits");
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
