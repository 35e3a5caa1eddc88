#include "lab/experiments.h"

namespace heddle::lab {

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {
      head_split(),
  };
  return all;
}

}  // namespace heddle::lab
