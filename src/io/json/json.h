// JSON that others wrote (config.json, tokenizer.json, headers of weights): parsed within limits,
// read with getters whose errors name the file and the key.
//
// The document itself is nlohmann's. Include <nlohmann/json.hpp> where raw() is used, and only
// there: it takes seconds to compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::io {

struct JsonLimits {
  std::size_t max_bytes = std::size_t{256} << 20;
  std::size_t max_depth = 64;
};

// A value of a document, together with its place in it. Copies share the document.
class Json {
 public:
  static Json read(const std::string& path, const JsonLimits& limits = {});
  // `where` is what errors name instead of a file. A key that comes twice in one object is refused.
  static Json parse(std::string_view text, const std::string& where, const JsonLimits& limits = {});

  const nlohmann::json& raw() const noexcept { return *value_; }
  const std::string& file() const noexcept { return *file_; }
  const std::string& path() const noexcept { return path_; }  // "rope_scaling.factor", "ids[3]"

  bool is_null() const noexcept;
  bool is_object() const noexcept;
  bool is_array() const noexcept;
  bool is_string() const noexcept;
  bool is_number() const noexcept;
  bool is_integer() const noexcept;
  bool is_boolean() const noexcept;

  // Of an object. A value of null is taken as absent: has() is false, the fallback is used.
  bool has(std::string_view key) const;
  Json at(std::string_view key) const;
  std::vector<std::string> keys() const;
  // Of an array.
  std::size_t size() const;
  Json at(std::size_t index) const;

  std::string string() const;
  bool boolean() const;
  double number() const;
  // Integers between the two; a number with a fraction, even .0, is none.
  std::int64_t integer(std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  std::vector<std::string> strings() const;
  std::vector<double> numbers() const;
  std::vector<std::int64_t> integers() const;

  // at(key).string() and so on, or the fallback when the object does not have the key.
  std::string string_or(std::string_view key, std::string fallback) const;
  bool boolean_or(std::string_view key, bool fallback) const;
  double number_or(std::string_view key, double fallback) const;
  std::int64_t integer_or(std::string_view key, std::int64_t fallback) const;

  // Refuses this value: for conditions that only the caller knows.
  [[noreturn]] void refuse(std::string_view expected) const;

 private:
  Json(std::shared_ptr<const nlohmann::json> value, std::shared_ptr<const std::string> file,
       std::string path);
  Json child(const nlohmann::json& value, std::string path) const;
  template <class T, class Get>
  std::vector<T> all(Get get) const;

  std::shared_ptr<const nlohmann::json> value_;
  std::shared_ptr<const std::string> file_;
  std::string path_;
};

// Writes the document atomically, with a newline at its end. Text that is not UTF-8 is an Error.
void write_json(const std::string& path, const nlohmann::json& document);

}  // namespace heddle::io
