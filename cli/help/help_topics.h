// Chapters of docs/ that the program carries; the build makes the list (cmake/help_topics.cmake).
#pragma once

#include <span>
#include <string_view>

namespace heddle::cli {

struct HelpTopic {
  std::string_view name, title;       // "recipes", "Recipes"
  std::string_view english, chinese;  // Markdown
};
std::span<const HelpTopic> help_topics();

}  // namespace heddle::cli
