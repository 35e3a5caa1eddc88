// Layers that differ in what they see: windows by layer, as config.json has them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "io/toml/toml.h"
#include "model/config.h"
#include "pretrained/settings/settings.h"

namespace heddle::pretrained {

// Which layers see a window only. `layer_types` of new files; where that is absent, the family's
// rule: whether layer i does.
std::vector<bool> sliding_layers(const io::TomlTable& settings, std::int64_t layers,
                                 const std::function<bool(std::int64_t)>& rule);

// The look back of a sliding_window, which counts the token itself; absent where the key is.
std::optional<std::int64_t> read_look_back(const io::TomlTable& settings);

// Writes what layers see into the configuration: one choice where all are alike, and a list of them
// by layer where they are not. `of_layer` gives the part of layer i.
void set_layers(model::ModelConfig& config,
                const std::function<nn::LayerAttention(std::int64_t)>& of_layer);

// The way back. Which layers have a window, and the window that they have; several different ones
// are something that no family has, and the widest is written.
struct Windows {
  std::vector<bool> sliding;                   // by layer
  std::optional<std::int64_t> look_back = {};  // absent where no layer has one
  bool any() const { return look_back.has_value(); }
};
Windows windows_of(const model::ModelConfig& config);
// sliding_window and layer_types.
void write_windows(Settings& settings, const Windows& windows);

}  // namespace heddle::pretrained
