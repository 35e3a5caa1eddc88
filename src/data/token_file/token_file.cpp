#include "data/token_file/token_file.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "data/memory_of.h"
#include "data/token_file/format.h"
#include "heddle/error.h"
#include "io/files/checksums/xxh64.h"
#include "text/tokenizer.h"

namespace heddle::data {

namespace format = token_format;

namespace {

// Calls body(block, first, count) for the parts of [begin, begin + count) that lie in one block.
template <class Body>
void for_blocks(std::int64_t begin, std::int64_t count, const Body& body) {
  while (count > 0) {
    const std::int64_t first = begin % format::kBlock;
    const std::int64_t part = std::min(count, format::kBlock - first);
    body(begin / format::kBlock, first, part);
    begin += part;
    count -= part;
  }
}

std::uint64_t hash_of(const std::vector<unsigned char>& bytes) {
  io::Xxh64 hash;
  hash.add(bytes.data(), bytes.size());
  return hash.value();
}

}  // namespace

TokenFile::TokenFile(const std::string& path)
    : path_(path), file_(io::open_regular(path, O_RDONLY)), length_(io::length_of(file_, path)) {
  read_header();
  read_hashes();
}

void TokenFile::fail_damaged(const std::string& problem) const {
  fail(ErrorCode::io, path_, problem,
       "the token file that was written: remove it, and it is made anew");
}

void TokenFile::read(std::uint64_t offset, void* out, std::size_t bytes) const {
  if (io::read_at(file_, path_, out, bytes, offset) < bytes) fail_damaged("is cut short");
}

void TokenFile::read_header() {
  format::Header header{};
  if (length_ < header.size()) fail_damaged("is too short for a token file");
  read(0, header.data(), header.size());
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  if (!text.starts_with(format::kMagic)) fail_damaged("is no token file");
  const auto version = format::number_at<std::uint32_t>(header.data() + format::kVersionAt);
  if (version != format::kVersion)
    fail_damaged("is a token file of version " + std::to_string(version) + ", not " +
                 std::to_string(format::kVersion));
  if (io::xxh64(text.substr(0, format::kSealAt)) !=
      format::number_at<std::uint64_t>(header.data() + format::kSealAt))
    fail_damaged("its header is damaged");
  const auto flags = format::number_at<std::uint32_t>(header.data() + format::kFlagsAt);
  std::array<std::uint64_t, 8> values{};
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = format::number_at<std::uint64_t>(header.data() + format::kFactsAt + 8 * i);
  const auto signed_value = [&](std::size_t i) { return static_cast<std::int64_t>(values[i]); };
  facts_ = {.tokens = signed_value(0),
            .vocabulary = signed_value(1),
            .documents = signed_value(2),
            .unknown = signed_value(3),
            .recipe = values[4],
            .content = values[5],
            .stamp = values[6],
            .source_bytes = signed_value(7)};
  const auto in_tokens = [&](std::int64_t n) { return n >= 0 && n <= facts_.tokens; };
  // No token takes less than a byte: what follows cannot overflow.
  const bool fine = values[0] <= length_ && facts_.vocabulary >= 1 &&
                    facts_.vocabulary <= text::kMaxVocabulary && facts_.documents >= 0 &&
                    in_tokens(facts_.unknown) && facts_.source_bytes >= 0 &&
                    flags == (facts_.documents > 0 ? format::kHasDocuments : 0);
  if (!fine) fail_damaged("has a header that cannot be");
  width_ = format::width_for(facts_.vocabulary);
}

void TokenFile::read_hashes() {
  const std::int64_t blocks = facts_.tokens / format::kBlock + (facts_.tokens % format::kBlock > 0);
  const std::uint64_t end =
      blocks == 0 ? format::kHeader
                  : offset_of(blocks - 1) +
                        format::block_bytes(tokens_of(blocks - 1), width_, has_documents());
  const std::uint64_t wanted = end + 8 * static_cast<std::uint64_t>(blocks);
  if (wanted != length_)
    fail_damaged("has " + std::to_string(length_) + " bytes and not " + std::to_string(wanted));
  std::vector<unsigned char> bytes(static_cast<std::size_t>(8 * blocks));
  read(end, bytes.data(), bytes.size());
  std::array<unsigned char, 8> seal{};
  read(format::kTableAt, seal.data(), seal.size());
  if (hash_of(bytes) != format::number_at<std::uint64_t>(seal.data()))
    fail_damaged("its hashes are damaged");
  for (std::size_t i = 0; i < bytes.size(); i += 8)
    hashes_.push_back(format::number_at<std::uint64_t>(bytes.data() + i));
  checked_ = std::vector<std::atomic<bool>>(hashes_.size());
}

std::int64_t TokenFile::tokens_of(std::int64_t block) const {
  return std::min(format::kBlock, facts_.tokens - block * format::kBlock);
}

std::uint64_t TokenFile::offset_of(std::int64_t block) const {
  return format::kHeader + static_cast<std::uint64_t>(block) *
                               format::block_bytes(format::kBlock, width_, has_documents());
}

// Two threads may do it at once: both come to the same.
void TokenFile::check(std::int64_t block) const {
  const auto place = static_cast<std::size_t>(block);
  if (checked_[place].load(std::memory_order_acquire)) return;
  const std::int64_t count = tokens_of(block);
  std::vector<unsigned char> bytes(
      static_cast<std::size_t>(format::block_bytes(count, width_, has_documents())));
  read(offset_of(block), bytes.data(), bytes.size());
  if (hash_of(bytes) != hashes_[place])
    fail_damaged("is damaged at tokens " + std::to_string(block * format::kBlock) + " to " +
                 std::to_string(block * format::kBlock + count - 1));
  checked_[place].store(true, std::memory_order_release);
}

void TokenFile::copy(std::int64_t begin, std::int64_t count, std::int32_t* out) const {
  std::vector<unsigned char> bytes;
  for_blocks(begin, count, [&](std::int64_t block, std::int64_t first, std::int64_t part) {
    check(block);
    bytes.resize(static_cast<std::size_t>(part) * width_);
    read(offset_of(block) + static_cast<std::uint64_t>(first) * width_, bytes.data(), bytes.size());
    format::with_width(width_, [&]<class T>(T) {
      for (std::int64_t i = 0; i < part; ++i) {
        const auto token =
            format::number_at<T>(bytes.data() + static_cast<std::size_t>(i) * sizeof(T));
        if (static_cast<std::uint64_t>(token) >= static_cast<std::uint64_t>(facts_.vocabulary))
          fail_damaged("has a token that is not in the vocabulary, at " +
                       std::to_string(block * format::kBlock + first + i));
        out[i] = static_cast<std::int32_t>(token);
      }
    });
    out += part;
  });
}

void TokenFile::copy_begins(std::int64_t begin, std::int64_t count, std::uint8_t* out) const {
  const std::int64_t there =
      has_documents() ? std::clamp<std::int64_t>(facts_.tokens - begin, 0, count) : 0;
  std::fill(out + there, out + count, std::uint8_t{0});
  std::vector<unsigned char> bytes;
  for_blocks(begin, there, [&](std::int64_t block, std::int64_t first, std::int64_t part) {
    check(block);
    const std::int64_t from = first / 8, to = (first + part + 7) / 8;
    bytes.resize(static_cast<std::size_t>(to - from));
    read(offset_of(block) + static_cast<std::uint64_t>(tokens_of(block)) * width_ +
             static_cast<std::uint64_t>(from),
         bytes.data(), bytes.size());
    for (std::int64_t i = first; i < first + part; ++i)
      *out++ = (bytes[static_cast<std::size_t>(i / 8 - from)] >> (i % 8)) & 1;
  });
}

std::int64_t TokenFile::bytes() const {
  return memory_of(hashes_) + static_cast<std::int64_t>(checked_.size());
}

}  // namespace heddle::data
