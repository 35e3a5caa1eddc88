#include "run/state.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "heddle/error.h"
#include "io/json/json.h"

namespace heddle::run {

std::string to_json(const TrainState& s) {
  nlohmann::json j = {{"step", s.step},
                      {"tokens", s.tokens},
                      {"seconds", s.seconds},
                      {"loss_sum", s.loss_sum},
                      {"loss_weight", s.loss_weight},
                      {"log_bytes", s.log_bytes},
                      {"data", std::to_string(s.data)}};
  if (s.best_step > 0) {
    j["best_loss"] = s.best_loss;
    j["best_step"] = s.best_step;
    j["stale"] = s.stale;
  }
  if (s.peak_bytes > 0) {
    j["peak_bytes"] = s.peak_bytes;
    j["peak_by_purpose"] = s.peak_by_purpose;
  }
  if (!s.recipe.empty()) j["recipe"] = s.recipe;
  return j.dump();
}

TrainState state_from_json(const std::string& json, const std::string& where) {
  const io::Json j = io::Json::parse(json, where);
  TrainState s;
  s.step = j.at("step").integer(0);
  s.tokens = j.at("tokens").integer(0);
  s.seconds = j.at("seconds").number();
  s.loss_sum = j.at("loss_sum").number();
  s.loss_weight = j.at("loss_weight").number();
  s.log_bytes = static_cast<std::uint64_t>(j.at("log_bytes").integer(0));
  const std::string data = j.at("data").string();
  const auto parsed = std::from_chars(data.data(), data.data() + data.size(), s.data);
  if (parsed.ec != std::errc() || parsed.ptr != data.data() + data.size())
    j.at("data").refuse("a number");
  s.recipe = j.string_or("recipe", "");
  if (j.has("best_step")) {
    s.best_loss = j.at("best_loss").number();
    s.best_step = j.at("best_step").integer(1);
    s.stale = j.at("stale").integer(0);
  }
  if (j.has("peak_bytes")) {
    s.peak_bytes = j.at("peak_bytes").integer(0);
    const io::Json by_purpose = j.at("peak_by_purpose");
    if (by_purpose.size() != s.peak_by_purpose.size())
      by_purpose.refuse(std::to_string(s.peak_by_purpose.size()) + " numbers");
    for (std::size_t i = 0; i < s.peak_by_purpose.size(); ++i)
      s.peak_by_purpose[i] = by_purpose.at(i).integer();
  }
  return s;
}

TrainState state_of(const io::SafetensorsFile& checkpoint) {
  const auto text = checkpoint.metadata().find(kStateKey);
  if (text == checkpoint.metadata().end())
    fail(ErrorCode::io, checkpoint.path(), "is not a checkpoint",
         "metadata " + std::string(kStateKey));
  return state_from_json(text->second, checkpoint.path() + ": " + kStateKey);
}

TrainState read_state(const std::string& path) { return state_of(io::SafetensorsFile(path)); }

std::optional<TrainState> newest_state(const RunPaths& paths) {
  std::vector<std::int64_t> steps = checkpoint_steps(paths);
  std::ranges::reverse(steps);
  for (const std::int64_t step : steps) {
    try {
      TrainState state = read_state(paths.checkpoint(step));
      if (state.step == step) return state;
    } catch (const Error& e) {
      if (e.code() != ErrorCode::io) throw;
    }
  }
  return std::nullopt;
}

}  // namespace heddle::run
