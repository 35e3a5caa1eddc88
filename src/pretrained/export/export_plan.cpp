#include "pretrained/export/export_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "heddle/error.h"
#include "ops/concat/concat.h"
#include "ops/copy/copy.h"
#include "ops/view/view.h"
#include "pretrained/export/axes.h"
#include "pretrained/names/give.h"
#include "pretrained/names/names.h"

namespace heddle::pretrained {
namespace {

// "layers.3.attention.q.weight": the layer whose queries or keys these are; nothing for others.
std::optional<std::int64_t> layer_of_pairs(const std::string& name) {
  for (const char* pattern : {"layers.#.attention.q.*", "layers.#.attention.k.*",
                              "layers.#.attention.q_norm.*", "layers.#.attention.k_norm.*"})
    if (const auto layer = place_in_stack(name, pattern, "")) return layer;
  return std::nullopt;
}

std::optional<ops::Pairing> pairing_of(const nn::AttentionConfig& attention) {
  const auto* rope = std::get_if<nn::RopePosition>(&attention.position);
  if (rope == nullptr) return std::nullopt;
  return rope->pairing;
}

}  // namespace

GivenWeights::GivenWeights(const Family& family, const model::Model& model)
    : family_(family), config_(model.config()), read_as_(model.config()) {
  using Rows = Source::Rows;
  for (const nn::Parameter& parameter : model.parameters().all()) {
    const TensorName& rule = rule_of(parameter.name);
    const bool two = !rule.second.empty();
    if (two && rule.join != Join::below)
      fail(
          ErrorCode::invalid_argument, std::string(family_.name),
          "parameter " + parameter.name + " cannot be written yet: its files have it in two parts");
    add_source(rule, parameter, rule.theirs, two ? Rows::first_half : Rows::all);
    if (two) add_source(rule, parameter, rule.second, Rows::second_half);
  }
}

const TensorName& GivenWeights::rule_of(const std::string& ours) const {
  for (const auto names : {family_.names, family_.shared_names})
    for (const TensorName& rule : names)
      if (rename(ours, rule.ours, rule.theirs) && (rule.when == nullptr || rule.when(config_)))
        return rule;
  fail(ErrorCode::invalid_argument, std::string(family_.name),
       "the family has no name for parameter " + ours);
}

void GivenWeights::add_source(const TensorName& rule, const nn::Parameter& parameter,
                              std::string_view pattern, Source::Rows rows) {
  sources_[*rename(parameter.name, rule.ours, pattern)].push_back(
      {.rule = &rule,
       .parameter = &parameter,
       .rows = rows,
       .place = place_in_stack(parameter.name, rule.ours, pattern).value_or(-1)});
}

std::vector<std::string> GivenWeights::names() const {
  std::vector<std::string> all;
  all.reserve(sources_.size() + extra_.size());
  for (const auto& [name, parts] : sources_) all.push_back(name);
  for (const auto& [name, tensor] : extra_) all.push_back(name);
  return all;
}

bool GivenWeights::contains(std::string_view name) const {
  return sources_.contains(name) || extra_.contains(name);
}

Tensor GivenWeights::ordered(const nn::Parameter& parameter) const {
  Tensor tensor = parameter.tensor.detach().to(Device::cpu);
  const auto layer = layer_of_pairs(parameter.name);
  if (!layer) return tensor;
  const nn::AttentionConfig here = model::self_attention(config_, *layer, true);
  const auto from = pairing_of(here);
  const auto to = pairing_of(model::self_attention(read_as_, *layer, true));
  if (!from || !to || *from == *to) return tensor;
  return paired_otherwise(tensor, here, *from);
}

Tensor GivenWeights::rows_of(const Source& source) const {
  Tensor all = ordered(*source.parameter);
  if (source.rows == Source::Rows::all) return all;
  const std::int64_t half = all.size(0) / 2;
  const bool first = source.rows == Source::Rows::first_half;
  return ops::slice(all, 0, first ? 0 : half, first ? half : 2 * half);
}

Tensor GivenWeights::load(std::string_view name, DType) const {
  if (const auto own = extra_.find(name); own != extra_.end()) return own->second;
  const auto found = sources_.find(name);
  if (found == sources_.end())
    fail(ErrorCode::invalid_argument, where(), "tensor " + std::string(name) + " is missing");
  std::vector<Source> parts = found->second;
  if (parts.front().place < 0) {
    std::vector<Taken> taken;
    taken.reserve(parts.size());
    for (const Source& part : parts) taken.push_back({part.rule->take, rows_of(part)});
    return ops::contiguous(given(name, taken, config_));
  }
  // Experts one behind the other.
  std::ranges::sort(parts, {}, &Source::place);
  std::vector<Tensor> experts;
  experts.reserve(parts.size());
  for (const Source& part : parts) {
    const Taken one{part.rule->take, rows_of(part)};
    const Tensor expert = ops::contiguous(given(name, {&one, 1}, config_));
    Shape shape = expert.shape();
    shape.insert(0, 1);
    experts.push_back(ops::reshape(expert, shape));
  }
  return ops::concat(experts, 0);
}

Shape GivenWeights::shape(std::string_view name) const { return load(name, DType::f32).shape(); }

namespace {

constexpr std::size_t kShownDifferences = 3;

std::string shown(const std::vector<Difference>& all) {
  std::string text;
  for (std::size_t i = 0; i < all.size() && i < kShownDifferences; ++i)
    text += (i == 0 ? "" : "; ") + all[i].name + " is " + all[i].wanted +
            (all[i].got.empty() ? "" : ", there " + all[i].got);
  if (all.size() > kShownDifferences)
    text += "; and " + std::to_string(all.size() - kShownDifferences) + " more";
  return text;
}

// What the format can say of a model whose angles are not those of its base: their factors.
void add_factors(const Family& family, const model::ModelConfig& config, GivenWeights& weights) {
  const nn::AttentionConfig a = model::self_attention(config, 0, true);
  const auto* rope = std::get_if<nn::RopePosition>(&a.position);
  if (!family.factors || rope == nullptr || nn::rope_attention_factor(*rope) != 1) return;
  const bool listed = std::holds_alternative<nn::Llama3Scaling>(rope->scaling) ||
                      std::holds_alternative<nn::FactorScaling>(rope->scaling) ||
                      std::holds_alternative<nn::NtkScaling>(rope->scaling);
  if (!listed) return;
  nn::RopeOptions plain = *rope;
  plain.scaling = nn::NoScaling{};
  const auto unscaled = nn::rope_frequencies(plain, a.width_of_head());
  const auto scaled = nn::rope_frequencies(*rope, a.width_of_head());
  std::vector<float> factors;
  factors.reserve(scaled.size());
  for (std::size_t i = 0; i < scaled.size(); ++i)
    factors.push_back(static_cast<float>(unscaled[i] / scaled[i]));
  weights.add("rope_freqs.weight",
              Tensor::from<float>({static_cast<std::int64_t>(factors.size())}, factors));
}

struct Refusal {
  std::vector<Difference> why;
  bool unnamed = false;  // the family cannot even name the parameters, or read what it wrote
  bool nearer_than(const Refusal& other) const {
    return unnamed != other.unnamed ? other.unnamed : why.size() < other.why.size();
  }
};

std::optional<ExportPlan> planned(const Family& family, const model::Model& model,
                                  ReadBack read_back, Refusal& refusal) {
  ExportPlan plan;
  plan.family = &family;
  plan.settings = family.write(model.config());
  try {
    plan.weights = std::make_unique<GivenWeights>(family, model);
    add_factors(family, model.config(), *plan.weights);
    const model::ModelConfig read = read_back(family, plan.settings, *plan.weights);
    refusal.why = differences(model.config(), read);
    plan.weights->read_as(read);
  } catch (const Error& e) {
    refusal = {.why = {{"a choice", e.what(), ""}}, .unnamed = true};
  }
  if (!refusal.why.empty()) return std::nullopt;
  return plan;
}

}  // namespace

ExportPlan plan_export(std::span<const Family> families, std::string_view first,
                       const model::Model& model, ReadBack read_back) {
  std::vector<const Family*> order;
  order.reserve(families.size());
  for (const Family& family : families)
    if (family.write != nullptr) order.push_back(&family);
  const auto own = std::ranges::find(order, first, &Family::name);
  if (own != order.end()) std::rotate(order.begin(), own, own + 1);
  Refusal nearest;
  const Family* near = nullptr;
  for (const Family* family : order) {
    Refusal refusal;
    if (auto plan = planned(*family, model, read_back, refusal)) return std::move(*plan);
    if (near == nullptr || refusal.nearer_than(nearest)) {
      nearest = std::move(refusal);
      near = family;
    }
  }
  fail(ErrorCode::invalid_argument, "export",
       "no family of this format has the model's choices together",
       "choices of one; the nearest is " + std::string(near->name), shown(nearest.why));
}

}  // namespace heddle::pretrained
