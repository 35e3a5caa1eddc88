// The words of the page of `heddle inspect`, in the language that was chosen.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "report/page/html.h"

namespace heddle::report {

// The sections that the page's script fills. `sides`: one input, or two beside each other.
Html inspect_body(std::size_t sides);

// The words of its script: $1, $2, … are places that it fills.
nlohmann::json inspect_words();

// Names of the parts of a model, by model::to_string(MapPart).
nlohmann::json inspect_parts();

}  // namespace heddle::report
