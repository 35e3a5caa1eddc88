#include "pretrained/names/names.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "heddle/error.h"
#include "ops/copy/copy.h"
#include "pretrained/names/take.h"

namespace heddle::pretrained {
namespace {

constexpr auto kDigits = "0123456789";

// The parts of a name that the #s and the * of a pattern stand for.
struct Fit {
  std::vector<std::string> numbers;
  std::string word;
};

// Nothing where the name does not fit.
std::optional<Fit> fitted(std::string_view name, std::string_view pattern) {
  Fit found;
  while (!pattern.empty()) {
    if (pattern == "*") {
      if (name != "weight" && name != "bias") return std::nullopt;
      found.word = name;
      return found;
    }
    if (pattern.front() == '#') {
      const std::size_t digits = std::min(name.find_first_not_of(kDigits), name.size());
      if (digits == 0) return std::nullopt;
      found.numbers.emplace_back(name.substr(0, digits));
      name.remove_prefix(digits);
    } else {
      if (name.empty() || name.front() != pattern.front()) return std::nullopt;
      name.remove_prefix(1);
    }
    pattern.remove_prefix(1);
  }
  if (!name.empty()) return std::nullopt;
  return found;
}

}  // namespace

std::optional<std::string> rename(std::string_view name, std::string_view from,
                                  std::string_view to) {
  const auto found = fitted(name, from);
  if (!found) return std::nullopt;
  std::string renamed;
  std::size_t next = 0;
  for (const char c : to)
    if (c == '#' && next < found->numbers.size())
      renamed += found->numbers[next++];
    else if (c == '*')
      renamed += found->word;
    else
      renamed += c;
  return renamed;
}

std::optional<std::int64_t> place_in_stack(std::string_view name, std::string_view from,
                                           std::string_view to) {
  const auto found = fitted(name, from);
  const auto used = static_cast<std::size_t>(std::ranges::count(to, '#'));
  if (!found || found->numbers.size() <= used) return std::nullopt;
  std::int64_t place = 0;
  const std::string& digits = found->numbers[used];
  if (const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), place);
      read.ec != std::errc())
    return std::nullopt;
  return place;
}

// Some files have two spellings of one thing: the one that is there is meant.
const TensorName& NamedWeights::rule_of(const std::string& name) const {
  const TensorName* first = nullptr;
  for (const auto names : {family_.names, family_.shared_names})
    for (const TensorName& rule : names) {
      const auto theirs = rename(name, rule.ours, rule.theirs);
      if (!theirs) continue;
      if (files_.contains(present(*theirs))) return rule;
      if (first == nullptr) first = &rule;
    }
  if (first != nullptr) return *first;
  fail(ErrorCode::invalid_argument, std::string(family_.name),
       "the family has no name for parameter " + name);
}

std::string NamedWeights::present(std::string name) const {
  if (files_.contains(name) || family_.prefix.empty()) return name;
  std::string other = name.starts_with(family_.prefix) ? name.substr(family_.prefix.size())
                                                       : std::string(family_.prefix) + name;
  return files_.contains(other) ? other : name;
}

// Sums of weights are made in f64 where the model is.
Tensor NamedWeights::loaded(const Tensor& source) const {
  return wanted_ == DType::f64 ? ops::cast(source, DType::f64) : source;
}

// One that holds more would be cut in silence.
void NamedWeights::require_stack(const std::string& name) const {
  const Shape shape = files_.shape(name);
  const std::int64_t experts = config_.moe ? config_.moe->experts : 0;
  if (shape.rank() == 0 || shape[0] != experts)
    fail(ErrorCode::shape_mismatch, files_.where(),
         "tensor " + name + " does not fit the configuration",
         std::to_string(experts) + " experts along its first dimension", to_string(shape));
}

Tensor NamedWeights::part(const TensorName& rule, const std::string& ours,
                          std::string_view pattern) {
  const std::string name = present(*rename(ours, rule.ours, pattern));
  asked_for_.insert(name);
  const auto place = place_in_stack(ours, rule.ours, pattern);
  if (place) require_stack(name);
  const Tensor source = loaded(place ? files_.load_one(name, *place) : files_.load(name, wanted_));
  return rule.take == nullptr ? source : rule.take(source, config_);
}

nn::ParameterSource NamedWeights::source() {
  return [this](const std::string& name, const Shape& shape) {
    const TensorName& rule = rule_of(name);
    Tensor tensor = part(rule, name, rule.theirs);
    const bool first_row = rule.join == Join::first_row || rule.join == Join::first_row_if_there;
    if (first_row) {
      const std::string others = present(std::string(rule.second));
      if (rule.join == Join::first_row || files_.contains(others)) {
        asked_for_.insert(others);
        tensor = plus_first_row(tensor, loaded(files_.load(others, DType::f32)));
      }
    } else if (!rule.second.empty()) {
      const Tensor second = part(rule, name, rule.second);
      // Both are halves, or shares of a sum: one that is repeated over the other is another model.
      if (second.shape() != tensor.shape())
        fail(ErrorCode::shape_mismatch, files_.where(),
             "tensor " + present(*rename(name, rule.ours, rule.second)) + " does not fit " +
                 present(*rename(name, rule.ours, rule.theirs)),
             to_string(tensor.shape()), to_string(second.shape()));
      tensor = joined(tensor, second, rule.join);
    }
    if (tensor.shape() != shape)
      fail(ErrorCode::shape_mismatch, files_.where(),
           "tensor " + present(*rename(name, rule.ours, rule.theirs)) +
               " does not fit the configuration",
           to_string(shape), to_string(tensor.shape()));
    return tensor;
  };
}

void NamedWeights::finish() const {
  for (const std::string& name : files_.names()) {
    if (asked_for_.contains(name)) continue;
    if (std::ranges::any_of(family_.unused, [&](std::string_view part) {
          return name.find(part) != std::string::npos;
        }))
      continue;
    fail(ErrorCode::io, files_.where(),
         "tensor " + name + " belongs to no part of the model that the configuration describes");
  }
}

}  // namespace heddle::pretrained
