// Explains what is wrong with a line that is not TOML, in words for people who write recipes.
#pragma once

#include <string>
#include <string_view>

namespace heddle::io {

struct TomlComplaint {
  std::string problem, expected, got;
};

// `said` is what the parser said, `line` the line it stopped at.
TomlComplaint complaint_about(std::string_view said, std::string_view line);

}  // namespace heddle::io
