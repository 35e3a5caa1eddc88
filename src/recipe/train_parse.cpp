// The table [train] of a recipe, read and written.
#include <array>
#include <limits>
#include <utility>

#include "heddle/error.h"
#include "io/toml/toml.h"
#include "recipe/train_config.h"

namespace heddle::recipe {

namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 31;
constexpr double kLargest = std::numeric_limits<double>::max();

void refuse_keys(const io::TomlTable& table, std::initializer_list<const char*> keys,
                 const std::string& reason) {
  for (const char* key : keys)
    if (table.has(key)) table.refuse(key, reason);
}

std::optional<std::int64_t> optional_integer(const io::TomlTable& table, const char* key,
                                             std::int64_t low) {
  return table.integer_if(key, {low, kMost});
}

void parse_optimizer(const io::TomlTable& t, TrainConfig& c) {
  const bool adamw = t.choice_or("optimizer", "adamw", {"adamw", "sgd"}) == "adamw";
  c.optimizer = adamw ? OptimizerKind::adamw : OptimizerKind::sgd;
  c.learning_rate = t.number_or("learning_rate", adamw ? 1e-3 : 0.1, {0, 1e3});
  c.weight_decay = t.number_or("weight_decay", adamw ? 0.1 : 0, {0, 1e3});
  if (adamw) {
    refuse_keys(t, {"momentum", "nesterov"}, "optimizer = \"sgd\" (adamw has beta1)");
    c.beta1 = t.number_or("beta1", c.beta1, {0, 1});
    c.beta2 = t.number_or("beta2", c.beta2, {0, 1});
    c.epsilon = t.number_or("epsilon", c.epsilon, {0, 1});
  } else {
    refuse_keys(t, {"beta1", "beta2", "epsilon"}, "optimizer = \"adamw\" (sgd has momentum)");
    c.momentum = t.number_or("momentum", c.momentum, {0, 1});
    c.nesterov = t.boolean_or("nesterov", c.nesterov);
  }
  c.clip = t.number_or("clip", c.clip, {0, kLargest});
  c.label_smoothing = t.number_or("label_smoothing", c.label_smoothing, {0, 1});
}

bool falls_to_a_share(ScheduleKind kind) {
  return kind == ScheduleKind::cosine || kind == ScheduleKind::linear;
}

void parse_schedule(const io::TomlTable& t, TrainConfig& c) {
  const std::array kinds = {ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::inverse_sqrt,
                            ScheduleKind::constant};
  std::vector<std::string> names;
  names.reserve(kinds.size());
  for (const ScheduleKind kind : kinds) names.emplace_back(to_string(kind));
  const std::string name = t.choice_or("schedule", "cosine", names);
  for (const ScheduleKind kind : kinds)
    if (name == to_string(kind)) c.schedule = kind;
  c.warmup = t.integer_or("warmup", usual_warmup(c.steps), {0, kMost});
  if (!falls_to_a_share(c.schedule))
    refuse_keys(t, {"final_share"}, "schedule = \"cosine\" or \"linear\"");
  c.final_share = t.number_or("final_share", c.final_share, {0, 1});
}

io::TomlArray names_of(const std::vector<LogFormat>& formats) {
  io::TomlArray all;
  for (const LogFormat format : formats) all.push_back({std::string(to_string(format)), {}});
  return all;
}

void parse_log(const io::TomlTable& t, TrainConfig& c) {
  constexpr std::array kFormats = {LogFormat::jsonl, LogFormat::csv, LogFormat::tensorboard};
  io::KeyFact fact;
  fact.fallback = io::toml_inline({names_of(c.log), {}});
  for (const LogFormat format : kFormats) fact.choices.emplace_back(to_string(format));
  t.note("log", fact);
  const auto names = t.strings_if("log");
  if (!names) return;
  c.log.clear();
  for (const std::string& name : *names) {
    const std::size_t before = c.log.size();
    for (const LogFormat format : kFormats)
      if (name == to_string(format)) c.log.push_back(format);
    if (c.log.size() == before) t.refuse("log", "a list of \"jsonl\", \"csv\" and \"tensorboard\"");
  }
}

void parse_rhythm(const io::TomlTable& t, TrainConfig& c) {
  c.eval_every = optional_integer(t, "eval_every", 0);
  c.eval_batches = optional_integer(t, "eval_batches", 1);
  c.patience = optional_integer(t, "patience", 1);
  c.save_every = t.integer_or("save_every", c.save_every, {1, kMost});
  c.keep = t.integer_or("keep", c.keep, {1, kMost});
  c.log_every = t.integer_or("log_every", c.log_every, {1, kMost});
  parse_log(t, c);
}

Device device_of(const io::TomlTable& t) {
  try {
    return parse_device(t.string_or("device", "cpu"));
  } catch (const Error& e) {
    t.refuse("device", e.expected());
  }
}

Shard shard_of(const io::TomlTable& t) {
  if (t.has("shard") && t.string("shard") == "parameters")
    t.refuse("shard", "\"optimizer\" or \"gradients\": sharded parameters are not there yet");
  return t.choice_or("shard", "optimizer", {"optimizer", "gradients"}) == "gradients"
             ? Shard::gradients
             : Shard::optimizer;
}

}  // namespace

TrainConfig parse_train(const io::TomlTable& t) {
  TrainConfig c;
  c.steps = t.integer("steps", {1, kMost});
  c.batch = t.integer("batch", {1, 1 << 20});
  c.accumulate = t.integer_or("accumulate", 1, {1, 4096});
  c.parts = t.integer_if("parts", {1, 4096});
  c.shard = shard_of(t);
  c.timeout = t.integer_if("timeout", {1, 86400});
  c.precision =
      t.choice_or("precision", "fp32", {"bf16", "fp32"}) == "bf16" ? DType::bf16 : DType::f32;
  c.device = device_of(t);
  c.recompute = t.boolean_or("recompute", false);
  parse_optimizer(t, c);
  parse_schedule(t, c);
  parse_rhythm(t, c);
  c.seed = static_cast<std::uint64_t>(
      t.integer_or("seed", 1, {0, std::numeric_limits<std::int64_t>::max()}));
  c.from = t.string_or("from", "");
  validate(c);
  return c;
}

void put_train(io::TomlDocument& document, const TrainConfig& c) {
  const auto put = [&document](const char* key, io::TomlData value) {
    document.put(std::string("train.") + key, std::move(value));
  };
  put("steps", c.steps);
  put("batch", c.batch);
  put("accumulate", c.accumulate);
  if (c.parts) put("parts", *c.parts);
  if (c.parts || c.shard != Shard::optimizer) put("shard", std::string(to_string(c.shard)));
  if (c.timeout) put("timeout", *c.timeout);
  put("precision", std::string(c.precision == DType::bf16 ? "bf16" : "fp32"));
  put("device", to_string(c.device));
  put("recompute", c.recompute);
  put("optimizer", std::string(to_string(c.optimizer)));
  put("learning_rate", c.learning_rate);
  put("schedule", std::string(to_string(c.schedule)));
  put("warmup", c.warmup);
  if (falls_to_a_share(c.schedule)) put("final_share", c.final_share);
  if (c.optimizer == OptimizerKind::adamw) {
    put("beta1", c.beta1);
    put("beta2", c.beta2);
    put("epsilon", c.epsilon);
  } else {
    put("momentum", c.momentum);
    put("nesterov", c.nesterov);
  }
  put("weight_decay", c.weight_decay);
  put("clip", c.clip);
  put("label_smoothing", c.label_smoothing);
  if (c.eval_every) put("eval_every", *c.eval_every);
  if (c.eval_batches) put("eval_batches", *c.eval_batches);
  if (c.patience) put("patience", *c.patience);
  put("save_every", c.save_every);
  put("keep", c.keep);
  put("log_every", c.log_every);
  put("log", names_of(c.log));
  put("seed", static_cast<std::int64_t>(c.seed));
  if (!c.from.empty()) put("from", c.from);
}

}  // namespace heddle::recipe
