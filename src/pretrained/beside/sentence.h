// Files that sentence-transformers writes beside an encoder: how the vectors of tokens become one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/config.h"

namespace heddle::pretrained {

struct SentenceSettings {
  std::optional<model::Pooling> pooling = {};  // first_token or mean; absent: the files do not say
  bool normalise = false;                      // to length 1
  std::optional<std::int64_t> longest = {};    // tokens of a text, those around it included
};

// modules.json of a directory and the files that it names, or the pooling_type of a .gguf file;
// nothing where there is none, as for a run. What vectors would need and Heddle does not do (other
// ways of pooling, layers behind it, a prompt before every text) is an Error that names file and
// key.
SentenceSettings read_sentence_settings(const std::string& path);

}  // namespace heddle::pretrained
