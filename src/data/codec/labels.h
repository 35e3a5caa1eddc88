// Labels of tag and classify.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/codec/codec.h"
#include "io/files/lines.h"

namespace heddle::data {

// Each of them once, in byte order.
std::vector<std::string> sorted_labels(std::span<const std::string_view> labels);

// Its id; a label that the codec does not have is an Error with its place.
std::int32_t known_label(const Codec& codec, std::string_view label, const io::TextLines& lines,
                         std::size_t line);

}  // namespace heddle::data
