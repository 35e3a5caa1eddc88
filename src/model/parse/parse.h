// The tables [model], [model.attention] and [model.moe] of a recipe.
#pragma once

#include "model/config.h"

namespace heddle::io {
class TomlDocument;
class TomlTable;
}  // namespace heddle::io

namespace heddle::model {

// Everything but the sizes that the data decides. A key that the chosen kind would have to ignore
// is refused with the reason; unknown keys are left to the document's finish().
ModelConfig parse_model(const io::TomlTable& table);

// The other way, for Transformers: puts the keys of `config` into [model] of the document, those
// that are as parse_model() takes them anyway left out, and sizes too, which the data decides.
// parse_model() of it gives the same model. A configuration that no recipe can say is an Error.
void put_model(io::TomlDocument& document, const ModelConfig& config);

}  // namespace heddle::model
