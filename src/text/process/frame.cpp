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

}  // namespace heddle::text
