// Words for people on standard error.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>

namespace heddle::cli {

// Says it if it can be said: fmt::print() throws where nothing can be written, and a training must
// not end because the terminal that watched it is gone.
template <class... Args>
void tell(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace heddle::cli
