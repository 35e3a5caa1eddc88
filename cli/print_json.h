// The one JSON document that a command prints with --json.
#pragma once

#include <iostream>

namespace heddle::cli {

// Names of files may be any bytes; what is not UTF-8 in them is shown as U+FFFD, because JSON has
// no other way and a result must not be lost for it.
template <class Json>
void print_json(const Json& document) {
  std::cout << document.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace heddle::cli
