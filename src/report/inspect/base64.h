// Bytes as text, for what lies inside of a page.
#pragma once

#include <string>
#include <string_view>

namespace heddle::report {

std::string base64(std::string_view bytes);

}  // namespace heddle::report
