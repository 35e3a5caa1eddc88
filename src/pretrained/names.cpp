#include "pretrained/names.h"

#include <algorithm>
#include <array>
#include <vector>

#include "heddle/error.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"

namespace heddle::pretrained {
namespace {

constexpr auto kDigits = "0123456789";

// The texts that the #s and the * of a pattern stand for in a name; nothing where it does not fit.
std::optional<std::vector<std::string>> fitted(std::string_view name, std::string_view pattern) {
  std::vector<std::string> found;
  while (!pattern.empty()) {
    if (pattern == "*") {
      if (name != "weight" && name != "bias") return std::nullopt;
      found.emplace_back(name);
      return found;
    }
    if (pattern.front() == '#') {
      const std::size_t digits = std::min(name.find_first_not_of(kDigits), name.size());
      if (digits == 0) return std::nullopt;
      found.emplace_back(name.substr(0, digits));
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
    if ((c == '#' || c == '*') && next < found->size())
      renamed += (*found)[next++];
    else
      renamed += c;
  return renamed;
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
  if (!files_.contains(name) && !family_.prefix.empty() && name.starts_with(family_.prefix)) {
    std::string without = name.substr(family_.prefix.size());
    if (files_.contains(without)) return without;
  }
  return name;
}

Tensor NamedWeights::part(const TensorName& rule, const std::string& theirs) {
  const std::string name = present(theirs);
  asked_for_.insert(name);
  const Tensor source = files_.load(name);
  return rule.take == nullptr ? source : rule.take(source, config_);
}

nn::ParameterSource NamedWeights::source() {
  return [this](const std::string& name, const Shape& shape) {
    const TensorName& rule = rule_of(name);
    Tensor tensor = part(rule, *rename(name, rule.ours, rule.theirs));
    if (!rule.below.empty()) {
      const std::array parts{tensor, part(rule, *rename(name, rule.ours, rule.below))};
      tensor = ops::concat(parts, 0);
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
