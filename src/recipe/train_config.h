// How a model is trained: the keys of [train] in a recipe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/device.h"
#include "heddle/dtype.h"

namespace heddle::io {
class TomlDocument;
class TomlTable;
}  // namespace heddle::io

namespace heddle::recipe {

enum class OptimizerKind : std::uint8_t { adamw, sgd };
enum class ScheduleKind : std::uint8_t { cosine, linear, inverse_sqrt, constant };

// What each of several ranks has a share of alone, besides the state of the optimiser.
enum class Shard : std::uint8_t { optimizer, gradients };

// Files that the log goes to: log.jsonl, log.csv, event files of TensorBoard.
enum class LogFormat : std::uint8_t { jsonl, csv, tensorboard };

std::string_view to_string(OptimizerKind kind);  // as in a recipe
std::string_view to_string(ScheduleKind kind);   // "inverse-sqrt"
std::string_view to_string(LogFormat format);
std::string_view to_string(Shard shard);

inline constexpr std::int64_t kEvalEvery = 250;
inline constexpr std::int64_t kTimeout = 60;  // seconds
inline constexpr std::int64_t kUsualParts = 8;

struct TrainConfig {
  std::int64_t steps = 0;       // updates of the weights
  std::int64_t batch = 0;       // sequences, pairs or images of one step
  std::int64_t accumulate = 1;  // parts a batch is computed in, one after the other: less memory
  // Parts of a batch whose gradients are added in a fixed order: any number of ranks up to it ends
  // with the same bits. Absent: a batch is summed as one process does it, by itself.
  std::optional<std::int64_t> parts = {};
  Shard shard = Shard::optimizer;            // what ranks share out; no bit depends on it
  std::optional<std::int64_t> timeout = {};  // seconds until a rank that is silent is given up
  DType precision = DType::f32;  // of activations; weights and their updates are f32. bf16 | fp32
  Device device = Device::cpu;   // that computes; what a machine lacks is refused when it is used
  bool recompute = false;        // activations inside of layers are computed twice: less memory

  OptimizerKind optimizer = OptimizerKind::adamw;
  double learning_rate = 1e-3;  // the highest of the schedule
  ScheduleKind schedule = ScheduleKind::cosine;
  std::int64_t warmup = 0;  // steps until the rate is reached, in equal steps up from 0
  // cosine, linear: share of the rate at the last step. 0: the rate reaches 0 one step after it.
  double final_share = 0.1;
  double beta1 = 0.9;       // adamw
  double beta2 = 0.98;      // adamw
  double epsilon = 1e-8;    // adamw
  double momentum = 0;      // sgd
  bool nesterov = false;    // sgd
  double weight_decay = 0;  // of matrices and tables, not of gains and biases
  double clip = 1;          // longest gradient of all parameters together; 0: any
  double label_smoothing = 0;

  // Steps between evaluations on the validation split; there is one after the last step too. 0:
  // none. Absent: kEvalEvery where there is validation data.
  std::optional<std::int64_t> eval_every = {};
  std::optional<std::int64_t> eval_batches = {};  // of an evaluation; absent: the whole split
  std::optional<std::int64_t> patience = {};      // evaluations without a better one until it stops
  std::int64_t save_every = 250;                  // steps between checkpoints
  std::int64_t keep = 2;                          // checkpoints that stay, the newest ones
  std::int64_t log_every = 10;                    // steps between lines of the log
  // jsonl is among them always: reports and resuming read it.
  std::vector<LogFormat> log = {LogFormat::jsonl};
  std::uint64_t seed = 1;
  std::string from = {};  // fine-tuning: the run, or the model of others, that it begins with

  friend bool operator==(const TrainConfig&, const TrainConfig&) = default;
};

// The default for a run of so many steps: a tenth of them, up to 100.
std::int64_t usual_warmup(std::int64_t steps);

// train.parts of a run on several ranks whose recipe does not say: 8, so that runs on up to 8 ranks
// end with the same bits; for more ranks the next power of two; and no more than the batch has.
std::int64_t usual_parts(const TrainConfig& config, int ranks);

// Throws Error naming the key, what it may be and what it was. Everything that takes a
// configuration calls it.
void validate(const TrainConfig& config);

// Throws Error where one process would train without train.parts and have nothing to share out: its
// train.shard would mean nothing. Several ranks take usual_parts().
void check_shard(const TrainConfig& config);

// The table [train]: values out of range and keys that the chosen optimizer or schedule would have
// to ignore are refused by name; unknown keys are left to the document's finish(). Defaults that
// depend on other keys are filled in: usual_warmup(), decay and rate by optimizer.
TrainConfig parse_train(const io::TomlTable& table);

// Puts all keys in force into [train] of the document, defaults included. parse_train() of them
// gives an equal configuration.
void put_train(io::TomlDocument& document, const TrainConfig& config);

}  // namespace heddle::recipe
