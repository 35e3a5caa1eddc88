// results.json: written for other programs, and read again for the page.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "compare/results.h"
#include "heddle/error.h"
#include "io/json/json.h"

namespace heddle::compare {

namespace {

using nlohmann::json;

json value_of(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json(text) : value;
}

json curve_json(const std::vector<CurvePoint>& curve) {
  json all = json::array();
  for (const CurvePoint& p : curve) all.push_back({p.step, p.loss});
  return all;
}

json spread_json(const std::vector<CurvePoint>& curve) {
  json all = json::array();
  for (const CurvePoint& p : curve) all.push_back({p.step, p.spread.value_or(0)});
  return all;
}

json to_json(const VariantResult& v) {
  json set = json::object();
  for (const Assignment& a : v.set) set[a.key] = value_of(a.value);
  json j = {{"name", v.name},
            {"set", set},
            {"steps", v.steps},
            {"parameters", v.parameters},
            {"flops_per_step", v.flops_per_step},
            {"curve", curve_json(v.curve)},
            {"runs", v.runs}};
  if (v.diverged.empty()) {
    j["final_loss"] = {{"mean", v.mean}, {"seeds", v.losses}};
    if (v.spread) j["final_loss"]["spread"] = *v.spread;
    j["tokens"] = v.tokens;
  }
  for (const SeedDivergence& d : v.diverged) {
    j["diverged"].push_back(to_json(d.at));
    j["diverged"].back()["seed"] = d.seed;
  }
  if (v.step_seconds > 0) {
    j["step_seconds"] = v.step_seconds;
    j["step_seconds_quartiles"] = {v.step_low, v.step_high};
    j["tokens_per_s"] = v.tokens_per_s;
  }
  if (v.unit.name != "tokens") j["unit"] = {{"name", v.unit.name}, {"tokens", v.unit.tokens_each}};
  if (v.peak_bytes > 0) j["peak_bytes"] = plan::bytes_json(v.peak_bytes, v.peak_by_purpose);
  if (v.kv_bytes_per_token > 0) j["kv_bytes_per_token"] = v.kv_bytes_per_token;
  if (!v.validation.empty()) j["validation_curve"] = curve_json(v.validation);
  if (v.spread) {
    j["curve_spread"] = spread_json(v.curve);
    if (!v.validation.empty()) j["validation_spread"] = spread_json(v.validation);
  }
  return j;
}

json difference_json(const Difference95& d) {
  json j = {{"difference", d.mean}, {"verdict", to_string(d.verdict)}};
  if (d.interval) j["interval"] = *d.interval;
  return j;
}

json to_json(const PairResult& p, const ComparisonResults& r) {
  json j = {
      {"a", r.variants[p.a].name}, {"b", r.variants[p.b].name}, {"loss", difference_json(p.loss)}};
  json time = {{"ratio", std::exp(p.time.mean)}, {"verdict", to_string(p.time.verdict)}};
  if (p.time.interval) {
    time["low"] = std::exp(p.time.mean - *p.time.interval);
    time["high"] = std::exp(p.time.mean + *p.time.interval);
  }
  j["step_seconds"] = time;
  return j;
}

json to_json(const MainEffect& e) {
  json j = {{"key", e.key},
            {"value", value_of(e.value)},
            {"against", value_of(e.against)},
            {"settings", e.settings},
            {"loss", difference_json(e.loss)}};
  j["loss"]["lowest"] = e.lowest;
  j["loss"]["highest"] = e.highest;
  if (e.time_ratio > 0) j["step_seconds"] = {{"ratio", e.time_ratio}};
  return j;
}

Verdict verdict_named(const io::Json& j) {
  for (const Verdict v : {Verdict::same, Verdict::within_noise, Verdict::exceeds_noise,
                          Verdict::models_differ, Verdict::unknown})
    if (j.string() == to_string(v)) return v;
  j.refuse("a verdict: same, within-noise, exceeds-noise, models-differ or unknown");
}

// A value of `set` as the command line has it.
std::string text_of(const io::Json& value) {
  return value.is_string() ? value.string() : value.raw().dump();
}

Difference95 difference_of(const io::Json& j) {
  Difference95 d{j.at("difference").number(), {}, verdict_named(j.at("verdict"))};
  if (j.has("interval")) d.interval = j.at("interval").number();
  return d;
}

std::vector<CurvePoint> curve_of_json(const io::Json& j, const char* curve, const char* spread) {
  std::vector<CurvePoint> points;
  if (!j.has(curve)) return points;
  const io::Json all = j.at(curve);
  points.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    points.push_back({all.at(i).at(0).number(), all.at(i).at(1).number()});
  if (!j.has(spread)) return points;
  const io::Json wide = j.at(spread);
  if (wide.size() != points.size()) wide.refuse(std::to_string(points.size()) + " points");
  for (std::size_t i = 0; i < points.size(); ++i) points[i].spread = wide.at(i).at(1).number();
  return points;
}

void read_memory(const io::Json& j, VariantResult& v) {
  v.peak_bytes = j.at("total").integer(0);
  for (std::size_t i = 0; i < v.peak_by_purpose.size(); ++i)
    v.peak_by_purpose[i] = j.at(to_string(static_cast<Purpose>(i))).integer();
}

run::Unit unit_of_json(const io::Json& j) {
  for (const std::string_view name : {"images", "words"})
    if (j.at("name").string() == name) return {name, j.at("tokens").integer(1)};
  j.at("name").refuse("images or words");
}

VariantResult variant_of(const io::Json& j) {
  VariantResult v;
  v.name = j.at("name").string();
  for (const std::string& key : j.at("set").keys())
    v.set.push_back({key, text_of(j.at("set").at(key))});
  v.steps = j.at("steps").integer(0);
  v.parameters = j.at("parameters").integer(0);
  v.flops_per_step = j.at("flops_per_step").number();
  v.runs = j.at("runs").strings();
  v.curve = curve_of_json(j, "curve", "curve_spread");
  v.validation = curve_of_json(j, "validation_curve", "validation_spread");
  if (j.has("diverged"))
    for (std::size_t i = 0; i < j.at("diverged").size(); ++i) {
      const io::Json d = j.at("diverged").at(i);
      v.diverged.push_back({d.at("seed").integer(), divergence_of(d)});
    }
  else {
    const io::Json loss = j.at("final_loss");
    v.losses = loss.at("seeds").numbers();
    v.mean = loss.at("mean").number();
    if (loss.has("spread")) v.spread = loss.at("spread").number();
    v.tokens = j.at("tokens").number();
  }
  v.step_seconds = j.number_or("step_seconds", 0);
  v.tokens_per_s = j.number_or("tokens_per_s", 0);
  if (j.has("step_seconds_quartiles")) {
    v.step_low = j.at("step_seconds_quartiles").at(0).number();
    v.step_high = j.at("step_seconds_quartiles").at(1).number();
  }
  if (j.has("unit")) v.unit = unit_of_json(j.at("unit"));
  v.kv_bytes_per_token = j.integer_or("kv_bytes_per_token", 0);
  if (j.has("peak_bytes")) read_memory(j.at("peak_bytes"), v);
  return v;
}

PairResult pair_of(const io::Json& j, const std::vector<VariantResult>& variants) {
  const auto index = [&variants](const io::Json& name) {
    const auto found = std::ranges::find(variants, name.string(), &VariantResult::name);
    if (found == variants.end()) name.refuse("the name of a variant");
    return static_cast<std::size_t>(found - variants.begin());
  };
  const io::Json time = j.at("step_seconds");
  PairResult p{index(j.at("a")), index(j.at("b")), difference_of(j.at("loss")), {}};
  p.time.mean = std::log(time.at("ratio").number());
  if (time.has("high")) p.time.interval = std::log(time.at("high").number()) - p.time.mean;
  p.time.verdict = verdict_named(time.at("verdict"));
  return p;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::same: return "same";
    case Verdict::within_noise: return "within-noise";
    case Verdict::exceeds_noise: return "exceeds-noise";
    case Verdict::models_differ: return "models-differ";
    case Verdict::unknown: return "unknown";
  }
  return "unknown";
}

std::string_view to_string(Noise noise) {
  switch (noise) {
    case Noise::seeds: return "seeds";
    case Noise::evaluation: return "evaluation";
    case Noise::none: return "none";
  }
  return "none";
}

json to_json(const ComparisonResults& r) {
  json variants = json::array(), differences = json::array();
  for (const VariantResult& v : r.variants) variants.push_back(to_json(v));
  for (const PairResult& p : r.pairs) differences.push_back(to_json(p, r));
  json all = {{"recipe", r.recipe},
              {"budget", r.budget},
              {"seeds", r.seeds},
              {"loss", r.validation ? "validation" : "training"},
              {"noise", to_string(r.noise)},
              {"same_batches", r.same_batches},
              {"times", to_json(r.timing)},
              {"variants", variants},
              {"differences", differences}};
  for (const MainEffect& e : r.effects) all["main_effects"].push_back(to_json(e));
  return all;
}

void write_results(const std::string& directory, const ComparisonResults& results) {
  io::write_json(directory + "/results.json", to_json(results));
}

ComparisonResults read_results(const std::string& directory) {
  const io::Json j = io::Json::read(directory + "/results.json");
  ComparisonResults r;
  r.recipe = j.at("recipe").string();
  r.budget = j.at("budget").string();
  r.seeds = j.at("seeds").integer(1);
  r.validation = j.at("loss").string() == "validation";
  r.same_batches = j.at("same_batches").boolean();
  const std::string noise = j.at("noise").string();
  for (const Noise n : {Noise::seeds, Noise::evaluation, Noise::none})
    if (noise == to_string(n)) r.noise = n;
  if (j.has("times")) r.timing = timing_of_json(j.at("times"));
  const io::Json variants = j.at("variants"), differences = j.at("differences");
  for (std::size_t i = 0; i < variants.size(); ++i) {
    r.variants.push_back(variant_of(variants.at(i)));
    const VariantResult& v = r.variants.back();
    if (v.diverged.empty() && (!r.best || v.mean < r.variants[*r.best].mean)) r.best = i;
  }
  for (std::size_t i = 0; i < differences.size(); ++i)
    r.pairs.push_back(pair_of(differences.at(i), r.variants));
  r.effects = effects_of(r);
  return r;
}

}  // namespace heddle::compare
