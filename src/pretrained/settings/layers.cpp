#include "pretrained/settings/layers.h"

#include <algorithm>
#include <string>

namespace heddle::pretrained {

std::vector<bool> sliding_layers(const io::TomlTable& settings, std::int64_t layers,
                                 const std::function<bool(std::int64_t)>& rule) {
  std::vector<bool> sliding;
  if (!settings.has("layer_types")) {
    for (std::int64_t i = 0; i < layers; ++i) sliding.push_back(rule(i));
    return sliding;
  }
  for (const std::string& type : settings.strings("layer_types")) {
    if (type != "full_attention" && type != "sliding_attention")
      settings.refuse("layer_types", "full_attention or sliding_attention for every layer");
    sliding.push_back(type == "sliding_attention");
  }
  if (std::ssize(sliding) != layers)
    settings.refuse("layer_types", "one for each of " + std::to_string(layers) + " layers");
  return sliding;
}

std::optional<std::int64_t> read_look_back(const io::TomlTable& settings) {
  if (!settings.has("sliding_window")) return std::nullopt;
  return settings.integer("sliding_window", {1, std::int64_t{1} << 30}) - 1;
}

void set_layers(model::ModelConfig& config,
                const std::function<nn::LayerAttention(std::int64_t)>& of_layer) {
  std::vector<nn::LayerAttention> all;
  all.reserve(static_cast<std::size_t>(config.layers));
  for (std::int64_t i = 0; i < config.layers; ++i) all.push_back(of_layer(i));
  const bool alike = std::ranges::all_of(all, [&](const auto& part) { return part == all[0]; });
  config.attention = nn::with_layer(config.attention, all[0]);
  if (!alike) config.attention_layers = std::move(all);
}

Windows windows_of(const model::ModelConfig& config) {
  Windows windows;
  windows.sliding.reserve(static_cast<std::size_t>(config.layers));
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const auto look_back = model::self_attention(config, i, true).look_back;
    windows.sliding.push_back(look_back.has_value());
    if (look_back) windows.look_back = std::max(windows.look_back.value_or(0), *look_back);
  }
  return windows;
}

void write_windows(Settings& settings, const Windows& windows) {
  if (windows.any()) put(settings, "sliding_window", *windows.look_back + 1);
  std::vector<std::string> types;
  types.reserve(windows.sliding.size());
  for (const bool sliding : windows.sliding)
    types.emplace_back(sliding ? "sliding_attention" : "full_attention");
  put(settings, "layer_types", std::move(types));
}

}  // namespace heddle::pretrained
