#include "io/safetensors/safetensors_seal.h"

#include <algorithm>
#include <array>

#include "io/errors.h"
#include "io/files/checksums/seal.h"

namespace heddle::io {
namespace {

constexpr std::array<std::string_view, 4> kOwnKeys = {"format", "heddle.state", "heddle.crc32",
                                                      kHeaderSumKey};

// Where the digits are. Inside another name or value the quotes would be escaped.
std::size_t digits_of(std::string_view header) {
  const std::string before = "\"" + std::string(kHeaderSumKey) + "\":\"";
  const std::size_t found = header.find(before);
  const std::size_t at = found + before.size();
  if (found == std::string_view::npos || at + kNoSum.size() > header.size())
    return std::string_view::npos;
  return at;
}

}  // namespace

bool is_own(const Metadata& metadata) {
  const auto format = metadata.find("format");
  return format != metadata.end() && format->second == "heddle";
}

void seal_header(std::string& header) {
  const std::size_t at = digits_of(header);
  if (at != std::string::npos) header.replace(at, kNoSum.size(), crc32_of(header));
}

void check_header_seal(const std::string& path, std::string header, const Metadata& metadata) {
  const auto written = metadata.find(kHeaderSumKey);
  if (written != metadata.end()) {
    const std::size_t at = digits_of(header);
    if (at != std::string::npos) header.replace(at, kNoSum.size(), kNoSum);
    if (const std::string sum = crc32_of(header); sum != written->second)
      fail_io(path, "its header is damaged, or was written anew by another program",
              "checksum " + shown(written->second), sum);
    return;
  }
  if (!is_own(metadata)) return;
  for (const auto& [key, value] : metadata)
    if (std::ranges::find(kOwnKeys, key) == kOwnKeys.end())
      fail_io(path, "its header is damaged: metadata " + shown(key),
              "none but those that Heddle writes");
}

}  // namespace heddle::io
