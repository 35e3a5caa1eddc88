// The tokens that a model wants around its texts: [CLS] text [SEP] text [SEP].
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace heddle::text {

// Ids with the segment of each: which of two texts it counts with (BERT's type ids).
struct FramedIds {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> segments;
};

struct FramePart {
  enum class Kind : std::uint8_t { first, second, token };
  Kind kind = Kind::token;
  std::int32_t id = 0;  // of a token
  std::int32_t segment = 0;
};

// One text, or a pair of them. Without anything else the texts as they are.
struct Frame {
  std::vector<FramePart> single = {{.kind = FramePart::Kind::first}};
  std::vector<FramePart> pair = {{.kind = FramePart::Kind::first},
                                 {.kind = FramePart::Kind::second, .segment = 1}};

  FramedIds apply(std::span<const std::int32_t> first) const;
  FramedIds apply(std::span<const std::int32_t> first, std::span<const std::int32_t> second) const;
};

// Begin and end around each text; those that are there.
Frame frame_around(std::optional<std::int32_t> begin, std::optional<std::int32_t> end);

}  // namespace heddle::text
