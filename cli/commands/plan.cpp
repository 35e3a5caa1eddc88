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

#include "command.h"
#include "data/dataset.h"
#include "find_recipe.h"
#include "heddle/error.h"
#include "language/language.h"
#include "plan/link.h"
#include "plan/plan_run.h"
#include "print_json.h"
#include "reading_line.h"
#include "recipe/recipe.h"
#include "report/page/numbers.h"
#include "run/recipe_file.h"
#include "tensor/engine.h"

namespace heddle::cli::plan_command {

namespace {

using nlohmann::json;

struct Arguments {
  RecipeArguments recipe;
  std::int64_t memory = 0;
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;
  int ranks = 0;  // 0: not said
  std::string link, latency, flops;
  bool as_json = false;
};

struct Answer {
  recipe::Recipe recipe;
  plan::Forecast forecast;
  plan::Fit fit;
  std::optional<std::int64_t> cache_bytes;  // of --context tokens
  std::optional<plan::Link> link;
  plan::Scaling scaling;  // with a link
};

// The sizes that the data would decide.
void assume_sizes(recipe::Recipe& recipe, std::int64_t vocabulary, std::int64_t context) {
  model::ModelConfig& m = recipe.model;
  if (m.task == model::Task::classify || m.task == model::Task::tag)
    fail(ErrorCode::invalid_argument, "--vocabulary", "task of the recipe",
         "one without labels; leave --vocabulary out, so that they are counted in the data",
         model::to_string(m.task));
  m.sizes.vocabulary = vocabulary;
  if (!recipe.data.target_tokenizer.empty()) m.sizes.target_vocabulary = vocabulary;
  m.sizes.context = context;
}

// Bytes of a device that this machine has.
std::int64_t room_of_device(Device device) {
  if (has_engine(device)) return engine_of(device).memory_bytes();
  fail(ErrorCode::invalid_argument, "--memory", "memory of " + to_string(device),
       "how much it has, as in --memory 80GB: this machine has no such device (" +
           absence_of(device.kind) + ")",
       "none");
}

std::optional<plan::Link> link_of(const Arguments& a) {
  if (a.link.empty() && a.latency.empty()) return std::nullopt;
  if (a.link.empty())
    fail(ErrorCode::invalid_argument, "--latency", "is of a link", "--link beside it, as in 10G",
         "no --link");
  if (a.ranks == 0)
    fail(ErrorCode::invalid_argument, "--link", "is what ranks talk over",
         "--ranks beside it: how many there are", "no --ranks");
  plan::Link link{.bits_per_s = plan::parse_bits_per_s(a.link, "--link")};
  if (!a.latency.empty()) link.latency = plan::parse_seconds(a.latency, "--latency");
  return link;
}

// The time of a step on this machine, or on one of --flops, and among ranks over a link.
void forecast_time(Answer& out, const Arguments& a, const plan::RunPlan& planned) {
  plan::Plan& p = out.forecast.plan;
  if (!a.flops.empty())
    p.step_seconds = planned.usual.flops_per_step / plan::parse_flops_per_s(a.flops, "--flops");
  out.link = link_of(a);
  if (!out.link) return;
  if (p.step_seconds <= 0)
    fail(ErrorCode::invalid_argument, "--link", "speed of " + to_string(out.recipe.train.device),
         "--flops beside it, as in --flops 20T: it was not measured here", "not known");
  out.scaling = plan::scaling_on(*out.link, out.recipe, a.ranks, p.step_seconds);
  p.step_seconds = out.scaling.here.seconds();
}

Answer make(const Arguments& a) {
  Answer out;
  const int ranks = std::max(1, a.ranks);
  out.recipe = run::load_recipe(recipe_file(a.recipe), a.recipe.set);
  if (a.ranks > 1 && !out.recipe.train.parts) {
    out.recipe.train.parts = recipe::usual_parts(out.recipe.train, ranks);
    recipe::with_places(out.recipe, [&] { recipe::validate(out.recipe.train); });
  }
  recipe::with_places(out.recipe, [&] { recipe::check_shard(out.recipe.train); });
  model::ModelConfig& m = out.recipe.model;
  plan::BatchShapes shapes;
  std::unique_ptr<data::Dataset> data;
  if (a.vocabulary > 0) {
    shapes = plan::batch_shapes(out.recipe);
    assume_sizes(out.recipe, a.vocabulary, shapes.largest.tokens);
  } else {
    ReadingLine line;
    data::OpenOptions options;
    options.reading = line.sink();
    data = recipe::open_data(out.recipe, options);
    recipe::take_sizes(out.recipe, *data);
    shapes = plan::batch_shapes(*data, out.recipe.train);
  }
  const recipe::TrainConfig& t = out.recipe.train;
  if (a.context > 0) out.cache_bytes = plan::cache_bytes(m, t.precision, a.context);
  if (out.cache_bytes == 0)
    fail(ErrorCode::invalid_argument, "--context", "model",
         "a decoder or an encoder-decoder, which keep the keys of earlier tokens",
         model::to_string(m.kind));
  const plan::RunPlan planned = plan::plan_run(out.recipe, shapes, ranks);
  out.forecast = plan::forecast(out.recipe, planned, data.get(),
                                a.flops.empty() ? plan::measure_machine : plan::MachineProbe());
  forecast_time(out, a, planned);
  out.fit = t.device.is_cpu()
                ? plan::fit_into(out.recipe, shapes.largest, out.forecast.process,
                                 a.memory > 0 ? a.memory : plan::room_of_process(), ranks)
                : plan::fit_onto_device(out.recipe, shapes.largest, out.forecast.plan,
                                        a.memory > 0 ? a.memory : room_of_device(t.device));
  return out;
}

json to_json(const Answer& answer, const Arguments& a) {
  const plan::Plan& p = answer.forecast.plan;
  json j = plan::to_json(p);
  if (a.ranks > 1) {
    j["ranks"] = a.ranks;
    j["parts"] = *answer.recipe.train.parts;
    j["sent_bytes_per_step"] = p.sent_bytes;
  }
  if (answer.link) {
    const plan::Scaling& s = answer.scaling;
    j["link"] = {{"bits_per_s", answer.link->bits_per_s},
                 {"latency_seconds", answer.link->latency}};
    j["compute_seconds"] = s.here.compute;
    j["communication_seconds"] = s.here.communication;
    j["communication_share"] = s.here.share_of_communication();
    j["pays_to_ranks"] = s.pays_to;
    j["fastest_ranks"] = s.fastest;
    j["most_ranks_tried"] = s.tried;
  }
  j["process_peak_bytes"] = plan::to_json(answer.forecast.process);
  j["steps"] = answer.recipe.train.steps;
  if (p.step_seconds > 0)
    j["total_seconds"] = p.step_seconds * static_cast<double>(answer.recipe.train.steps);
  if (answer.cache_bytes) j["kv_bytes"] = *answer.cache_bytes;
  j["fits"] = answer.fit.fits;
  j["room_bytes"] = answer.fit.room;
  j["largest_batch"] = answer.fit.largest_batch;
  return j;
}

void line(const std::string& name, const std::string& value) {
  fmt::print("{:37} {}\n", name, value);
}
void bytes_line(const std::string& name, std::int64_t bytes) {
  line(name, report::bytes_text(static_cast<double>(bytes)));
}

std::string name_of(Purpose purpose) {
  switch (purpose) {
    case Purpose::parameters: return tr("  parameters");
    // They come while activations go: most are not there yet, or no longer.
    case Purpose::gradients: return tr("  gradients at the moment of the peak");
    case Purpose::optimizer: return tr("  optimizer");
    case Purpose::activations: return tr("  activations");
    case Purpose::workspace: return tr("  workspace");
    case Purpose::thread_buffers: break;  // counted apart
  }
  return {};
}

void print_tensors(const plan::Plan& p) {
  bytes_line(tr("tensors of a step, at its peak"), p.memory.peak);
  for (int i = 0; i < kPurposeCount; ++i)
    bytes_line(name_of(static_cast<Purpose>(i)), p.memory.at_peak[static_cast<std::size_t>(i)]);
}

void print_process(const plan::ProcessMemory& p) {
  bytes_line(tr("the process, about"), p.total());
  bytes_line(tr("  tensors"), p.tensors);
  bytes_line(tr("  buffers of threads"), p.thread_buffers);
  if (p.loading > 0) bytes_line(tr("  data"), p.data);
  bytes_line(tr("  program, tokenizers"), p.program);
  if (p.loading > 0) bytes_line(tr("  while data is read"), p.loading);
}

// The conclusion from the numbers, in a sentence.
std::string verdict_on_device(const Answer& answer) {
  const std::string device = to_string(answer.recipe.train.device);
  const std::string needed =
      report::bytes_text(static_cast<double>(answer.forecast.plan.memory.peak));
  const std::string room = report::bytes_text(static_cast<double>(answer.fit.room));
  if (answer.fit.fits) return tr("It fits {}: {} of its {}.", device, needed, room);
  return tr("It does not fit {}: {}, and it has {}.", device, needed, room);
}

std::string verdict(const Answer& answer, bool given) {
  if (!answer.recipe.train.device.is_cpu()) return verdict_on_device(answer);
  const std::string needed =
      report::bytes_text(static_cast<double>(answer.forecast.process.total()));
  const std::string room = report::bytes_text(static_cast<double>(answer.fit.room));
  if (answer.fit.fits && given) return tr("It fits: about {} of the {} of --memory.", needed, room);
  if (answer.fit.fits)
    return tr("It fits this machine: about {} of the {} that are free for it.", needed, room);
  if (given) return tr("It does not fit: about {}, and --memory is {}.", needed, room);
  return tr("It does not fit this machine: about {}, and {} are free for it.", needed, room);
}

std::string batch_that_fits(const Answer& answer) {
  if (answer.fit.largest_batch == 0)
    return tr(
        "Not even a batch of 1 fits: a smaller model, a shorter context, or train.recompute = "
        "true.");
  return tr("The largest batch that fits: {} (train.batch is {}).", answer.fit.largest_batch,
            answer.recipe.train.batch);
}

std::string time_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", 1e3 * seconds) : report::duration_text(seconds);
}

void print_ranks(const plan::Scaling& s) {
  line(tr("  computing"), time_text(s.here.compute));
  line(tr("  talking to the others, after that"),
       tr("{}, {:.0f}% of the step", time_text(s.here.communication),
          100 * s.here.share_of_communication()));
  line(tr("ranks that pay at this batch"),
       s.pays_to == s.tried
           ? tr("all that it has work for: {}", s.pays_to)
           : tr("up to {}: beyond, each reads less than half of what one alone does", s.pays_to));
  line(tr("ranks whose step is the shortest"), std::to_string(s.fastest));
}

void print_times(const Answer& answer) {
  const double seconds = answer.forecast.plan.step_seconds;
  if (seconds <= 0) return;
  line(tr("time of a step, about"), time_text(seconds));
  if (answer.link) print_ranks(answer.scaling);
  line(tr("time of {} steps", answer.recipe.train.steps),
       report::duration_text(seconds * static_cast<double>(answer.recipe.train.steps)));
}

void print(const Answer& answer, const Arguments& a) {
  const plan::Plan& p = answer.forecast.plan;
  if (a.ranks > 1) {
    line(tr("each of {} ranks, at most", a.ranks),
         tr("a batch in {} parts", *answer.recipe.train.parts));
    bytes_line(tr("sent by it in a step"), p.sent_bytes);
  }
  line(tr("parameters"), report::count_text(static_cast<double>(p.parameters)));
  line(tr("arithmetic of a step"), report::count_text(p.flops_per_step) + "FLOP");
  print_tensors(p);
  print_process(answer.forecast.process);
  print_times(answer);
  if (p.kv_bytes_per_token > 0) bytes_line(tr("cache per token"), p.kv_bytes_per_token);
  if (answer.cache_bytes) bytes_line(tr("cache of {} tokens", a.context), *answer.cache_bytes);
  fmt::print("{}\n\n{}\n{}\n", tr("(1 GB is 10^9 bytes, 1 MB 10^6, 1 kB 1000.)"),
             verdict(answer, a.memory > 0), batch_that_fits(answer));
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
      "The status is 0 where the process fits into what this machine has free for it (its memory,\n"
      "control groups and ulimits; or --memory), and 1 where it does not. 1 GB is 10^9 bytes.\n"
      "Examples:\n"
      "  heddle plan llama-style --memory 8G\n"
      "  heddle plan llama-style --vocabulary 256 --ranks 8 --link 10G");
  auto a = std::make_shared<Arguments>();
  declare_recipe(*command, a->recipe);
  declare_device(*command, a->recipe);
  command
      ->add_option("--memory", a->memory,
                   "what the process may have, as in 8GB or 8GiB; absent: what is free")
      ->transform(CLI::AsSizeValue(true))
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 60));
  command->add_option("--vocabulary", a->vocabulary, "take so many tokens and read no data")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31));
  command->add_option("--context", a->context, "say how large the cache of so many tokens is")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32));
  command
      ->add_option("--ranks", a->ranks,
                   "plan for each of so many processes that train together (mpirun -np N)")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--link", a->link,
                   "the network of each rank, in bits a second, as in 10G or 400G: with --ranks, "
                   "the time of communication and how many ranks pay")
      ->type_name("BITS");
  command
      ->add_option("--latency", a->latency,
                   "of the link, from sending to having it, as in 2us (default: 20us)")
      ->type_name("TIME");
  command
      ->add_option("--flops", a->flops,
                   "FLOP a second that each process reaches in training, as in 20T (default: this "
                   "machine is measured)")
      ->type_name("RATE");
  command->add_flag("--json", a->as_json, "one JSON document on standard output");
  command->callback([a] {
    const Answer answer = make(*a);
    if (a->as_json)
      cli::print_json(to_json(answer, *a));
    else
      print(answer, *a);
    if (!answer.fit.fits) throw ExitStatus{1};
  });
}

}  // namespace heddle::cli::plan_command
