#include "data/token_file/token_writer.h"

#include <algorithm>
#include <array>

#include "data/token_file/format.h"
#include "io/files/checksums/xxh64.h"

namespace heddle::data {

namespace format = token_format;

TokenWriter::TokenWriter(const std::string& path, std::int64_t vocabulary, bool documents)
    : file_(path),
      vocabulary_(vocabulary),
      with_documents_(documents),
      width_(format::width_for(vocabulary)) {
  const format::Header none{};  // the place of the header, which is known at the end
  file_.write(none.data(), none.size());
  block_.reserve(static_cast<std::size_t>(format::kBlock) * width_);
}

void TokenWriter::add(std::span<const std::int32_t> tokens, bool begins) {
  begins = begins && with_documents_;
  documents_ += begins ? 1 : 0;
  while (!tokens.empty()) {
    const std::int64_t filled = tokens_ % format::kBlock;
    const auto part = static_cast<std::size_t>(
        std::min(static_cast<std::int64_t>(tokens.size()), format::kBlock - filled));
    const std::size_t before = block_.size();
    block_.resize(before + part * width_);
    format::with_width(width_, [&]<class T>(T) {
      for (std::size_t i = 0; i < part; ++i)
        format::put_number(block_.data() + before + i * sizeof(T), static_cast<T>(tokens[i]));
    });
    if (with_documents_) begins_.resize((static_cast<std::size_t>(filled) + part + 7) / 8);
    if (begins)
      begins_[static_cast<std::size_t>(filled / 8)] |=
          static_cast<unsigned char>(1u << (filled % 8));
    begins = false;
    tokens_ += static_cast<std::int64_t>(part);
    tokens = tokens.subspan(part);
    if (tokens_ % format::kBlock == 0) end_block();
  }
}

void TokenWriter::end_block() {
  io::Xxh64 hash;
  for (const std::vector<unsigned char>* bytes : {&block_, &begins_}) {
    hash.add(bytes->data(), bytes->size());
    file_.write(bytes->data(), bytes->size());
  }
  std::array<unsigned char, 8> number{};
  format::put_number(number.data(), hash.value());
  hashes_.insert(hashes_.end(), number.begin(), number.end());
  block_.clear();
  begins_.clear();
}

void TokenWriter::commit(TokenFileFacts facts) {
  if (!block_.empty()) end_block();
  file_.write(hashes_.data(), hashes_.size());
  io::Xxh64 table;
  table.add(hashes_.data(), hashes_.size());
  format::Header header{};
  std::copy(format::kMagic.begin(), format::kMagic.end(), header.begin());
  format::put_number(header.data() + format::kVersionAt, format::kVersion);
  format::put_number(header.data() + format::kFlagsAt,
                     documents_ > 0 ? format::kHasDocuments : std::uint32_t{0});
  const std::array<std::uint64_t, 9> values = {static_cast<std::uint64_t>(tokens_),
                                               static_cast<std::uint64_t>(vocabulary_),
                                               static_cast<std::uint64_t>(documents_),
                                               static_cast<std::uint64_t>(facts.unknown),
                                               facts.recipe,
                                               facts.content,
                                               facts.stamp,
                                               static_cast<std::uint64_t>(facts.source_bytes),
                                               table.value()};
  for (std::size_t i = 0; i < values.size(); ++i)
    format::put_number(header.data() + format::kFactsAt + 8 * i, values[i]);
  io::Xxh64 seal;
  seal.add(header.data(), format::kSealAt);
  format::put_number(header.data() + format::kSealAt, seal.value());
  file_.write_at(header.data(), header.size(), 0);
  file_.commit();
}

}  // namespace heddle::data
