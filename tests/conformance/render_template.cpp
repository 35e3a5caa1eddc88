// Renders chat templates for check_templates.py: on standard input two lines a case, the path of a
// template and the context as JSON; on standard output a line of JSON for each, {"text": ...} or
// {"refused": ...}. The time of strftime_now() is fixed.
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "heddle/error.h"
#include "io/files/file.h"
#include "text/template/chat_template.h"
#include "text/template/values/read_json.h"

namespace {

// Saturday, 4 July 2026, 13:05:09, as check_templates.py has it.
std::tm fixed_time() {
  std::tm t{};
  t.tm_year = 126;
  t.tm_mon = 6;
  t.tm_mday = 4;
  t.tm_hour = 13;
  t.tm_min = 5;
  t.tm_sec = 9;
  t.tm_wday = 6;
  t.tm_yday = 184;
  return t;
}

nlohmann::json answer(const std::string& path, const std::string& context) {
  using namespace heddle;
  try {
    const auto chat =
        text::chat::ChatTemplate::parse(io::read_file(path, std::size_t{1} << 20), path);
    const auto values = text::chat::read_json(context, "context", true);
    return {{"text", chat.render(values, fixed_time).text()}};
  } catch (const Error& e) {
    return {{"refused", e.what()}, {"unsupported", e.code() == ErrorCode::unsupported}};
  }
}

}  // namespace

int main() {
  std::string path, context;
  while (std::getline(std::cin, path) && std::getline(std::cin, context))
    std::cout << answer(path, context).dump() << "\n";
}
