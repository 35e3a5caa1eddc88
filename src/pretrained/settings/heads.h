// The end of an encoder of others: nothing, or a classifier over tokens or labels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/json/json.h"
#include "io/toml/toml.h"
#include "model/config.h"

namespace heddle::pretrained {

// The task that "architectures" names: BertModel, BertForMaskedLM and so on, where `stem` is
// "Bert". Absent: embed. Heads that Heddle does not have (of pairs, choices, spans) are refused.
model::Task read_task(const io::TomlTable& settings, std::string_view stem);

// The same of a model of images: ViTModel, ViTForImageClassification. `more` are names of its own
// that classify as well.
model::Task read_image_task(const io::TomlTable& settings, std::string_view stem,
                            std::string_view more = {});

// The names of the labels in the order of their ids ("id2label"); where the file has none, the two
// that transformers gives such a model. A single one is refused: that model gives a number.
std::vector<std::string> read_labels(const io::Json& config);

// A function between two layers by the name that config.json gives it.
model::HeadTransform read_head_transform(const io::TomlTable& settings, std::string_view key,
                                         std::string_view fallback);

}  // namespace heddle::pretrained
