#include "data/text/encode_text.h"

#include <algorithm>
#include <span>

#include "base/parallel.h"
#include "base/parallel_each.h"
#include "data/loading.h"
#include "data/read.h"
#include "heddle/error.h"
#include "text/split/find_cut.h"

namespace heddle::data {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

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

// What was trained here is known by its kind.
text::Cuts cuts_for(const Codec& codec) {
  if (codec.specials() == text::SpecialsInText::recognised)
    return codec.source().cuts(codec.specials());
  const std::string_view kind = codec.source().kind();
  return kind == "char" || kind == "byte" ? text::Cuts::characters : text::Cuts::white_space;
}

std::vector<std::string_view> cut_for(const Codec& codec, std::string_view text,
                                      std::size_t piece_bytes) {
  std::vector<std::string_view> pieces;
  const text::Cuts cuts = cuts_for(codec);
  while (!text.empty()) {
    std::size_t end = text.size();
    if (end > piece_bytes) end = text::find_cut(text, piece_bytes, cuts);
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return pieces;
}

std::vector<std::string_view> documents_of(const JoinedText& whole, std::string_view part,
                                           Documents border) {
  std::vector<std::string_view> documents;
  const std::size_t first = static_cast<std::size_t>(part.data() - whole.text.data());
  auto file = std::upper_bound(whole.parts.begin(), whole.parts.end(), first,
                               [](std::size_t at, const auto& f) { return at < f.begin; });
  std::size_t begin = 0;  // of the document
  bool blank = false;     // whether the line before was
  const auto cut = [&](std::size_t at) {
    if (at > begin) documents.push_back(part.substr(begin, at - begin));
    begin = at;
    blank = false;
  };
  for (std::size_t at = 0; at < part.size();) {
    for (; file != whole.parts.end() && file->begin <= first + at; ++file) cut(at);
    std::size_t end = std::min(part.find('\n', at), part.size() - 1) + 1;
    if (file != whole.parts.end()) end = std::min(end, file->begin - first);
    const bool empty = is_blank(part.substr(at, end - at));
    if (border == Documents::line || (border == Documents::blank_line && blank && !empty)) cut(at);
    blank = empty;
    at = end;
  }
  cut(part.size());
  return documents;
}

namespace {

// The piece of text that one thread encodes at a time.
struct Share {
  std::span<const std::string_view> texts;
  TokenStore tokens;
  std::vector<std::int64_t> begins = {};  // of each text, in `tokens`
  std::int64_t unknown = 0;
};

// Neighbours together, so that short documents make no work of their own.
std::span<const std::string_view> take_share(std::span<const std::string_view>& texts) {
  std::size_t bytes = 0, count = 0;
  while (count < texts.size() && bytes < kPieceBytes) bytes += texts[count++].size();
  const auto share = texts.first(count);
  texts = texts.subspan(count);
  return share;
}

void encode_share(const Codec& codec, const JoinedText& whole, Share& share) {
  for (const std::string_view text : share.texts) {
    const std::vector<std::int32_t> ids = encode_piece(codec, whole, text);
    share.begins.push_back(share.tokens.size());
    share.tokens.append(ids);
    share.unknown += count_of(ids, codec.source().unknown());
  }
}

}  // namespace

// A few shares for each thread at a time, so that of the text only its tokens pile up.
EncodedText encode_text(const Codec& codec, const JoinedText& whole, std::string_view part,
                        Documents border) {
  const bool one = border == Documents::none;
  const std::int64_t vocabulary = codec.source().vocabulary();
  const std::vector<std::string_view> texts =
      one ? cut_for(codec, part, kPieceBytes) : documents_of(whole, part, border);
  const std::size_t at_once = 2 * static_cast<std::size_t>(thread_count());
  EncodedText all{TokenStore(vocabulary)};
  for (std::span<const std::string_view> left(texts); !left.empty();) {
    std::vector<Share> shares;
    while (shares.size() < at_once && !left.empty())
      shares.push_back({take_share(left), TokenStore(vocabulary)});
    parallel_each(static_cast<std::int64_t>(shares.size()), 1, [&](std::int64_t i) {
      encode_share(codec, whole, shares[static_cast<std::size_t>(i)]);
    });
    for (const Share& share : shares) {
      if (!one)
        for (const std::int64_t begin : share.begins) all.documents.push_back(all.size() + begin);
      all.tokens.append(share.tokens);
      all.unknown += share.unknown;
    }
  }
  return all;
}

}  // namespace heddle::data
