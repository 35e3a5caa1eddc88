// Keys that the config.json of all families share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/toml/toml.h"
#include "model/config.h"
#include "pretrained/settings/settings.h"

namespace heddle::pretrained {

inline constexpr std::int64_t kMostLayers = 4096, kMostWidth = std::int64_t{1} << 20;

// Keys that change no result: names, ids of special tokens (the tokenizer's files say them), how
// weights began, dropout. Fine-tuning takes its dropout from the recipe.
void pass_over(const io::TomlTable& settings, std::initializer_list<std::string_view> keys);
void pass_over_common(const io::TomlTable& settings);

// A switch that is refused unless it has the value that is built.
void require_switch(const io::TomlTable& settings, std::string_view key, bool value, bool fallback);

// The sizes that every family calls alike: layers, width, heads and their width, the feed-forward
// layer's, vocabulary and context.
model::ModelConfig read_sizes(const io::TomlTable& settings);

// Settings of a search for texts, which old files keep here: `heddle translate` has options for
// them. Tokens that a search must or must not write are read with generation_config.json.
void pass_over_search(const io::TomlTable& settings);

// The activation of this name, alone or as the gate of two products; nothing where there is none.
std::optional<nn::FfnKind> activation_named(std::string_view name, bool gated);
std::string activation_names(bool gated);  // for people
Settings write_sizes(const model::ModelConfig& config);

// The activation by its name there, alone or as the gate of two products.
nn::FfnKind read_activation(const io::TomlTable& settings, std::string_view key,
                            std::string_view fallback, bool gated);
std::string_view activation_name(nn::FfnKind kind);  // empty where they have none

}  // namespace heddle::pretrained
