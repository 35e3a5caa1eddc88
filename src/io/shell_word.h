// Paths in commands that people copy into a shell.
#pragma once

#include <string>

namespace heddle::io {

// The path as a shell has to be given it: in quotes where it has anything a shell would change.
std::string shell_word(const std::string& path);

}  // namespace heddle::io
