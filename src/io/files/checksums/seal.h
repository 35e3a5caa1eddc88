// Seals: checksums inside of the files that Heddle keeps in a run's directory. By them a file that
// was damaged, or edited by hand, is noticed before it gives other numbers. A seal is part of the
// file it is for, so that one rename changes both. Files without one are those of earlier versions
// and are taken as they are.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "io/json/json.h"

namespace heddle::io {

inline constexpr const char* kSealKey = "crc32";

// Writes an object with one key more: the checksum of the others.
void write_sealed_json(const std::string& path, nlohmann::json document);

// Error where the file cannot be read (it is damaged), where the seal is not that of its values (it
// was edited), and for a key that is not one of `keys`: by a damaged name a seal would be lost.
Json read_sealed_json(const std::string& path, const std::vector<std::string_view>& keys);

// TOML: the seal is a comment in the first line, so that no cut at the end takes it away.
std::string sealed_toml(std::string_view text);

enum class Seal { none, whole, broken };
// `file` is what was read, `text` its document printed again: blanks and comments do not count. A
// first line that is nearly a seal is a broken one.
Seal seal_of_toml(std::string_view file, std::string_view text);
bool has_toml_seal(std::string_view file);  // whatever it is worth
// The file without its seal.
std::string_view without_seal(std::string_view file);

std::string crc32_of(std::string_view bytes);  // eight hexadecimal digits

}  // namespace heddle::io
