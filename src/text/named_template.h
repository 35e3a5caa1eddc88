// The text of a chat template: how a model wants conversations written (template/ renders it).
#pragma once

#include <string>

namespace heddle::text {

struct NamedTemplate {
  std::string name;  // "default", or another that the files give: "tool_use"
  std::string text;
};

}  // namespace heddle::text
