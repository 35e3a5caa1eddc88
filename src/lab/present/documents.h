// The study notes that the claims come from.
#pragma once

#include <string>
#include <vector>

#include "lab/experiment.h"

namespace heddle::lab {

struct Document {
  std::string number;  // as sources name it: "004"
  std::string title;   // marked: who shows them says tr()
  std::string about;
};

const std::vector<Document>& documents();

// Numbers of the documents that an experiment's source names, each once.
std::vector<std::string> documents_of(const Experiment& experiment);

}  // namespace heddle::lab
