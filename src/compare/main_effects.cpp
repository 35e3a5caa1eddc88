// The effect of each key by itself, where several vary.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "compare/results.h"

namespace heddle::compare {

namespace {

using Setting = std::map<std::string, std::string>;  // values by key

Setting setting_of(const VariantResult& variant) {
  Setting all;
  for (const Assignment& a : variant.set) all[a.key] = a.value;
  return all;
}

std::set<std::string> keys_in(const Setting& setting) {
  std::set<std::string> keys;
  for (const auto& [key, value] : setting) keys.insert(key);
  return keys;
}

// The values of a key, in the order of the variants.
std::vector<std::string> values_of(const std::vector<VariantResult>& variants,
                                   const std::string& key) {
  std::vector<std::string> values;
  for (const VariantResult& v : variants) {
    const Setting s = setting_of(v);
    const auto found = s.find(key);
    if (found != s.end() && std::ranges::find(values, found->second) == values.end())
      values.push_back(found->second);
  }
  return values;
}

// Two variants that differ in nothing but the key.
struct SettingPair {
  const VariantResult* with;
  const VariantResult* against;
};

std::vector<SettingPair> pairs_of(const std::vector<VariantResult>& variants,
                                  const MainEffect& effect) {
  std::map<Setting, SettingPair> by_others;
  for (const VariantResult& v : variants) {
    Setting others = setting_of(v);
    const std::string value = others[effect.key];
    others.erase(effect.key);
    SettingPair& pair = by_others.try_emplace(others, SettingPair{nullptr, nullptr}).first->second;
    if (value == effect.value && pair.with == nullptr) pair.with = &v;
    if (value == effect.against && pair.against == nullptr) pair.against = &v;
  }
  std::vector<SettingPair> whole;
  for (const auto& [others, pair] : by_others) {
    const bool both = pair.with != nullptr && pair.against != nullptr;
    if (both && pair.with->diverged.empty() && pair.against->diverged.empty() &&
        pair.with->losses.size() == pair.against->losses.size())
      whole.push_back(pair);
  }
  return whole;
}

void measure(const std::vector<SettingPair>& pairs, MainEffect& effect) {
  effect.settings = static_cast<std::int64_t>(pairs.size());
  if (pairs.empty()) return;
  // Seed by seed: its luck is in all settings alike, so that these means scatter as seeds do.
  std::vector<double> by_seed(pairs[0].with->losses.size()), single, times;
  for (const SettingPair& p : pairs) {
    for (std::size_t s = 0; s < std::min(by_seed.size(), p.with->losses.size()); ++s)
      by_seed[s] += (p.with->losses[s] - p.against->losses[s]) / static_cast<double>(pairs.size());
    single.push_back(p.with->mean - p.against->mean);
    if (p.with->step_seconds > 0 && p.against->step_seconds > 0)
      times.push_back(std::log(p.with->step_seconds / p.against->step_seconds));
  }
  effect.loss = judge(by_seed);
  effect.lowest = *std::ranges::min_element(single);
  effect.highest = *std::ranges::max_element(single);
  effect.time_ratio = times.empty() ? 0 : std::exp(mean_of(times));
}

}  // namespace

std::vector<MainEffect> main_effects(const std::vector<VariantResult>& all) {
  std::vector<VariantResult> variants;  // other recipes have keys of their own
  for (const VariantResult& v : all)
    if (keys_in(setting_of(v)) == keys_in(setting_of(all[0]))) variants.push_back(v);
  std::vector<MainEffect> effects;
  std::size_t varied = 0;
  for (const Assignment& a : variants.empty() ? std::vector<Assignment>() : variants[0].set) {
    const std::vector<std::string> values = values_of(variants, a.key);
    if (values.size() < 2) continue;
    ++varied;
    for (std::size_t i = 1; i < values.size(); ++i) {
      MainEffect effect{.key = a.key, .value = values[i], .against = values[0], .loss = {}};
      measure(pairs_of(variants, effect), effect);
      if (effect.settings > 0) effects.push_back(std::move(effect));
    }
  }
  return varied < 2 ? std::vector<MainEffect>() : effects;
}

}  // namespace heddle::compare
