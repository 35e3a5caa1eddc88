// Facts that a codec keeps of a model that others trained, in codec.json: a tokenizer.json has no
// place for it, or other files of the model overrule what it says.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "data/codec/codec.h"
#include "io/json/json.h"

namespace heddle::data {

inline constexpr const char* kModelFacts = "model_facts";

nlohmann::json json_of_model(const CodecParts& parts);
// Gives `tokenizer` its special tokens and its frame, and `parts` the rest. Error where ids are not
// the tokenizer's.
void take_model_facts(const io::Json& facts, text::Tokenizer& tokenizer, CodecParts& parts);

}  // namespace heddle::data
