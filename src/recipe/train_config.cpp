#include "recipe/train_config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "nn/require.h"

namespace heddle::recipe {

namespace {

using nn::require;

constexpr const char* kWhere = "recipe";

void whole(const char* key, std::int64_t value, std::int64_t low, std::int64_t high) {
  const std::string allowed = std::to_string(low) + " to " + std::to_string(high);
  require(value >= low && value <= high, kWhere, key, allowed, std::to_string(value));
}

void real(const char* key, bool ok, const char* allowed, double value) {
  require(ok && std::isfinite(value), kWhere, key, allowed, value);
}

void validate_optimizer(const TrainConfig& c) {
  const bool adamw = c.optimizer == OptimizerKind::adamw;
  real("train.learning_rate", c.learning_rate > 0 && c.learning_rate <= 1e3, "above 0, up to 1000",
       c.learning_rate);
  real("train.final_share", c.final_share >= 0 && c.final_share <= 1, "0 to 1", c.final_share);
  real("train.beta1", c.beta1 >= 0 && c.beta1 < 1, "0 to below 1", c.beta1);
  real("train.beta2", c.beta2 >= 0 && c.beta2 < 1, "0 to below 1", c.beta2);
  real("train.epsilon", c.epsilon > 0 && c.epsilon <= 1, "above 0, up to 1", c.epsilon);
  real("train.momentum", c.momentum >= 0 && c.momentum < 1, "0 to below 1", c.momentum);
  require(c.momentum == 0 || !adamw, kWhere, {"train.momentum", "train.optimizer"},
          "optimizer = \"sgd\" (adamw has beta1)", c.momentum);
  require(!c.nesterov || !adamw, kWhere, {"train.nesterov", "train.optimizer"},
          "optimizer = \"sgd\"", "adamw");
  require(!c.nesterov || c.momentum > 0, kWhere, {"train.nesterov", "train.momentum"},
          "a momentum above 0", "none");
  real("train.weight_decay", c.weight_decay >= 0 && c.weight_decay <= 1e3, "0 to 1000",
       c.weight_decay);
  // The update would turn the weights around.
  require(c.weight_decay * c.learning_rate < 1, kWhere,
          {"train.weight_decay", "train.learning_rate"}, "below 1 / train.learning_rate",
          c.weight_decay);
  real("train.clip", c.clip >= 0, "0 (no limit) or more", c.clip);
  real("train.label_smoothing", c.label_smoothing >= 0 && c.label_smoothing < 1, "0 to below 1",
       c.label_smoothing);
}

}  // namespace

std::string_view to_string(OptimizerKind kind) {
  return kind == OptimizerKind::adamw ? "adamw" : "sgd";
}

std::string_view to_string(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::cosine: return "cosine";
    case ScheduleKind::linear: return "linear";
    case ScheduleKind::inverse_sqrt: return "inverse-sqrt";
    case ScheduleKind::constant: return "constant";
  }
  return "unknown";
}

std::string_view to_string(LogFormat format) {
  switch (format) {
    case LogFormat::jsonl: return "jsonl";
    case LogFormat::csv: return "csv";
    case LogFormat::tensorboard: return "tensorboard";
  }
  return "unknown";
}

std::string_view to_string(Shard shard) {
  return shard == Shard::optimizer ? "optimizer" : "gradients";
}

std::int64_t usual_warmup(std::int64_t steps) { return std::min<std::int64_t>(100, steps / 10); }

std::int64_t usual_parts(const TrainConfig& config, int ranks) {
  std::int64_t parts = kUsualParts;
  while (parts < ranks) parts *= 2;
  return std::min(parts, std::max<std::int64_t>(1, config.batch / config.accumulate));
}

namespace {

// 4096 are as many streams of random numbers as there are for parts: nn::kPartStreams.
void validate_parts(const TrainConfig& c) {
  if (c.timeout) whole("train.timeout", *c.timeout, 1, 86400);
  if (!c.parts) return;
  whole("train.parts", *c.parts, 1, 4096);
  require(*c.parts * c.accumulate <= std::min<std::int64_t>(c.batch, 4096), kWhere,
          {"train.parts", "train.batch", "train.accumulate"},
          "train.parts · train.accumulate at most train.batch (each part is computed in "
          "train.accumulate parts of its own), and at most 4096",
          std::to_string(*c.parts) + " · " + std::to_string(c.accumulate));
  require(c.device.is_cpu(), kWhere, {"train.parts", "train.device"},
          "device = \"cpu\": the fixed order of sums is not there for other devices",
          to_string(c.device));
}

}  // namespace

void check_shard(const TrainConfig& c) {
  require(c.parts || c.shard == Shard::optimizer, kWhere, {"train.shard", "train.parts"},
          "several ranks (mpirun -np N), or train.parts: the gradients of parts are what is shared "
          "out",
          "one process without train.parts");
}

void validate(const TrainConfig& c) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;  // steps are keys of random numbers
  whole("train.steps", c.steps, 1, kMost);
  whole("train.batch", c.batch, 1, 1 << 20);
  // The streams of random numbers of parts lie apart: nn::kPartStreams.
  whole("train.accumulate", c.accumulate, 1, 4096);
  require(c.accumulate <= c.batch, kWhere, {"train.accumulate", "train.batch"},
          "at most train.batch", std::to_string(c.accumulate));
  validate_parts(c);
  require(c.precision == DType::f32 || c.precision == DType::bf16, kWhere, "train.precision",
          "bf16 or fp32", to_string(c.precision));
  whole("train.warmup", c.warmup, 0, kMost);
  require(c.warmup <= c.steps, kWhere, {"train.warmup", "train.steps"},
          "at most train.steps = " + std::to_string(c.steps) +
              " (a shorter run wants a shorter one: --set train.warmup=" +
              std::to_string(usual_warmup(c.steps)) + ")",
          std::to_string(c.warmup));
  validate_optimizer(c);
  whole("train.eval_every", c.eval_every.value_or(0), 0, kMost);
  whole("train.eval_batches", c.eval_batches.value_or(1), 1, kMost);
  whole("train.patience", c.patience.value_or(1), 1, kMost);
  const bool never = c.eval_every == 0;
  require(!never || !c.eval_batches, kWhere, {"train.eval_batches", "train.eval_every"},
          "evaluations", "eval_every = 0");
  require(!never || !c.patience, kWhere, {"train.patience", "train.eval_every"}, "evaluations",
          "eval_every = 0");
  whole("train.save_every", c.save_every, 1, kMost);
  whole("train.keep", c.keep, 1, kMost);
  whole("train.log_every", c.log_every, 1, kMost);
  for (const LogFormat format : c.log)
    require(std::ranges::count(c.log, format) == 1, kWhere, "train.log", "each format once",
            to_string(format));
  require(std::ranges::count(c.log, LogFormat::jsonl) == 1, kWhere, "train.log",
          "\"jsonl\" among its formats: reports and --resume read it", "none");
  // TOML has no larger integers.
  require(c.seed <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()), kWhere,
          "train.seed", "0 to 2^63 - 1", std::to_string(c.seed));
}

}  // namespace heddle::recipe
