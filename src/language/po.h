// gettext's .po files: entries of msgid and msgstr, each one or more quoted strings.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace heddle::po {

using Texts = std::map<std::string, std::string, std::less<>>;  // msgid -> msgstr

// Every entry that has a translation and is not marked fuzzy (a tool's guess that has not been
// reviewed). The entry of the empty msgid is the file's header and no text. Contexts and plurals
// are refused: tr() uses neither. `name` is the name of the file in errors.
Texts read(std::string_view po, std::string_view name);

}  // namespace heddle::po
