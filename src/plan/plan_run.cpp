#include "plan/plan_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/machine.h"
#include "base/process_memory.h"
#include "data/loading.h"
#include "heddle/error.h"
#include "io/files/checksums/seal.h"
#include "io/files/file.h"
#include "language/language.h"
#include "tensor/engine.h"

namespace heddle::plan {

namespace {

// Batches that are looked at for their shapes; fewer where the first ones are all alike.
constexpr std::int64_t kLookedAt = 1000, kAlike = 8;

// Bytes that ops other than products get through in the time of one operation of the f32 peak.
// Activation functions, norms, dropout and attention's weights are bound by their arithmetic, and
// what small models move is in the caches anyway: 4 to 8 GB/s a thread on eight recipes where a
// thread's peak is 117 GFLOP/s.
constexpr double kBytesPerVectorFlop = 0.047;

std::string plan_path(const std::string& directory) { return directory + "/plan.json"; }

}  // namespace

BatchShapes batch_shapes(const data::Dataset& data, const recipe::TrainConfig& config) {
  BatchShapes s;
  const std::int64_t epoch = data.epoch_steps(config.batch);
  const std::int64_t steps = std::min({kLookedAt, epoch, std::max<std::int64_t>(1, config.steps)});
  std::int64_t tokens = 0, targets = 0, seen = 0;
  bool alike = true;
  while (seen < steps && !(alike && seen == kAlike)) {
    const BatchShape b = data.training_shape(seen, config.batch, config.seed);
    alike = alike && (seen == 0 ||
                      (b.tokens == s.largest.tokens && b.target_tokens == s.largest.target_tokens));
    // Memory grows with both sides about alike.
    if (seen == 0 || b.tokens + b.target_tokens > s.largest.tokens + s.largest.target_tokens)
      s.largest = b;
    tokens += b.tokens;
    targets += b.target_tokens;
    ++seen;
  }
  // Only the last batch of an epoch is smaller, and only an epoch of one batch has no whole one.
  if (epoch > 1) s.largest.sequences = config.batch;
  s.mean = {s.largest.sequences, (tokens + seen / 2) / seen, (targets + seen / 2) / seen,
            s.largest.documents};
  return s;
}

BatchShapes batch_shapes(const recipe::Recipe& recipe) {
  const data::DataConfig& d = recipe.data;
  const std::int64_t tokens =
      d.context > 0 ? d.context : d.max_length.value_or(data::kDefaultMaxLength);
  const BatchShape shape{recipe.train.batch, tokens, tokens, d.documents != data::Documents::none};
  return {shape, shape};
}

MachineSpeed measure_machine(DType precision, std::int64_t bytes) {
  const auto speed = backend::measure_speed(precision, bytes);
  if (!speed) return {};
  return {kProductShare * speed->product_flops, speed->bytes_per_s,
          kBytesPerVectorFlop * speed->vector_flops};
}

Plan RunPlan::on(const MachineSpeed& machine) const {
  Plan plan = largest;
  plan.step_seconds = seconds_on(machine, usual);
  return plan;
}

RunPlan plan_run(const recipe::Recipe& recipe, const BatchShapes& shapes, int ranks) {
  RunPlan plan;
  plan.largest = plan_training(recipe.model, recipe.train, shapes.largest, ranks);
  plan.usual = shapes.mean == shapes.largest
                   ? plan.largest
                   : plan_training(recipe.model, recipe.train, shapes.mean, ranks);
  return plan;
}

std::optional<MachineSpeed> speed_for(const recipe::TrainConfig& config, const RunPlan& plan,
                                      const MachineProbe& probe) {
  if (!probe || !config.device.is_cpu()) return std::nullopt;
  return probe(config.precision, plan.largest.memory.peak);
}

std::optional<double> peak_flops(const recipe::TrainConfig& config,
                                 const std::optional<MachineSpeed>& measured) {
  if (!config.device.is_cpu()) return std::nullopt;
  if (!measured) return backend::measure_peak(config.precision);
  if (measured->flops_per_s <= 0) return std::nullopt;
  return measured->peak_flops();
}

Forecast forecast(const recipe::Recipe& recipe, const RunPlan& plan, const data::Dataset* data,
                  const MachineProbe& probe) {
  Plan here = plan.largest;
  if (!recipe.train.device.is_cpu()) here.memory = {};  // its tensors are not the process's
  Forecast all;
  all.process = expect_process(here, data);  // before the probe takes memory
  all.machine = speed_for(recipe.train, plan, probe);
  all.plan = plan.on(all.machine.value_or(MachineSpeed{}));
  return all;
}

Fit fit_into(const recipe::Recipe& recipe, const BatchShape& largest, const ProcessMemory& process,
             std::int64_t room, int ranks) {
  Fit fit{.room = room, .fits = process.total() <= room};
  if (process.loading > room) return fit;  // the data alone is too much
  fit.largest_batch =
      largest_batch(recipe.model, recipe.train, largest, room - process.besides_tensors(), ranks)
          .value_or(0);
  return fit;
}

Fit fit_onto_device(const recipe::Recipe& recipe, const BatchShape& largest, const Plan& plan,
                    std::int64_t room) {
  return {.room = room,
          .fits = plan.memory.peak <= room,
          .largest_batch = largest_batch(recipe.model, recipe.train, largest, room).value_or(0)};
}

void check_fits(const recipe::Recipe& recipe, const data::Dataset& data, const RunPlan& plan) {
  const bool here = recipe.train.device.is_cpu();
  const std::int64_t bytes =
      here ? memory_limits().total : engine_of(recipe.train.device).memory_bytes();
  const std::int64_t needed = plan.largest.memory.peak + (here ? data.bytes() : 0);
  if (needed <= bytes) return;
  const auto gigabytes = [](std::int64_t n) {
    const double all = 1e-9 * static_cast<double>(n);
    return all < 1000 ? fmt::format("{:.4g} GB", all) : fmt::format("{:.0f} GB", all);
  };
  fail(ErrorCode::invalid_argument, "recipe", "memory of a step and the data",
       "at most the " + gigabytes(bytes) + " that " +
           (here ? "this process" : to_string(recipe.train.device)) +
           " may have: a smaller train.batch, more parts (train.accumulate), "
           "train.recompute or a smaller model (heddle plan finds the largest batch)",
       gigabytes(needed));
}

nlohmann::json bytes_json(std::int64_t total, const BytesByPurpose& by_purpose) {
  nlohmann::json bytes = {{"total", total}};
  for (std::size_t i = 0; i < by_purpose.size(); ++i)
    bytes[std::string(to_string(static_cast<Purpose>(i)))] = by_purpose[i];
  return bytes;
}

nlohmann::json to_json(const Plan& p) {
  nlohmann::json j = {{"parameters", p.parameters},
                      {"flops_per_step", p.flops_per_step},
                      {"peak_bytes", bytes_json(p.memory.peak, p.memory.at_peak)}};
  if (p.step_seconds > 0) j["step_seconds"] = p.step_seconds;
  if (p.kv_bytes_per_token > 0) j["kv_bytes_per_token"] = p.kv_bytes_per_token;
  return j;
}

void write_plan(const std::string& run_directory, const Plan& plan,
                const std::optional<ProcessMemory>& process) {
  nlohmann::json j = to_json(plan);
  if (process) j["process_peak_bytes"] = to_json(*process);
  io::write_sealed_json(plan_path(run_directory), j);
}

bool has_plan(const std::string& run_directory,
              const std::function<void(const std::string&)>& on_damage) {
  try {
    return read_plan(run_directory).has_value();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::io) throw;
    on_damage(tr("{}; the run is planned anew", e.what()));
    return false;
  }
}

std::optional<Plan> read_plan(const std::string& run_directory) {
  const std::string path = plan_path(run_directory);
  if (!io::file_exists(path)) return std::nullopt;
  const io::Json j =
      io::read_sealed_json(path, {"parameters", "flops_per_step", "peak_bytes",
                                  "process_peak_bytes", "step_seconds", "kv_bytes_per_token"});
  Plan p;
  p.parameters = j.at("parameters").integer(0);
  p.flops_per_step = j.at("flops_per_step").number();
  const io::Json bytes = j.at("peak_bytes");
  p.memory.peak = bytes.at("total").integer(0);
  for (std::size_t i = 0; i < p.memory.at_peak.size(); ++i)
    p.memory.at_peak[i] = bytes.at(to_string(static_cast<Purpose>(i))).integer(0);
  p.step_seconds = j.number_or("step_seconds", 0);
  p.kv_bytes_per_token = j.integer_or("kv_bytes_per_token", 0);
  return p;
}

}  // namespace heddle::plan
