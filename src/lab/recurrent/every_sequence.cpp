#include "lab/recurrent/every_sequence.h"

#include <cmath>

#include "heddle/tape.h"
#include "lab/tools.h"
#include "ops/softmax/softmax.h"

namespace heddle::lab {

namespace {

constexpr std::int64_t kSteps = 200;
constexpr double kRate = 0.02;

const nn::Pass kPass{.precision = DType::f64};

// Places that are read: of the whole sequence all six, of prefixes the five that have a successor.
std::int64_t places(model::Task task) { return task == model::Task::tag ? kLength + 1 : kLength; }

}  // namespace

Ids every_sequence() {
  Ids all;
  for (std::int64_t number = 0; number < kSequences; ++number) {
    all.push_back(0);
    std::int64_t power = kSequences / kAlphabet;
    for (std::int64_t t = 0; t < kLength; ++t, power /= kAlphabet)
      all.push_back(static_cast<std::int32_t>(number / power % kAlphabet));
  }
  return all;
}

std::unique_ptr<model::Model> two_way_network(model::Task task) {
  model::ModelConfig config;
  config.kind = model::Kind::birnn;
  config.task = task;
  config.layers = 1;
  config.width = 16;
  config.sizes.vocabulary = kAlphabet;
  config.sizes.context = kLength + 1;
  if (task == model::Task::tag) config.sizes.classes = kAlphabet;
  return model::build_model(config, {.seed = 4, .dtype = DType::f64});
}

model::Batch next_tokens(model::Task task) {
  const Ids all = every_sequence();
  Ids tokens, targets;
  for (std::int64_t s = 0; s < kSequences; ++s)
    for (std::int64_t t = 0; t < places(task); ++t) {
      const auto at = static_cast<std::size_t>(s * (kLength + 1) + t);
      tokens.push_back(all[at]);
      targets.push_back(t < kLength ? all[at + 1] : model::kIgnore);
    }
  return batch_of(tokens, targets, kSequences);
}

std::vector<std::vector<double>> log_probabilities(const model::Model& model) {
  const model::Task task = model.config().task;
  const model::Batch batch = next_tokens(task);
  const NoGrad no_grad;
  // [243, places, 3]
  const std::vector<double> log_p =
      ops::log_softmax(model.logits(batch, kPass)).to_vector<double>();
  const std::vector<std::int32_t> targets = batch.targets.to_vector<std::int32_t>();
  std::vector<std::vector<double>> out;
  for (std::int64_t s = 0; s < kSequences; ++s) {
    out.emplace_back();
    for (std::int64_t t = 0; t < kLength; ++t) {
      const auto at = static_cast<std::size_t>(s * places(task) + t);
      out.back().push_back(log_p[at * kAlphabet + static_cast<std::size_t>(targets[at])]);
    }
  }
  return out;
}

double total_probability(const Findings& f, const std::vector<std::vector<double>>& log_p) {
  const std::size_t first = f.fault("sequence-left-out") ? 1 : 0;
  double total = 0;
  for (std::size_t s = first; s < log_p.size(); ++s) {
    double sum = 0;
    for (const double v : log_p[s]) sum += v;
    total += std::exp(sum);
  }
  return total;
}

double effect_of_the_future(const Findings& f, const std::vector<std::vector<double>>& log_p) {
  const bool other_token = f.fault("first-token-changes");
  double most = 0;
  // Three neighbours have the same x_1 .. x_4.
  for (std::size_t s = 0; s < log_p.size(); ++s) {
    const std::size_t first = other_token ? s % (log_p.size() / kAlphabet) : s - s % kAlphabet;
    most = std::max(most, std::abs(std::exp(log_p[s][0]) - std::exp(log_p[first][0])));
  }
  return most;
}

std::vector<double> train_on_every_sequence(model::Model& model) {
  const model::Batch batch = next_tokens(model.config().task);
  return train_steps(model.parameters(), kSteps, kRate,
                     [&](std::int64_t /*step*/) { return model.loss(batch, kPass, 0).total; });
}

TwoWayStudy::TwoWayStudy(const Findings& f, model::Task task)
    : entropy(std::log(double{kAlphabet})) {
  using model::Task;
  const Task other = task == Task::tag ? Task::language : Task::tag;
  const auto network = two_way_network(f.fault("other-network") ? other : task);
  const auto before = log_probabilities(*network);
  total_before = total_probability(f, before);
  effect = effect_of_the_future(f, before);
  if (f.fault("untrained"))
    losses = {network->loss(next_tokens(network->config().task), kPass, 0).total.item()};
  else
    losses = train_on_every_sequence(*network);
  total_after = total_probability(f, log_probabilities(*network));
  const auto opposite = log_probabilities(*two_way_network(other));
  other_effect = effect_of_the_future(f, opposite);
  other_total = total_probability(f, opposite);
}

report::LineChart TwoWayStudy::chart(const std::string& name, const std::string& bound) const {
  report::LineChart chart;
  chart.x_label = tr("step");
  chart.y_label = tr("loss per token, nats");
  report::Series line{bound, {}};
  line.points = {{0, entropy}, {static_cast<double>(losses.size()), entropy}};
  chart.series = {{name, smoothed(losses, 5)}, line};
  return chart;
}

}  // namespace heddle::lab
