// A sentence that is kept for later, when it may be read in another language: a file has its
// English with the values apart, and a page shows it as its reader reads.
#pragma once

#include <string>
#include <vector>

namespace heddle {

struct Sentence {
  std::string english = {};  // "parameter {} is {} at {}": a text that mark() has marked
  std::vector<std::string> values = {};  // one for each {}

  bool empty() const { return english.empty(); }
  std::string in_english() const;
  std::string translated() const;  // into the language of the process
};

}  // namespace heddle
