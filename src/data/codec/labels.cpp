#include "data/codec/labels.h"

#include <set>

#include "data/read.h"
#include "io/errors.h"

namespace heddle::data {

std::vector<std::string> sorted_labels(std::span<const std::string_view> labels) {
  const std::set<std::string_view> distinct(labels.begin(), labels.end());
  return {distinct.begin(), distinct.end()};
}

std::int32_t known_label(const Codec& codec, std::string_view label, const io::TextLines& lines,
                         std::size_t line) {
  if (const auto id = codec.label_id(label)) return *id;
  const std::string near = io::nearest_name(label, codec.labels());
  fail_at_line(lines, line, "label that the training data did not have",
               "one of its " + std::to_string(codec.labels().size()) + " labels" +
                   (near.empty() ? "" : ", such as " + io::shown(near)),
               io::shown(label));
}

}  // namespace heddle::data
