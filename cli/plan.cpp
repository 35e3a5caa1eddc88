// heddle plan: memory and time of a training, before it begins.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu/probe/probe.h"
#include "command.h"
#include "data/dataset.h"
#include "data/job.h"
#include "report/numbers.h"
#include "train/plan.h"
#include "train/recipe.h"

namespace heddle::cli {

namespace {

using nlohmann::json;

// Batches of an epoch that are looked at for their shapes.
constexpr std::int64_t kLookedAt = 64;

struct Arguments {
  std::string recipe;
  std::vector<std::string> set;
  std::uint64_t memory = 0;
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;
  bool as_json = false;
};

struct Shapes {
  train::BatchShape largest;  // memory is for the worst of them,
  train::BatchShape mean;     // time for the usual one
};

std::int64_t columns(const Tensor& t) { return t.defined() ? t.size(1) : 0; }

// Texts have one shape; sentences have many.
Shapes shapes_of(const data::Dataset& data, const train::TrainConfig& config) {
  Shapes s;
  const std::int64_t steps = std::min(kLookedAt, data.epoch_steps(config.batch));
  std::int64_t tokens = 0, targets = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const model::Batch b = data.training_batch(step, config.batch, config.seed);
    s.largest.tokens = std::max(s.largest.tokens, columns(b.tokens));
    s.largest.target_tokens = std::max(s.largest.target_tokens, columns(b.target_tokens));
    tokens += columns(b.tokens);
    targets += columns(b.target_tokens);
    s.largest.documents = b.documents.defined();
  }
  s.mean = {config.batch, (tokens + steps / 2) / steps, (targets + steps / 2) / steps,
            s.largest.documents};
  s.largest.sequences = config.batch;
  return s;
}

// Without reading any data: what the recipe alone says.
Shapes shapes_of(const train::Recipe& recipe) {
  const data::DataConfig& d = recipe.data;
  const std::int64_t tokens =
      d.context > 0 ? d.context : d.max_length.value_or(data::kDefaultMaxLength);
  const train::BatchShape shape{recipe.train.batch, tokens, tokens,
                                d.documents != data::Documents::none};
  return {shape, shape};
}

train::MachineSpeed measure_machine(DType precision) {
  const auto probe = cpu::fastest_probe(precision);
  if (!probe) return {};
  return {train::kProductShare * cpu::peak_flops(*probe, 0.1), cpu::read_bandwidth(0.1)};
}

struct Answer {
  train::Recipe recipe;
  train::Plan plan;  // of the largest batch; its time is of the usual one
  std::optional<std::int64_t> largest_batch;
};

Answer make(const Arguments& a) {
  Answer out;
  out.recipe = train::load_recipe(a.recipe, a.set);
  model::ModelConfig& m = out.recipe.model;
  Shapes shapes;
  if (a.vocabulary > 0) {
    shapes = shapes_of(out.recipe);
    m.sizes.vocabulary = a.vocabulary;
    m.sizes.context = shapes.largest.tokens;
  } else {
    const auto data = data::open_dataset(out.recipe.data, m.kind, m.task);
    m.sizes = data->codec().sizes();
    shapes = shapes_of(*data, out.recipe.train);
  }
  const train::TrainConfig& t = out.recipe.train;
  out.plan = train::plan_training(m, t, shapes.largest);
  out.plan.step_seconds =
      train::plan_training(m, t, shapes.mean, measure_machine(t.precision)).step_seconds;
  if (a.memory > 0)
    out.largest_batch =
        train::largest_batch(m, t, shapes.largest, static_cast<std::int64_t>(a.memory)).value_or(0);
  return out;
}

json to_json(const Answer& answer, const Arguments& a) {
  const train::Plan& p = answer.plan;
  json bytes = {{"total", p.memory.peak}};
  for (int i = 0; i < kPurposeCount; ++i)
    bytes[std::string(to_string(static_cast<Purpose>(i)))] =
        p.memory.at_peak[static_cast<std::size_t>(i)];
  json j = {{"parameters", p.parameters},
            {"flops_per_step", p.flops_per_step},
            {"peak_bytes", bytes},
            {"steps", answer.recipe.train.steps}};
  if (p.step_seconds > 0) {
    j["step_seconds"] = p.step_seconds;
    j["total_seconds"] = p.step_seconds * static_cast<double>(answer.recipe.train.steps);
  }
  if (p.kv_bytes_per_token > 0) {
    j["kv_bytes_per_token"] = p.kv_bytes_per_token;
    if (a.context > 0) j["kv_bytes"] = p.kv_bytes_per_token * a.context;
  }
  if (answer.largest_batch) j["largest_batch"] = *answer.largest_batch;
  return j;
}

void print(const Answer& answer, const Arguments& a) {
  using report::bytes_text;
  const train::Plan& p = answer.plan;
  const auto line = [](const char* name, const std::string& value) {
    fmt::print("{:24} {}\n", name, value);
  };
  line("parameters", report::count_text(static_cast<double>(p.parameters)));
  line("arithmetic of a step", report::count_text(p.flops_per_step) + "FLOP");
  line("memory at the peak", bytes_text(static_cast<double>(p.memory.peak)));
  for (int i = 0; i < kPurposeCount; ++i)
    line(("  " + std::string(to_string(static_cast<Purpose>(i)))).c_str(),
         bytes_text(static_cast<double>(p.memory.at_peak[static_cast<std::size_t>(i)])));
  if (p.step_seconds > 0) {
    line("time of a step, about", fmt::format("{:.3g} s", p.step_seconds));
    line(fmt::format("time of {} steps", answer.recipe.train.steps).c_str(),
         report::duration_text(p.step_seconds * static_cast<double>(answer.recipe.train.steps)));
  }
  if (p.kv_bytes_per_token > 0) {
    line("cache per token", bytes_text(static_cast<double>(p.kv_bytes_per_token)));
    if (a.context > 0)
      line(fmt::format("cache of {} tokens", a.context).c_str(),
           bytes_text(static_cast<double>(p.kv_bytes_per_token * a.context)));
  }
  if (answer.largest_batch)
    line("largest batch that fits",
         *answer.largest_batch > 0 ? fmt::format("{}", *answer.largest_batch) : "none, not even 1");
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("plan", "memory, arithmetic and time of a training, before it begins");
  command->footer(
      "Memory and arithmetic come from one step without numbers and are exact; the time is an\n"
      "estimate from this machine's peak. With --vocabulary no data is read.\n"
      "Example: heddle plan recipes/llama-style.toml --memory 8G");
  auto a = std::make_shared<Arguments>();
  command->add_option("recipe", a->recipe, "the recipe")->required();
  command->add_option("--set", a->set, "key=value, instead of what the recipe says")
      ->type_name("KEY=VALUE");
  command->add_option("--memory", a->memory, "find the largest batch that fits, as in 8G")
      ->transform(CLI::AsSizeValue(false));
  command->add_option("--vocabulary", a->vocabulary, "take so many tokens and read no data")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31));
  command->add_option("--context", a->context, "say how large the cache of so many tokens is")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command->add_flag("--json", a->as_json, "one JSON document on standard output");
  command->callback([a] {
    const Answer answer = make(*a);
    if (a->as_json)
      std::cout << to_json(answer, *a).dump(2) << "\n";
    else
      print(answer, *a);
  });
}

}  // namespace heddle::cli
