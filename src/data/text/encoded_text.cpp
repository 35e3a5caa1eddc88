#include "data/text/encoded_text.h"

#include <algorithm>

#include "data/memory_of.h"

namespace heddle::data {

void EncodedText::copy(std::int64_t begin, std::int64_t count, std::int32_t* out) const {
  if (file)
    file->copy(begin, count, out);
  else
    tokens.copy(begin, count, out);
}

std::int32_t EncodedText::at(std::int64_t i) const {
  std::int32_t token = 0;
  copy(i, 1, &token);
  return token;
}

std::int64_t EncodedText::document_count() const {
  return file ? file->facts().documents : static_cast<std::int64_t>(documents.size());
}

void EncodedText::copy_begins(std::int64_t begin, std::int64_t count, std::uint8_t* out) const {
  if (file) return file->copy_begins(begin, count, out);
  std::fill(out, out + count, std::uint8_t{0});
  for (auto border = std::lower_bound(documents.begin(), documents.end(), begin);
       border != documents.end() && *border < begin + count; ++border)
    out[*border - begin] = 1;
}

std::int64_t EncodedText::bytes() const {
  return file ? file->bytes() : tokens.bytes() + memory_of(documents);
}

}  // namespace heddle::data
