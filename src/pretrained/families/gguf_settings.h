// Keys that the architectures of GGUF files share.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "io/toml/toml.h"
#include "model/config.h"
#include "pretrained/settings/layers.h"

namespace heddle::pretrained {

inline constexpr std::int64_t kMostPositions = std::int64_t{1} << 30;

// Layers, width, heads and their width, the feed-forward layer's, context; no biases.
model::ModelConfig read_gguf_sizes(const io::TomlTable& settings);

Settings write_gguf_sizes(const model::ModelConfig& config);

// Rotary positions. Where type is longrope, the list of factors is a tensor of the file.
nn::RopeOptions read_gguf_rope(const io::TomlTable& settings, ops::Pairing pairing);
// A list of factors becomes a tensor (gguf_tensors.h), and so does what only a list can say.
void write_gguf_rope(Settings& settings, const model::ModelConfig& config,
                     const nn::Position& position);

// The window, which counts the token itself; 0 or an absent key is none.
std::optional<std::int64_t> read_gguf_look_back(const io::TomlTable& settings);

// Which layers have it: a list of them, or the last of so many has none. Without the key, the
// family's number is meant.
std::vector<bool> read_gguf_sliding(const io::TomlTable& settings, std::int64_t layers,
                                    std::int64_t period);

}  // namespace heddle::pretrained
