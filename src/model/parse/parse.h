// The tables [model], [model.attention] and [model.moe] of a recipe.
#pragma once

#include "model/config.h"

namespace heddle::io {
class TomlTable;
}

namespace heddle::model {

// Everything but the sizes that the data decides. A key that the chosen kind would have to ignore
// is refused with the reason; unknown keys are left to the document's finish().
ModelConfig parse_model(const io::TomlTable& table);

}  // namespace heddle::model
