#include "data/text/json_lines.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include "data/read.h"
#include "heddle/error.h"
#include "io/json/json.h"

namespace heddle::data {

// The place of a line is looked up where it is needed: the file has to be read again for it.
void take_field(TextShare& share, const std::string& field, const TextStream& stream) {
  std::string texts;
  std::vector<TextShare::Part> parts;
  for (std::size_t i = 0; i < share.parts.size(); ++i) {
    const std::string_view line = share.part(i);
    if (is_blank(line)) continue;
    try {
      const io::Json object = io::Json::parse(line, "line");
      if (!object.is_object()) object.refuse("an object, {\"" + field + "\": \"…\"}");
      TextShare::Part part = share.parts[i];
      part.begin = texts.size();
      texts += object.at(field).string();
      parts.push_back(part);
    } catch (const Error& e) {
      fail(ErrorCode::io, stream.where(share.parts[i].place), e.problem(), e.expected(), e.got());
    }
  }
  share.text = std::move(texts);
  share.parts = std::move(parts);
  share.as_in_file = false;
}

}  // namespace heddle::data
