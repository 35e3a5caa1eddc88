#include "text/template/values/marked_text.h"

#include <algorithm>
#include <utility>

namespace heddle::text::chat {

MarkedText::MarkedText(std::string bytes, bool from_user) : bytes_(std::move(bytes)) {
  if (from_user) mark(0, bytes_.size());
}

void MarkedText::mark(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  if (!user_.empty() && user_.back().end == begin) {
    user_.back().end = end;
  } else {
    user_.push_back({.begin = begin, .end = end});
  }
}

bool MarkedText::from_user(std::size_t begin, std::size_t end) const noexcept {
  const auto span = std::upper_bound(user_.begin(), user_.end(), begin,
                                     [](std::size_t at, const Span& s) { return at < s.end; });
  return span != user_.end() && span->begin < end;
}

void MarkedText::append(std::string_view bytes, bool from_user) {
  const std::size_t begin = bytes_.size();
  bytes_ += bytes;
  if (from_user) mark(begin, bytes_.size());
}

void MarkedText::append(const MarkedText& other, std::size_t begin, std::size_t end) {
  const std::size_t at = bytes_.size();
  bytes_.append(other.bytes_, begin, end - begin);
  auto span = std::upper_bound(other.user_.begin(), other.user_.end(), begin,
                               [](std::size_t b, const Span& s) { return b < s.end; });
  for (; span != other.user_.end() && span->begin < end; ++span)
    mark(at + std::max(span->begin, begin) - begin, at + std::min(span->end, end) - begin);
}

MarkedText MarkedText::part(std::size_t begin, std::size_t end) const {
  MarkedText result;
  result.append(*this, begin, end);
  return result;
}

}  // namespace heddle::text::chat
