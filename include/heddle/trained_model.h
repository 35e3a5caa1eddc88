// A model that `heddle train` wrote, for any task: its directory, opened. The task says which class
// uses it: LanguageModel, Translator, Tagger or Classifier. These open a directory themselves; open
// it here if you do not know what it holds, or to use one model in two ways.
//
//   const heddle::TrainedModel model("runs/mystery");  // to_string() is heddle/model/config.h's
//   std::cout << to_string(model.task()) << ", " << model.parameters() << " parameters\n";
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "heddle/device.h"
#include "heddle/dtype.h"

namespace heddle {

class TrainedModel;

namespace model {
class Model;
enum class Task : std::uint8_t;
}  // namespace model

namespace run {
struct LoadedRun;
const LoadedRun& loaded(const TrainedModel& model);
}  // namespace run

// A handle: copies share the weights. One thread at a time may use a model; each call runs on all
// threads by itself (heddle/runtime.h). Every function throws heddle::Error.
class TrainedModel {
 public:
  // A run directory, or a model of others. An Error names the file that is missing or bad.
  // `precision` is that of activations: f32, bf16, or f64 for proofs, where weights are f64 too and
  // texts are not written, only scored (network()). `weights` is what matrices and tables are held
  // in, f32 or bf16; without it a model of others is held in bf16 where its files, bf16 or
  // quantised, or the precision are no finer, and a run in f32.
  explicit TrainedModel(const std::string& directory, DType precision = DType::f32,
                        Device device = Device::cpu, std::optional<DType> weights = {});

  const std::string& directory() const;
  DType precision() const;
  model::Task task() const;             // heddle/model/config.h lists them
  std::int64_t parameters() const;      // number of learned parameters
  std::int64_t weight_bytes() const;    // that these take
  const model::Model& network() const;  // heddle/model/model.h

 private:
  friend const run::LoadedRun& run::loaded(const TrainedModel& model);
  struct Parts;
  const Parts& parts() const;  // Error for a moved-from model
  std::shared_ptr<const Parts> parts_;
};

}  // namespace heddle
