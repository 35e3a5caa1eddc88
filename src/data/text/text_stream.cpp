#include "data/text/text_stream.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "heddle/error.h"
#include "io/errors.h"
#include "io/utf8.h"

namespace heddle::data {
namespace {

constexpr std::string_view kMark = "\xef\xbb\xbf";
constexpr std::size_t kLongestCharacter = 4;

// Line and column (in bytes) of a place in a file, unpacked.
io::LineColumn place_in_file(const std::string& path, std::uint64_t offset) {
  io::ByteStream file(path);
  std::vector<char> bytes(std::size_t{1} << 16);
  io::LineColumn place;
  while (offset > 0) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(offset, bytes.size()));
    const std::size_t got = file.read(bytes.data(), wanted);
    for (std::size_t i = 0; i < got; ++i) {
      ++place.column;
      if (bytes[i] != '\n') continue;
      ++place.line;
      place.column = 1;
    }
    offset -= got;
    if (got < wanted) break;
  }
  return place;
}

[[noreturn]] void fail_empty(const std::string& path) {
  fail(ErrorCode::io, path, "is empty", "a text");
}

bool has_mark(io::ByteStream& file) {
  std::array<char, kMark.size()> first{};
  return file.read(first.data(), first.size()) == first.size() &&
         std::string_view(first.data(), first.size()) == kMark;
}

}  // namespace

bool TextStream::open_next() {
  if (next_ == files_.paths.size()) return false;
  const std::string& path = files_.paths[next_++];
  std::uint64_t mark = 0;
  if (!files_.any_bytes) {
    io::ByteStream first(path);
    mark = has_mark(first) ? kMark.size() : 0;
  }
  current_ = std::make_unique<io::ByteStream>(path);
  current_->skip(mark);
  begins_.push_back(position_);
  marks_.push_back(mark);
  in_file_ = mark;
  return true;
}

void TextStream::close() {
  if (position_ == begins_.back()) fail_empty(files_.paths[next_ - 1]);
  current_ = nullptr;
}

bool TextStream::read(std::string& out, std::size_t bytes) {
  if (current_ == nullptr && !open_next()) return false;
  const std::size_t before = out.size();
  out += std::exchange(carried_, {});
  const std::size_t from = out.size();
  bytes = std::max<std::size_t>(bytes, kLongestCharacter);
  out.resize(from + bytes);
  const std::size_t got = current_->read(out.data() + from, bytes);
  out.resize(from + got);
  if (!files_.any_bytes) check_characters(out, before, got < bytes);
  position_ += out.size() - before;
  in_file_ += out.size() - before;
  if (got < bytes) close();
  return true;
}

// What may be the first part of a character is left for the next time.
void TextStream::check_characters(std::string& out, std::size_t from, bool at_end) {
  const std::string_view text = std::string_view(out).substr(from);
  const std::size_t bad = io::first_invalid_utf8(text);
  if (bad == std::string_view::npos) return;
  if (!at_end && text.size() - bad < kLongestCharacter) {
    carried_ = text.substr(bad);
    out.resize(from + bad);
    return;
  }
  const std::string& path = files_.paths[next_ - 1];
  const std::uint64_t offset = in_file_ + bad;
  const io::LineColumn place = place_in_file(path, offset);
  io::fail_io(path + ":" + std::to_string(place.line),
              "a byte that is not UTF-8, at column " + std::to_string(place.column) + ", offset " +
                  std::to_string(offset),
              "UTF-8: save the file again with that encoding (iconv -f latin1 -t utf-8)",
              io::shown(text.substr(bad, kLongestCharacter)));
}

void TextStream::skip(std::uint64_t bytes) {
  while (bytes > 0) {
    if (current_ == nullptr && !open_next()) return;
    const std::uint64_t gone = current_->skip(bytes);
    position_ += gone;
    in_file_ += gone;
    if (gone < bytes) close();
    bytes -= gone;
  }
}

int TextStream::next_byte() {
  char byte = 0;
  while (current_ != nullptr || open_next()) {
    if (current_->read(&byte, 1) == 1) {
      ++position_;
      ++in_file_;
      return static_cast<unsigned char>(byte);
    }
    close();
  }
  return -1;
}

std::uint64_t character_at(const StreamedFiles& files, std::uint64_t offset) {
  TextStream stream(files);
  stream.skip(offset);
  for (int byte = stream.next_byte(); byte >= 0 && (byte & 0xC0) == 0x80; byte = stream.next_byte())
    ++offset;
  return offset;
}

std::uint64_t line_at(const StreamedFiles& files, std::uint64_t offset) {
  if (offset == 0) return 0;
  TextStream stream(files);
  stream.skip(offset - 1);
  int byte = 0;
  while (byte != '\n' && byte >= 0) byte = stream.next_byte();
  return stream.position();
}

std::string TextStream::where(std::uint64_t offset) const {
  const auto behind = std::upper_bound(begins_.begin(), begins_.end(), offset);
  const auto file = static_cast<std::size_t>(behind - begins_.begin()) - 1;
  const std::string& path = files_.paths[file];
  const std::uint64_t place = offset - begins_[file] + marks_[file];
  return path + ":" + std::to_string(place_in_file(path, place).line);
}

std::uint64_t joined_bytes(const StreamedFiles& files) {
  std::uint64_t sum = 0;
  for (const std::string& path : files.paths) {
    io::ByteStream file(path);
    const std::uint64_t mark = !files.any_bytes && has_mark(file) ? kMark.size() : 0;
    std::uint64_t bytes = file.file_bytes();
    if (file.is_packed()) bytes = io::ByteStream(path).skip(~std::uint64_t{0});
    if (bytes == mark) fail_empty(path);
    sum += bytes - mark;
  }
  return sum;
}

}  // namespace heddle::data
