// Where this repository is, for tests that read its documents and golden files. One file knows it:
// a path that every unit is compiled with would keep other clones from sharing a compiler cache.
#pragma once

#include <string>

namespace heddle {

std::string source_tree(const std::string& path);  // "docs/lab.md" -> the whole path

}  // namespace heddle
