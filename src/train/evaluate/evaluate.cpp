#include "train/evaluate/evaluate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/divide.h"
#include "heddle/tape.h"
#include "nn/finite.h"
#include "ops/copy/copy.h"
#include "ops/softmax/softmax.h"
#include "optim/split.h"
#include "train/evaluate/lengthen.h"

namespace heddle::train {

namespace {

constexpr const char* kWhat = "evaluating";

std::string_view name_of(data::Split split) {
  switch (split) {
    case data::Split::training: return "training";
    case data::Split::validation: return "validation";
    case data::Split::test: return "test";
  }
  return "unknown";
}

struct Sums {
  double loss = 0;
  std::int64_t counted = 0;
  std::int64_t hits = 0;
};

// Facts about a batch, in which each target is told apart: whoever adds them has the same sums.
struct Judged {
  std::vector<float> shares;  // log of the probability of each target that counts
  std::int64_t hits = 0;      // targets with the largest score of their row
};

// Target by target, one after the other in float64: so the sum does not depend on where a batch
// ends.
void add(const Judged& batch, Sums& sums) {
  for (const float share : batch.shares) sums.loss -= static_cast<double>(share);
  sums.counted += static_cast<std::int64_t>(batch.shares.size());
  sums.hits += batch.hits;
}

void judge(const Tensor& logits, const Tensor& targets, Judged& out) {
  const std::int64_t labels = logits.size(-1);
  const Tensor scores = ops::contiguous(ops::cast(logits, DType::f32));
  const std::array<Tensor, 2> made = {scores, ops::log_softmax(scores)};
  const std::vector<Tensor> here = read(made);
  const float* score = here[0].data<float>();
  const float* share = here[1].data<float>();
  for (const std::int32_t target : targets.to_vector<std::int32_t>()) {
    if (target != model::kIgnore) {
      out.shares.push_back(share[target]);
      out.hits += std::max_element(score, score + labels) - score == target ? 1 : 0;
    }
    score += labels;
    share += labels;
  }
}

// All scores of a batch may be too many to hold: as many rows at a time as the fused loss takes in
// training, but whole sequences. Not where tokens compete for the places of experts: those of one
// part would leave each other more of them.
std::int64_t parts_of(const model::Batch& batch, const model::ModelConfig& config) {
  constexpr std::int64_t kScores = std::int64_t{1} << 20, kLeastRows = 512;
  if (config.moe && config.moe->capacity) return 1;
  const std::int64_t labels =
      config.sizes.classes > 0 ? config.sizes.classes : config.vocabulary_of_target();
  const std::int64_t most = std::max(kScores / std::max<std::int64_t>(labels, 1), kLeastRows);
  const std::int64_t parts = ceil_div(batch.targets.elements(), most);
  return std::clamp<std::int64_t>(parts, 1, optim::sequences_of(batch));
}

// Attention answers up to eight queries, as generation asks them, by a kernel of their own, which
// sums in another order. Which of the two a short sequence meets must not follow from the others in
// its batch: all are padded to nine, or to the context where no sequence has nine.
std::int64_t least_length(const model::ModelConfig& c) {
  constexpr std::int64_t kLeast = 9;
  const bool attends = !c.recurrent() || c.kind == model::Kind::rnn_seq2seq;
  const bool competes = c.moe && c.moe->capacity;  // for places, which padding would change
  return attends && !competes ? std::min(kLeast, c.sizes.context) : 0;
}

Judged judged(const model::Model& model, const model::Batch& batch, const nn::Pass& pass) {
  Judged out;
  const model::Batch whole = lengthened(batch, least_length(model.config()));
  for (const model::Batch& part : optim::split(whole, parts_of(whole, model.config())))
    judge(model.logits(part, pass), part.targets, out);
  return out;
}

// Of one batch by each rank, what all of them found, in the order of the ranks; some of the last
// ones may have had none.
std::vector<Judged> exchanged(distributed::Communicator& group, Judged own) {
  if (group.alone()) return {std::move(own)};
  const auto hits = group.all_gather_values(std::span<const std::int64_t>(&own.hits, 1), kWhat);
  const auto* bytes = reinterpret_cast<const char*>(own.shares.data());
  const std::vector<std::string> texts =
      group.all_gather_text(std::string(bytes, bytes + own.shares.size() * sizeof(float)), kWhat);
  std::vector<Judged> all(texts.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].hits = hits[i];
    all[i].shares.resize(texts[i].size() / sizeof(float));
    if (!texts[i].empty()) std::memcpy(all[i].shares.data(), texts[i].data(), texts[i].size());
  }
  return all;
}

}  // namespace

Evaluation evaluate(const model::Model& model, const data::Dataset& data,
                    const EvaluateOptions& options) {
  const std::string split(name_of(options.split));
  if (!data.has(options.split))
    fail(ErrorCode::invalid_argument, "evaluate", "there is no " + split + " data",
         options.split == data::Split::test
             ? "files of it in [data] of the recipe, or the validation split"
             : "files of it in [data] of the recipe, or data.validation_share");
  const model::Task task = model.config().task;
  const bool labels = task == model::Task::tag || task == model::Task::classify;
  const NoGrad no_grad;
  nn::Pass pass;
  pass.precision = options.precision;
  Sums sums;
  const std::int64_t all = data.batches(options.split, options.batch);
  const std::int64_t count = std::min(all, options.max_batches.value_or(all));
  distributed::Communicator alone;
  distributed::Communicator& group = options.group != nullptr ? *options.group : alone;
  for (std::int64_t i = 0; i < count; i += group.size()) {
    Judged own;
    if (const std::int64_t mine = i + group.rank(); mine < count)
      own = judged(model, data.batch(options.split, mine, options.batch), pass);
    const std::vector<Judged> round = exchanged(group, std::move(own));
    for (std::int64_t j = i; j < std::min(count, i + group.size()); ++j) {
      const Judged& batch = round[static_cast<std::size_t>(j - i)];
      const double before = sums.loss;
      add(batch, sums);
      const auto counted = static_cast<std::int64_t>(batch.shares.size());
      if (options.each && counted > 0)
        options.each((sums.loss - before) / static_cast<double>(counted), counted);
      if (options.progress) options.progress(j + 1, count);
    }
  }
  Evaluation result;
  result.tokens = sums.counted;
  if (sums.counted == 0)
    fail(ErrorCode::invalid_argument, "evaluate", "the " + split + " data has nothing to predict");
  result.loss = sums.loss / static_cast<double>(sums.counted);
  result.perplexity = std::exp(result.loss);
  if (!std::isfinite(result.loss))
    fail(ErrorCode::failed, "evaluate", "the loss on the " + split + " data", "finite",
         nn::bad_text(result.loss));
  if (labels) result.accuracy = static_cast<double>(sums.hits) / static_cast<double>(sums.counted);
  return result;
}

}  // namespace heddle::train
