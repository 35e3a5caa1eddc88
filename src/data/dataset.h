// Data as batches. Which batch a step sees is a function of (seed, step, batch) alone: not of the
// number of threads, of earlier requests, or of where a run was resumed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/codec/codec.h"
#include "data/config.h"
#include "model/batch.h"
#include "text/train.h"

namespace heddle::data {

// A sentence pair as it is in its files: what BLEU compares with.
struct TextPair {
  std::string source;
  std::string target;
};

// How large a batch is.
struct BatchShape {
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;         // of each sequence read; 0 for images
  std::int64_t target_tokens = 0;  // translate: of each sequence written
  bool documents = false;          // told apart (data.documents)

  bool operator==(const BatchShape&) const = default;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  const Codec& codec() const { return *codec_; }
  const std::shared_ptr<const Codec>& shared_codec() const { return codec_; }

  // Steps until every training example was seen once, the last batch of an epoch being the
  // remainder. For texts, whose windows are drawn at random, the steps that read as many tokens as
  // there are.
  virtual std::int64_t epoch_steps(std::int64_t batch) const = 0;

  // The batch of a step. Steps count from 0. May be called from any thread.
  virtual model::Batch training_batch(std::int64_t step, std::int64_t batch,
                                      std::uint64_t seed) const = 0;

  // Of what training_batch() would give. Data that can tell makes no batch for it, so that a plan
  // can be made of batches that no memory could hold.
  virtual BatchShape training_shape(std::int64_t step, std::int64_t batch,
                                    std::uint64_t seed) const;

  // Evaluation: every example (or token of a text) once, in a fixed order that is not the one of
  // the file where that saves padding. `index` counts from 0.
  virtual bool has(Split split) const = 0;
  virtual std::int64_t batches(Split split, std::int64_t batch) const = 0;
  virtual model::Batch batch(Split split, std::int64_t index, std::int64_t batch) const = 0;

  bool has_validation() const { return has(Split::validation); }
  std::int64_t validation_batches(std::int64_t batch) const {
    return batches(Split::validation, batch);
  }
  model::Batch validation_batch(std::int64_t index, std::int64_t batch) const {
    return this->batch(Split::validation, index, batch);
  }
  bool has_test() const { return has(Split::test); }
  std::int64_t test_batches(std::int64_t batch) const { return batches(Split::test, batch); }
  model::Batch test_batch(std::int64_t index, std::int64_t batch) const {
    return this->batch(Split::test, index, batch);
  }

  // translate: the pairs of validation or test, in the order of their files. Empty otherwise.
  virtual std::span<const TextPair> pairs(Split split) const = 0;

  // Memory of the examples, without the codec; 0 where batches are generated.
  virtual std::int64_t bytes() const { return 0; }

  // Sizes, what was dropped or cut, the share of unknown words: a few lines for people.
  virtual std::string summary() const = 0;

 protected:
  explicit Dataset(std::shared_ptr<const Codec> codec) : codec_(std::move(codec)) {}

 private:
  std::shared_ptr<const Codec> codec_;
};

// Reads the files and, without an existing codec, trains the tokenizers and collects the labels.
// With one (a run that goes on, an evaluation, fine-tuning) nothing is trained: the codec's
// tokenizers, labels and normalisation are used, and a label that it does not have is an Error
// naming file and line. Bad data is an Error naming file and line.
//
// Beside an existing codec, splits can be left out: an evaluation of the test split does not read
// the training files.
struct ReadingProgress {
  // Words are counted for a tokenizer, pairs merged; tokens written to a token file; another
  // process writes there.
  enum class Phase : std::uint8_t { counting, merging, tokenising, waiting };
  Phase phase;
  std::int64_t done, total;  // bytes of text; tokens while merging
};
// Called on the calling thread, several times a second. It may throw to give up.
using ReadingSink = std::function<void(const ReadingProgress&)>;

struct OpenOptions {
  std::shared_ptr<const Codec> codec = {};
  bool training = true;
  bool validation = true;  // where the configuration has it
  bool test = true;
  text::ProgressSink progress = {};  // of training tokenizers
  ReadingSink reading = {};          // of texts that go to token files
};
std::unique_ptr<Dataset> open_dataset(const DataConfig& config, model::Kind kind, model::Task task,
                                      const OpenOptions& options = {});

}  // namespace heddle::data
