// heddle plan: memory and time of a training, before it begins.
#include <fmt/core.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "data/dataset.h"
#include "find_recipe.h"
#include "heddle/error.h"
#include "print_json.h"
#include "report/numbers.h"
#include "train/plan_run.h"
#include "train/recipe.h"

namespace heddle::cli::plan_command {

namespace {

using nlohmann::json;

struct Arguments {
  RecipeArguments recipe;
  std::int64_t memory = 0;
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;
  bool as_json = false;
};

struct Answer {
  train::Recipe recipe;
  train::Plan plan;  // of the largest batch; its time is of the usual one
  train::ProcessMemory process;
  std::optional<std::int64_t> largest_batch;
  std::optional<std::int64_t> cache_bytes;  // of --context tokens
};

// The sizes that the data would decide.
void assume_sizes(train::Recipe& recipe, std::int64_t vocabulary, std::int64_t context) {
  model::ModelConfig& m = recipe.model;
  if (m.task == model::Task::classify || m.task == model::Task::tag)
    fail(ErrorCode::invalid_argument, "--vocabulary", "task of the recipe",
         "one without labels; leave --vocabulary out, so that they are counted in the data",
         model::to_string(m.task));
  m.sizes.vocabulary = vocabulary;
  if (!recipe.data.target_tokenizer.empty()) m.sizes.target_vocabulary = vocabulary;
  m.sizes.context = context;
}

Answer make(const Arguments& a) {
  Answer out;
  out.recipe = train::load_recipe(recipe_file(a.recipe), a.recipe.set);
  model::ModelConfig& m = out.recipe.model;
  train::BatchShapes shapes;
  std::unique_ptr<data::Dataset> data;
  if (a.vocabulary > 0) {
    shapes = train::batch_shapes(out.recipe);
    assume_sizes(out.recipe, a.vocabulary, shapes.largest.tokens);
  } else {
    data = train::open_data(out.recipe);
    train::take_sizes(out.recipe, *data);
    shapes = train::batch_shapes(*data, out.recipe.train);
  }
  const train::TrainConfig& t = out.recipe.train;
  if (a.context > 0) out.cache_bytes = train::cache_bytes(m, t.precision, a.context);
  if (out.cache_bytes == 0)
    fail(ErrorCode::invalid_argument, "--context", "model",
         "a decoder or an encoder-decoder, which keep the keys of earlier tokens",
         model::to_string(m.kind));
  const train::Plan without_time = train::plan_run(out.recipe, shapes);
  out.process = train::expect_process(without_time, data.get());  // before the probe takes memory
  out.plan = train::plan_run(out.recipe, shapes, train::measure_machine);
  if (a.memory > 0)
    out.largest_batch =
        train::largest_batch(m, t, shapes.largest, a.memory - out.process.besides_tensors())
            .value_or(0);
  return out;
}

json to_json(const Answer& answer) {
  const train::Plan& p = answer.plan;
  json j = train::to_json(p);
  j["process_peak_bytes"] = train::to_json(answer.process);
  j["steps"] = answer.recipe.train.steps;
  if (p.step_seconds > 0)
    j["total_seconds"] = p.step_seconds * static_cast<double>(answer.recipe.train.steps);
  if (answer.cache_bytes) j["kv_bytes"] = *answer.cache_bytes;
  if (answer.largest_batch) j["largest_batch"] = *answer.largest_batch;
  return j;
}

void line(const char* name, const std::string& value) { fmt::print("{:24} {}\n", name, value); }

void print_process(const train::ProcessMemory& p) {
  const auto bytes = [](const char* name, std::int64_t count) {
    line(name, report::bytes_text(static_cast<double>(count)));
  };
  bytes("the process, about", p.total());
  bytes("  tensors", p.tensors);
  bytes("  buffers of threads", p.thread_buffers);
  if (p.loading > 0) bytes("  data", p.data);
  bytes("  program, tokenizers", p.program);
  if (p.loading > 0) bytes("  while data is read", p.loading);
}

void print(const Answer& answer, const Arguments& a) {
  using report::bytes_text;
  const train::Plan& p = answer.plan;
  line("parameters", report::count_text(static_cast<double>(p.parameters)));
  line("arithmetic of a step", report::count_text(p.flops_per_step) + "FLOP");
  line("tensors of a step", bytes_text(static_cast<double>(p.memory.peak)));
  for (int i = 0; i < kPurposeCount; ++i)
    line(("  " + std::string(to_string(static_cast<Purpose>(i)))).c_str(),
         bytes_text(static_cast<double>(p.memory.at_peak[static_cast<std::size_t>(i)])));
  print_process(answer.process);
  if (p.step_seconds > 0) {
    line("time of a step, about", fmt::format("{:.3g} s", p.step_seconds));
    line(fmt::format("time of {} steps", answer.recipe.train.steps).c_str(),
         report::duration_text(p.step_seconds * static_cast<double>(answer.recipe.train.steps)));
  }
  if (p.kv_bytes_per_token > 0)
    line("cache per token", bytes_text(static_cast<double>(p.kv_bytes_per_token)));
  if (answer.cache_bytes)
    line(fmt::format("cache of {} tokens", a.context).c_str(),
         bytes_text(static_cast<double>(*answer.cache_bytes)));
  if (answer.largest_batch)
    line("largest batch that fits",
         *answer.largest_batch > 0 ? fmt::format("{}", *answer.largest_batch) : "none, not even 1");
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("plan", "memory, arithmetic and time of a training, before it begins");
  command->footer(
      "Arithmetic and the memory of tensors come from one step without numbers and are exact;\n"
      "with experts they are of the routing that needs most. The process has its code, the data\n"
      "and buffers besides. The time is an estimate from this machine's peak. With --vocabulary\n"
      "no data is read.\n"
      "Example: heddle plan llama-style --memory 8G");
  auto a = std::make_shared<Arguments>();
  declare_recipe(*command, a->recipe);
  command->add_option("--memory", a->memory, "find the largest batch whose process fits, as in 8G")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 60));
  command->add_option("--vocabulary", a->vocabulary, "take so many tokens and read no data")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31));
  command->add_option("--context", a->context, "say how large the cache of so many tokens is")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32));
  command->add_flag("--json", a->as_json, "one JSON document on standard output");
  command->callback([a] {
    const Answer answer = make(*a);
    if (a->as_json)
      cli::print_json(to_json(answer));
    else
      print(answer, *a);
  });
}

}  // namespace heddle::cli::plan_command
