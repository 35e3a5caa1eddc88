// Which tables of tokens an encoder-decoder's files have: names of tensors decide it as much as
// config.json does.
#pragma once

#include <string_view>

#include "pretrained/weights/files.h"

namespace heddle::pretrained {

// Whether both tensors are there and hold the same bytes: one table, written twice.
bool same_tensor(const WeightFiles& files, std::string_view a, std::string_view b);

}  // namespace heddle::pretrained
