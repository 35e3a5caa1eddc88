// From the raw examples of each split to a dataset: the part that is the same for pairs, tags and
// texts with a label.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/examples/examples.h"
#include "data/job.h"

namespace heddle::data {

template <class Raw>
using RawSplits = std::array<std::optional<std::vector<Raw>>, kSplits>;

// Reads what the job wants of each split and holds out a part of the training data.
template <class Raw, class Read>
RawSplits<Raw> read_splits(const Job& job, const Read& read) {
  RawSplits<Raw> splits;
  auto& [training, validation, test] = splits;
  if (job.reads_training()) training = read(Split::training);
  if (job.wants(Split::validation) && job.config.validation.given())
    validation = read(Split::validation);
  if (job.wants(Split::test)) test = read(Split::test);
  if (training && job.held_out_share() > 0) {
    const std::vector<bool> held = held_out(static_cast<std::int64_t>(training->size()),
                                            job.held_out_share(), "data.validation_share");
    std::vector<Raw> kept, out;
    for (std::size_t i = 0; i < held.size(); ++i)
      (held[i] ? out : kept).push_back(std::move((*training)[i]));
    training = std::move(kept);
    if (job.wants(Split::validation)) validation = std::move(out);
  }
  return splits;
}

// One split on its way to being numbers.
struct EncodedSplit : ExampleSplit {
  Split which = Split::training;
  SplitFacts facts = {};
};

// encode(job, codec, raw, split) fills in the examples and the facts of a split.
template <class Raw, class Encode>
std::unique_ptr<Dataset> encode_splits(const Job& job, const std::shared_ptr<const Codec>& codec,
                                       const RawSplits<Raw>& raw, const Encode& encode) {
  std::array<ExampleSplit, kSplits> splits;
  std::string summary = describe_tokenizers(*codec);
  for (std::size_t i = 0; i < splits.size(); ++i) {
    EncodedSplit split;
    split.which = static_cast<Split>(i);
    if (!raw[i] || !job.wants(split.which)) continue;
    encode(job, *codec, *raw[i], split);
    check_not_empty(job, split.which, split.facts);
    summary += describe(split.which, split.facts, job.max_length());
    splits[i] = std::move(split);
  }
  return std::make_unique<ExampleDataset>(codec, std::move(splits), std::move(summary));
}

}  // namespace heddle::data
