// The table [model.attention] of a recipe.
#pragma once

#include "model/config.h"

namespace heddle::io {
class TomlTable;
}

namespace heddle::model {

// Of Transformers: every option.
void parse_attention(const io::TomlTable& table, ModelConfig& config);
// Of rnn-seq2seq: what attention between two sequences can use.
void parse_cross_attention(const io::TomlTable& table, ModelConfig& config);

}  // namespace heddle::model
