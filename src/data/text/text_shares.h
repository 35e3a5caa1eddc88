// A streamed text in shares that are encoded one by one, by whichever thread, and give the tokens
// of the whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "data/config.h"
#include "data/text/text_stream.h"
#include "text/tokenizer.h"

namespace heddle::data {

struct TextShare {
  struct Part {
    std::size_t begin = 0;  // in `text`, up to that of the next part
    bool begins_document = false;
    std::uint64_t place = 0;  // in the joined text
  };
  std::string text = {};
  std::vector<Part> parts = {};
  std::uint64_t bytes = 0;  // of the joined text that it was made of
  bool as_in_file = true;   // byte for byte, and not what JSON lines say

  std::string_view part(std::size_t i) const {
    const std::size_t end = i + 1 < parts.size() ? parts[i + 1].begin : text.size();
    return std::string_view(text).substr(parts[i].begin, end - parts[i].begin);
  }
};

struct ShareOptions {
  std::uint64_t begin = 0, end = std::numeric_limits<std::uint64_t>::max();  // in the joined text
  Documents documents = Documents::none;
  text::Cuts cuts = text::Cuts::nowhere;
  std::string field = {};  // of JSON lines (json_lines.h); then documents are lines
  std::size_t bytes = std::size_t{1} << 18;  // of a share, about
};

class TextShares {
 public:
  TextShares(StreamedFiles files, const ShareOptions& options);

  // The next share, larger than asked for where there is no place to cut; false at the end. Error
  // where it would be larger than a file that is read whole may be.
  bool next(TextShare& share);

  const TextStream& stream() const { return stream_; }
  // What is to be done with a share before it is encoded, by whichever thread.
  void prepare(TextShare& share) const;

 private:
  bool fill(std::size_t bytes);  // whether it has grown
  void want_more();
  bool is_file_begin(std::size_t at) const;
  std::size_t file_end(std::size_t at) const;  // in the buffer, behind `at`; its end where none is
  void next_piece(TextShare& share);
  void next_documents(TextShare& share);
  std::size_t find_documents(std::vector<TextShare::Part>& parts) const;
  void give(TextShare& share, std::size_t bytes);

  ShareOptions options_;
  TextStream stream_;
  std::string buffer_;
  std::uint64_t base_;  // of the buffer, in the joined text
  bool ended_ = false;
};

}  // namespace heddle::data
