#include "io/shell_word.h"

#include <string_view>

namespace heddle::io {

std::string shell_word(const std::string& path) {
  if (path.starts_with('-')) return shell_word("./" + path);  // or it would be taken for an option
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=,:@%";
  if (!path.empty() && path.find_first_not_of(kPlain) == std::string::npos) return path;
  std::string word = "'";
  for (const char c : path) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace heddle::io
