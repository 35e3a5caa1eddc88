// Which language people are spoken to in.
#pragma once

#include <string>
#include <vector>

#include "language/language.h"

namespace heddle::cli {

// --lang decides, before or behind the command; else HEDDLE_LANG; else the locale (LC_ALL,
// LC_MESSAGES, LANG: the first that is set), where a language that there is not means English. With
// --json the locale does not count: a document that programs read is the same for everybody. Takes
// --lang out of the arguments, so that no command needs to know it. Error for a value of --lang or
// HEDDLE_LANG that names no language, and for --lang without a value or twice.
Language chosen_language(std::vector<std::string>& arguments);

}  // namespace heddle::cli
