#include "data/encode_text.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/job.h"
#include "data/parallel.h"
#include "heddle/error.h"
#include "text/split.h"

namespace heddle::data {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// A place at or after `from` where a piece may begin.
std::size_t next_cut(std::string_view text, std::size_t from, bool by_character) {
  if (!by_character) return text::safe_cut(text, from);
  while (from < text.size() && continues_character(text[from])) ++from;
  return from;
}

// Encodes one piece. On an Error the line at fault is found by trying them one by one.
std::vector<std::int32_t> encode_piece(const Codec& codec, const JoinedText& whole,
                                       std::string_view piece) {
  try {
    return codec.source().encode(piece, codec.specials());
  } catch (const Error& error) {
    const auto offset = [&](std::size_t at) {
      return static_cast<std::size_t>(piece.data() - whole.text.data()) + at;
    };
    std::size_t begin = 0;
    while (begin < piece.size()) {
      const std::size_t end = std::min(piece.find('\n', begin), piece.size());
      try {
        codec.source().encode(piece.substr(begin, end - begin), codec.specials());
      } catch (const Error& e) {
        fail(ErrorCode::io, whole.where(offset(begin)), e.problem(), e.expected(), e.got());
      }
      begin = end + 1;
    }
    fail(ErrorCode::io, whole.where(offset(0)), error.problem(), error.expected(), error.got());
  }
}

}  // namespace

std::string JoinedText::where(std::size_t offset) const {
  const auto behind =
      std::upper_bound(parts.begin(), parts.end(), offset,
                       [](std::size_t place, const Part& part) { return place < part.begin; });
  const Part& part = *(behind - 1);
  const auto begin = text.begin() + static_cast<std::ptrdiff_t>(part.begin);
  const auto lines = std::count(begin, text.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
  return part.path + ":" + std::to_string(lines + 1);
}

std::vector<std::string_view> cut_for(const Codec& codec, std::string_view text,
                                      std::size_t piece_bytes) {
  std::vector<std::string_view> pieces;
  const std::string_view kind = codec.source().kind();
  const bool whole = codec.specials() == text::SpecialsInText::recognised;
  while (!text.empty()) {
    std::size_t end = text.size();
    if (!whole && end > piece_bytes)
      end = next_cut(text, piece_bytes, kind == "char" || kind == "byte");
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return pieces;
}

TokenStore encode_text(const Codec& codec, const JoinedText& whole, std::string_view part,
                       std::int64_t& unknown) {
  const std::vector<std::string_view> pieces = cut_for(codec, part, kPieceBytes);
  const std::int64_t vocabulary = codec.source().vocabulary();
  std::vector<TokenStore> stores(pieces.size(), TokenStore(vocabulary));
  std::vector<std::int64_t> unknowns(pieces.size());
  parallel_each(static_cast<std::int64_t>(pieces.size()), 1, [&](std::int64_t i) {
    const auto place = static_cast<std::size_t>(i);
    const std::vector<std::int32_t> ids = encode_piece(codec, whole, pieces[place]);
    stores[place].append(ids);
    unknowns[place] = count_of(ids, codec.source().unknown());
  });
  unknown += std::accumulate(unknowns.begin(), unknowns.end(), std::int64_t{0});

  std::int64_t total = 0;
  for (const TokenStore& store : stores) total += store.size();
  TokenStore all(vocabulary);
  all.reserve(total);
  for (TokenStore& store : stores) {
    all.append(store);
    store = TokenStore(vocabulary);
  }
  return all;
}

}  // namespace heddle::data
