#include "io/files/checksums/seal.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "heddle/error.h"
#include "io/errors.h"
#include "io/files/checksums/crc32.h"
#include "io/files/file.h"

namespace heddle::io {
namespace {

constexpr std::string_view kSealBegin = "# heddle wrote this, crc32 ";
constexpr std::string_view kSealEnd = ": delete this line to use the file after an edit";
constexpr std::size_t kDigits = 8;

std::string_view first_line(std::string_view file) { return file.substr(0, file.find('\n')); }

bool is_seal(std::string_view line) {
  return line.size() == kSealBegin.size() + kDigits + kSealEnd.size() &&
         line.starts_with(kSealBegin) && line.ends_with(kSealEnd);
}

// A user's own comment is far from it; a damaged seal is near.
bool is_nearly_seal(std::string_view line) {
  if (!line.starts_with("#")) return false;
  const std::string_view begin = line.substr(0, kSealBegin.size());
  return edit_distance(begin, kSealBegin) <= kSealBegin.size() / 3 || line.ends_with(kSealEnd);
}

std::string sum_of(nlohmann::json document) {
  document.erase(kSealKey);
  return crc32_of(document.dump());
}

}  // namespace

std::string crc32_of(std::string_view bytes) {
  Crc32 sum;
  sum.add(bytes);
  return sum.text();
}

void write_sealed_json(const std::string& path, nlohmann::json document) {
  document.erase(kSealKey);
  std::string seal;
  try {
    seal = sum_of(document);
  } catch (const nlohmann::json::exception&) {
    fail_io(path, "cannot be written as JSON", "strings in UTF-8");
  }
  document[kSealKey] = std::move(seal);
  write_json(path, document);
}

Json read_sealed_json(const std::string& path, const std::vector<std::string_view>& keys) {
  const std::string text = read_file(path, JsonLimits{}.max_bytes);
  const Json document = [&] {
    try {
      return Json::parse(text, path);
    } catch (const Error& e) {
      fail(e.code(), e.where(), "is damaged: " + e.problem(), e.expected(), e.got());
    }
  }();
  if (!document.is_object()) fail_io(path, "is damaged", "a JSON object");
  if (document.raw().contains(kSealKey)) {
    const std::string sum = sum_of(document.raw());
    const Json seal = document.at(kSealKey);
    if (!seal.is_string() || seal.string() != sum)
      fail_io(path,
              "was edited by hand, or damaged where it can still be read, after Heddle wrote it",
              "the values it was written with; if the edit is meant, delete its key \"crc32\"",
              "other values (checksum " + sum + ")");
    return document;
  }
  for (const std::string& key : document.keys())
    if (std::ranges::find(keys, key) == keys.end())
      fail_io(path, "is damaged, or was edited by hand: it has a key " + shown(key),
              "none but those that Heddle writes");
  return document;
}

std::string sealed_toml(std::string_view text) {
  return std::string(kSealBegin) + crc32_of(text) + std::string(kSealEnd) + "\n" +
         std::string(text);
}

Seal seal_of_toml(std::string_view file, std::string_view text) {
  const std::string_view line = first_line(file);
  if (!is_seal(line)) return is_nearly_seal(line) ? Seal::broken : Seal::none;
  const std::string_view digits = line.substr(kSealBegin.size(), kDigits);
  return digits == crc32_of(text) ? Seal::whole : Seal::broken;
}

bool has_toml_seal(std::string_view file) {
  return is_seal(first_line(file)) || is_nearly_seal(first_line(file));
}

std::string_view without_seal(std::string_view file) {
  const std::string_view line = first_line(file);
  if (!is_seal(line)) return file;
  file.remove_prefix(std::min(file.size(), line.size() + 1));
  return file;
}

}  // namespace heddle::io
