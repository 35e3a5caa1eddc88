#include "text/process/frame.h"

namespace heddle::text {

namespace {

FramedIds put_together(const std::vector<FramePart>& parts, std::span<const std::int32_t> first,
                       std::span<const std::int32_t> second) {
  FramedIds out;
  for (const FramePart& part : parts) {
    std::span<const std::int32_t> ids(&part.id, 1);
    if (part.kind == FramePart::Kind::first) ids = first;
    if (part.kind == FramePart::Kind::second) ids = second;
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.segments.insert(out.segments.end(), ids.size(), part.segment);
  }
  return out;
}

}  // namespace

FramedIds Frame::apply(std::span<const std::int32_t> first) const {
  return put_together(single, first, {});
}

FramedIds Frame::apply(std::span<const std::int32_t> first,
                       std::span<const std::int32_t> second) const {
  return put_together(pair, first, second);
}

Frame frame_around(std::optional<std::int32_t> begin, std::optional<std::int32_t> end) {
  Frame frame{.single = {}, .pair = {}};
  const auto add = [&](std::vector<FramePart>& parts, FramePart::Kind kind, std::int32_t segment) {
    if (begin) parts.push_back({.id = *begin, .segment = segment});
    parts.push_back({.kind = kind, .segment = segment});
    if (end) parts.push_back({.id = *end, .segment = segment});
  };
  add(frame.single, FramePart::Kind::first, 0);
  add(frame.pair, FramePart::Kind::first, 0);
  add(frame.pair, FramePart::Kind::second, 1);
  return frame;
}

}  // namespace heddle::text
