#include "unit/source_tree.h"

namespace heddle {

std::string source_tree(const std::string& path) { return HEDDLE_SOURCE_TREE "/" + path; }

}  // namespace heddle
