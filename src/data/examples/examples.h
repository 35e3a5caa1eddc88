// Data that is a list of examples (pairs, tagged sentences, texts or images with a label): what one
// split holds, and how epochs and evaluations go through it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/order/order.h"
#include "heddle/random.h"

namespace heddle::data {

class Examples {
 public:
  virtual ~Examples() = default;
  virtual std::int64_t count() const = 0;
  // A sort key: neighbours in its order need little padding when batched together.
  virtual std::uint64_t length_key(std::int64_t example) const = 0;
  // Of what make() gives.
  virtual BatchShape shape(std::span<const std::int64_t> examples) const = 0;
  // `augment`: the random stream of changes made in training only.
  virtual model::Batch make(std::span<const std::int64_t> examples,
                            const std::optional<RandomKey>& augment) const = 0;
  virtual std::int64_t bytes() const = 0;  // of memory
};

struct ExampleSplit {
  std::unique_ptr<Examples> examples = {};  // none: the split was not given
  std::vector<TextPair> pairs = {};         // translate, evaluation only
};

class ExampleDataset final : public Dataset {
 public:
  ExampleDataset(std::shared_ptr<const Codec> codec, std::array<ExampleSplit, kSplits> splits,
                 std::string summary);

  std::int64_t epoch_steps(std::int64_t batch) const override;
  model::Batch training_batch(std::int64_t step, std::int64_t batch,
                              std::uint64_t seed) const override;
  BatchShape training_shape(std::int64_t step, std::int64_t batch,
                            std::uint64_t seed) const override;
  bool has(Split split) const override;
  std::int64_t batches(Split split, std::int64_t batch) const override;
  model::Batch batch(Split split, std::int64_t index, std::int64_t batch) const override;
  std::span<const TextPair> pairs(Split split) const override;
  std::int64_t bytes() const override;
  std::string summary() const override { return summary_; }

 private:
  struct Prepared {
    std::vector<std::uint64_t> lengths;    // key of each example
    std::vector<std::int64_t> evaluation;  // examples from short to long
  };
  // The order of the last requested epoch: it takes longer to make than a batch.
  struct Cached {
    std::uint64_t seed = 0;
    std::int64_t epoch = 0, batch = 0;
    std::shared_ptr<const EpochOrder> order = {};
  };

  const Examples& examples(Split split) const;
  std::shared_ptr<const EpochOrder> order(std::uint64_t seed, std::int64_t epoch,
                                          std::int64_t batch) const;

  std::array<ExampleSplit, kSplits> splits_;
  std::array<Prepared, kSplits> prepared_;
  std::string summary_;
  mutable std::mutex mutex_;
  mutable Cached cached_;
};

// Throws Error unless batch > 0 and 0 <= index < count.
void check_batch(std::int64_t batch);
void check_index(std::int64_t index, std::int64_t count);
[[noreturn]] void fail_no_split(Split split);

}  // namespace heddle::data
