// All sequences over a small alphabet, and what a two-way recurrent network makes of them: is it a
// probability distribution?
#pragma once

#include <memory>
#include <vector>

#include "lab/findings.h"
#include "lab/sequences.h"
#include "model/model.h"

namespace heddle::lab {

inline constexpr std::int32_t kAlphabet = 3;
inline constexpr std::int64_t kLength = 5, kSequences = 243;  // 3⁵

// [243, 6]: token 0, which is given, then x_1 .. x_5 in every combination; x_5 changes fastest.
Ids every_sequence();

// A two-way Elman network of Heddle's in float64. Task::tag: h_t of the whole sequence, Task::
// language: each prefix for itself. Both give scores for the next token.
std::unique_ptr<model::Model> two_way_network(model::Task task);

// The question to the network: x_t at place t − 1.
model::Batch next_tokens(model::Task task);

// log p(x_t | …) for every sequence and t: [243][5].
std::vector<std::vector<double>> log_probabilities(const model::Model& model);

// Σ over all sequences of Π p(x_t | …): 1 if this is a distribution.
double total_probability(const Findings& f, const std::vector<std::vector<double>>& log_p);

// The most by which p(x_1) changes when only x_5 does.
double effect_of_the_future(const Findings& f, const std::vector<std::vector<double>>& log_p);

// Trains it to predict the next token of all sequences alike, whose entropy is log 3 per token.
std::vector<double> train_on_every_sequence(model::Model& model);

// The measurements of both experiments on two-way networks.
struct TwoWayStudy {
  TwoWayStudy(const Findings& f, model::Task task);

  double effect = 0;                         // of the future, with random weights
  double total_before = 0, total_after = 0;  // probability of all sequences, around the training
  // The network of the other task, with random weights: there the answers are the opposite.
  double other_effect = 0, other_total = 0;
  double entropy = 0;          // per token, nats
  std::vector<double> losses;  // per token, of the steps of the training

  // The losses of `name` beside the entropy, called `bound`.
  report::LineChart chart(const std::string& name, const std::string& bound) const;
};

}  // namespace heddle::lab
