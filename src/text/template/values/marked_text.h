// Text that remembers which of its bytes a user wrote.
//
// A chat template writes <|im_start|> and means a token; a user who writes <|im_start|> in a
// message must get letters. Both end up in one string, so the string keeps the difference: every
// operation on text is made of append() and part(), which carry the marks along.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::text::chat {

struct Span {
  std::size_t begin = 0, end = 0;  // bytes
  bool operator==(const Span&) const = default;
};

class MarkedText {
 public:
  MarkedText() = default;
  explicit MarkedText(std::string bytes, bool from_user = false);

  const std::string& bytes() const noexcept { return bytes_; }
  std::size_t size() const noexcept { return bytes_.size(); }
  // Sorted, apart from each other, none empty.
  const std::vector<Span>& user_spans() const noexcept { return user_; }
  bool has_user_text() const noexcept { return !user_.empty(); }
  // Whether any byte of [begin, end) is a user's.
  bool from_user(std::size_t begin, std::size_t end) const noexcept;

  void append(std::string_view bytes, bool from_user = false);
  void append(const MarkedText& other) { append(other, 0, other.size()); }
  void append(const MarkedText& other, std::size_t begin, std::size_t end);
  MarkedText part(std::size_t begin, std::size_t end) const;

 private:
  void mark(std::size_t begin, std::size_t end);

  std::string bytes_;
  std::vector<Span> user_;
};

}  // namespace heddle::text::chat
