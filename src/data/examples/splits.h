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
#include "data/loading.h"

namespace heddle::data {

template <class Raw>
using RawSplits = std::array<std::optional<std::vector<Raw>>, kSplits>;

// Reads what the request wants of each split and holds out a part of the training data.
template <class Raw, class Read>
RawSplits<Raw> read_splits(const LoadRequest& request, const Read& read) {
  RawSplits<Raw> splits;
  auto& [training, validation, test] = splits;
  if (request.reads_training()) training = read(Split::training);
  if (request.wants(Split::validation) && request.config.validation.given())
    validation = read(Split::validation);
  if (request.wants(Split::test)) test = read(Split::test);
  if (training && request.held_out_share() > 0) {
    const std::vector<bool> held = held_out(static_cast<std::int64_t>(training->size()),
                                            request.held_out_share(), "data.validation_share");
    std::vector<Raw> kept, out;
    for (std::size_t i = 0; i < held.size(); ++i)
      (held[i] ? out : kept).push_back(std::move((*training)[i]));
    training = std::move(kept);
    if (request.wants(Split::validation)) validation = std::move(out);
  }
  return splits;
}

// One split on its way to being numbers.
struct EncodedSplit : ExampleSplit {
  Split which = Split::training;
  SplitFacts facts = {};
};

// encode(request, codec, raw, split) fills in the examples and the facts of a split.
template <class Raw, class Encode>
std::unique_ptr<Dataset> encode_splits(const LoadRequest& request,
                                       const std::shared_ptr<const Codec>& codec,
                                       const RawSplits<Raw>& raw, const Encode& encode) {
  std::array<ExampleSplit, kSplits> splits;
  std::string summary = describe_tokenizers(*codec);
  for (std::size_t i = 0; i < splits.size(); ++i) {
    EncodedSplit split;
    split.which = static_cast<Split>(i);
    if (!raw[i] || !request.wants(split.which)) continue;
    encode(request, *codec, *raw[i], split);
    check_not_empty(request, split.which, split.facts);
    summary += describe(split.which, split.facts, request.max_length());
    splits[i] = std::move(split);
  }
  return std::make_unique<ExampleDataset>(codec, std::move(splits), std::move(summary));
}

}  // namespace heddle::data
