#include "data/text/text_shares.h"

#include <algorithm>
#include <utility>

#include "data/read.h"
#include "data/text/json_lines.h"
#include "heddle/error.h"
#include "io/files/memory_limit.h"
#include "text/split/find_cut.h"

namespace heddle::data {

TextShares::TextShares(StreamedFiles files, const ShareOptions& options)
    : options_(options), stream_(std::move(files)), base_(options.begin) {
  stream_.skip(options_.begin);
}

void TextShares::prepare(TextShare& share) const {
  if (!options_.field.empty()) take_field(share, options_.field, stream_);
}

bool TextShares::fill(std::size_t bytes) {
  const std::size_t before = buffer_.size();
  while (!ended_ && buffer_.size() < bytes) {
    ended_ = !stream_.read(buffer_, bytes - buffer_.size());
    const std::uint64_t left = options_.end - base_;
    if (buffer_.size() < left) continue;
    buffer_.resize(static_cast<std::size_t>(left));
    ended_ = true;
  }
  return buffer_.size() > before;
}

// Twice as much, until there is a place to cut or the text ends.
void TextShares::want_more() {
  if (buffer_.size() > io::file_limit())
    fail(ErrorCode::io, stream_.where(base_),
         options_.documents == Documents::none || options_.documents == Documents::file
             ? "from here on there is no place where the text could be cut for its tokenizer"
             : "from here on there is no end of a document",
         "one after at most " + io::file_limit_text());
  fill(2 * buffer_.size() + 1);
}

bool TextShares::is_file_begin(std::size_t at) const {
  return std::ranges::binary_search(stream_.file_begins(), base_ + at);
}

std::size_t TextShares::file_end(std::size_t at) const {
  const auto& begins = stream_.file_begins();
  const auto next = std::ranges::upper_bound(begins, base_ + at);
  if (next == begins.end()) return buffer_.size();
  return static_cast<std::size_t>(std::min<std::uint64_t>(*next - base_, buffer_.size()));
}

bool TextShares::next(TextShare& share) {
  fill(options_.bytes + 1);
  if (buffer_.empty()) return false;
  share.parts.clear();
  if (options_.documents == Documents::none || options_.documents == Documents::file)
    next_piece(share);
  else
    next_documents(share);
  return true;
}

void TextShares::give(TextShare& share, std::size_t bytes) {
  share.text.assign(buffer_, 0, bytes);
  share.bytes = bytes;
  share.as_in_file = true;
  for (TextShare::Part& part : share.parts) part.place = base_ + part.begin;
  buffer_.erase(0, bytes);
  base_ += bytes;
}

void TextShares::next_piece(TextShare& share) {
  const bool by_file = options_.documents == Documents::file;
  const bool begins = by_file && (base_ == options_.begin || is_file_begin(0));
  while (true) {
    const std::size_t end = by_file ? file_end(0) : buffer_.size();
    const bool is_end = ended_ || end < buffer_.size();
    std::size_t cut = end;
    if (end > options_.bytes)
      cut = text::find_cut(std::string_view(buffer_).substr(0, end), options_.bytes, options_.cuts);
    if (cut < end || is_end) {
      share.parts.push_back({.begins_document = begins});
      return give(share, cut);
    }
    want_more();
  }
}

// The documents that begin in the buffer, of lines whose end is known. Returns where these end.
std::size_t TextShares::find_documents(std::vector<TextShare::Part>& parts) const {
  const std::string_view text(buffer_);
  parts.assign(1, {.begins_document = true});  // the buffer is never cut inside of a document
  bool blank = false;                          // the line before
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t newline = text.find('\n', at), file = file_end(at);
    const std::size_t end = std::min(newline == std::string_view::npos ? file : newline + 1, file);
    const bool is_whole = end < text.size() || text[end - 1] == '\n' || ended_;
    if (!is_whole) break;
    const bool empty = is_blank(text.substr(at, end - at));
    const bool begins =
        options_.documents == Documents::line || is_file_begin(at) || (blank && !empty);
    if (at > 0 && begins) parts.push_back({.begin = at, .begins_document = true});
    blank = empty;
    at = end;
  }
  return at;
}

void TextShares::next_documents(TextShare& share) {
  while (true) {
    std::size_t end = find_documents(share.parts);
    const bool is_end = ended_ && end == buffer_.size();
    // Behind a blank line the last document may go on.
    if (!is_end && options_.documents == Documents::blank_line) {
      end = share.parts.back().begin;
      share.parts.pop_back();
    }
    if (end > 0) return give(share, end);
    want_more();
  }
}

}  // namespace heddle::data
