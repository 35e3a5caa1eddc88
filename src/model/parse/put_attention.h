// The table [model.attention] of a recipe, written.
#pragma once

#include <string>
#include <utility>

#include "io/toml/toml.h"
#include "model/config.h"

namespace heddle::model {

// Puts keys into one table of a document.
class TableWriter {
 public:
  TableWriter(io::TomlDocument& document, std::string table)
      : document_(document), table_(std::move(table)) {}

  void put(const std::string& key, io::TomlData value) const {
    document_.put(table_ + "." + key, std::move(value));
  }
  // A value that is not the one that parse_model() takes where the key is absent.
  template <class T>
  void put_unless(const T& usual, const std::string& key, const T& value) const {
    if (value != usual) put(key, io::TomlData(value));
  }
  template <class T>
  void put_given(const std::string& key, const std::optional<T>& value) const {
    if (value) put(key, io::TomlData(*value));
  }
  TableWriter inner(const std::string& name) const { return {document_, table_ + "." + name}; }

 private:
  io::TomlDocument& document_;
  std::string table_;
};

void put_attention(const TableWriter& attention, const ModelConfig& config);

}  // namespace heddle::model
