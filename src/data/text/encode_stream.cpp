#include "data/text/encode_stream.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/parallel_each.h"
#include "data/loading.h"
#include "heddle/error.h"

namespace heddle::data {
namespace {

// A few for each thread, so that none waits for the slowest.
std::size_t shares_at_once() { return 2 * static_cast<std::size_t>(thread_count()); }

bool next_shares(TextShares& shares, std::vector<TextShare>& read) {
  read.resize(shares_at_once());
  std::size_t count = 0;
  while (count < read.size() && shares.next(read[count])) ++count;
  read.resize(count);
  return count > 0;
}

struct EncodedShare {
  std::vector<std::int32_t> tokens;
  std::vector<std::size_t> begins;  // of each part, in `tokens`
  std::int64_t unknown = 0;
};

// The line at fault is found by trying them one by one.
[[noreturn]] void fail_in_part(const Codec& codec, const TextShares& shares, const TextShare& share,
                               std::size_t part, const Error& error) {
  const std::string_view text = share.part(part);
  const auto complain = [&](std::size_t at, const Error& e) {
    fail(ErrorCode::io,
         shares.stream().where(share.parts[part].place + (share.as_in_file ? at : 0)), e.problem(),
         e.expected(), e.got());
  };
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    try {
      codec.source().encode(text.substr(begin, end - begin), codec.specials());
    } catch (const Error& e) {
      complain(begin, e);
    }
    begin = end + 1;
  }
  complain(0, error);
  throw error;
}

EncodedShare encode_parts(const Codec& codec, const TextShares& shares, const TextShare& share) {
  EncodedShare encoded;
  for (std::size_t i = 0; i < share.parts.size(); ++i) {
    encoded.begins.push_back(encoded.tokens.size());
    try {
      const std::vector<std::int32_t> ids = codec.source().encode(share.part(i), codec.specials());
      encoded.unknown += count_of(ids, codec.source().unknown());
      encoded.tokens.insert(encoded.tokens.end(), ids.begin(), ids.end());
    } catch (const Error& error) {
      fail_in_part(codec, shares, share, i, error);
    }
  }
  return encoded;
}

// Words do not go on from one document of JSON lines into the next; elsewhere a share is one text.
void add_parts(const TextShare& share, std::vector<std::string_view>& texts) {
  if (share.as_in_file) return texts.push_back(share.text);
  for (std::size_t i = 0; i < share.parts.size(); ++i)
    if (!share.part(i).empty()) texts.push_back(share.part(i));
}

void give_parts(const TextShare& share, const EncodedShare& encoded, const TokenSink& sink) {
  const std::span<const std::int32_t> tokens(encoded.tokens);
  for (std::size_t i = 0; i < share.parts.size(); ++i) {
    const std::size_t begin = encoded.begins[i];
    const std::size_t end = i + 1 < share.parts.size() ? encoded.begins[i + 1] : tokens.size();
    sink(tokens.subspan(begin, end - begin), share.parts[i].begins_document);
  }
}

}  // namespace

std::int64_t encode_stream(const Codec& codec, TextShares& shares, const TokenSink& sink,
                           const BytesDone& progress) {
  std::int64_t unknown = 0;
  std::uint64_t done = 0;
  for (std::vector<TextShare> read; next_shares(shares, read);) {
    std::vector<EncodedShare> encoded(read.size());
    parallel_each(static_cast<std::int64_t>(read.size()), 1, [&](std::int64_t i) {
      const auto place = static_cast<std::size_t>(i);
      shares.prepare(read[place]);
      encoded[place] = encode_parts(codec, shares, read[place]);
    });
    for (std::size_t i = 0; i < read.size(); ++i) {
      give_parts(read[i], encoded[i], sink);
      unknown += encoded[i].unknown;
      done += read[i].bytes;
    }
    if (progress) progress(done);
  }
  return unknown;
}

text::TextPieces pieces_of(const StreamedFiles& files, const ShareOptions& options,
                           const BytesDone& progress) {
  return [=](const std::function<void(std::span<const std::string_view>)>& take) {
    TextShares shares(files, options);
    std::uint64_t done = 0;
    for (std::vector<TextShare> read; next_shares(shares, read);) {
      parallel_each(static_cast<std::int64_t>(read.size()), 1,
                    [&](std::int64_t i) { shares.prepare(read[static_cast<std::size_t>(i)]); });
      std::vector<std::string_view> texts;
      for (const TextShare& share : read) {
        add_parts(share, texts);
        done += share.bytes;
      }
      take(texts);
      if (progress) progress(done);
    }
  };
}

}  // namespace heddle::data
