// A preview of the model's inputs, for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace heddle::data {

// One training example: what is read and what is wanted, token by token ("␣" is a space, "·" a
// token that counts for nothing), or an image drawn with characters and its label.
struct Preview {
  std::string read;
  std::string wanted;
};

// The first `count` examples of a run with this batch size and seed, in its order; fewer where an
// epoch has fewer.
std::vector<Preview> preview(const Dataset& data, std::int64_t count, std::int64_t batch,
                             std::uint64_t seed);

}  // namespace heddle::data
