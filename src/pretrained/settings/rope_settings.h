// Rotary positions as config.json has them, in the spellings of old and new files.
#pragma once

#include "io/toml/toml.h"
#include "nn/position/rope.h"
#include "pretrained/settings/settings.h"

namespace heddle::pretrained {

// A list of factors (longrope) is the one for short contexts, up to the original length: which of
// two lists is right depends on the length of a text, and keys of a cache would have to be turned
// anew. From `rope_parameters` of new files, or `rope_theta`, `rope_scaling` and
// `partial_rotary_factor` of old ones. `context` is max_position_embeddings.
nn::RopeOptions read_rope(const io::TomlTable& settings, std::int64_t head_width,
                          std::int64_t context);
// The same out of one table that has the base and the scaling (rope_parameters.full_attention).
nn::RopeOptions read_rope_table(const io::TomlTable& table, std::int64_t head_width,
                                std::int64_t context);

// Of layers that see all tokens, and of those that see a window.
struct TwoRopes {
  nn::RopeOptions full, sliding;
};

// rope_parameters with a table for each kind of layer, as new files have it.
TwoRopes read_two_ropes(const io::TomlTable& settings, std::int64_t head_width,
                        std::int64_t context);
// The way back: the value of rope_parameters.
Settings write_rope(const nn::RopeOptions& rope, std::int64_t head_width, std::int64_t context);

}  // namespace heddle::pretrained
