// Settings that others wrote in other formats, as a document that is read as strictly as a recipe.
#include <utility>

#include "io/errors.h"
#include "io/gguf/gguf_metadata.h"
#include "io/json/json.h"
#include "io/toml/toml.h"
#include "io/toml/toml_state.h"

namespace heddle::io {
namespace {

TomlValue foreign_value(const Json& json);

TomlMembers foreign_members(const Json& object) {
  TomlMembers members;
  for (const std::string& key : object.keys())
    if (object.has(key)) members.push_back({key, foreign_value(object.at(key))});  // null is absent
  return members;
}

TomlArray foreign_elements(const Json& array) {
  TomlArray elements;
  elements.reserve(array.size());
  for (std::size_t i = 0; i < array.size(); ++i) elements.push_back(foreign_value(array.at(i)));
  return elements;
}

TomlValue foreign_value(const Json& json) {
  TomlValue value;
  value.origin = json.file();
  if (json.is_object())
    value.data = foreign_members(json);
  else if (json.is_array())
    value.data = foreign_elements(json);
  else if (json.is_string())
    value.data = json.string();
  else if (json.is_boolean())
    value.data = json.boolean();
  else if (json.is_integer())
    value.data = json.integer();
  else if (json.is_number())
    value.data = json.number();
  else
    json.refuse("a value that is not null");
  return value;
}

// Numbers of all widths become one of two types; arrays are taken element by element.
struct GgufConverter {
  TomlData operator()(bool v) const { return v; }
  TomlData operator()(const std::string& v) const { return v; }
  TomlData operator()(float v) const { return static_cast<double>(v); }
  TomlData operator()(double v) const { return v; }
  TomlData operator()(std::uint64_t v) const {
    if (v > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return static_cast<double>(v);
    return static_cast<std::int64_t>(v);
  }
  template <class T>
  TomlData operator()(T v) const {
    return static_cast<std::int64_t>(v);
  }
  TomlData operator()(const GgufArray& array) const {
    TomlArray elements;
    std::visit(
        [&](const auto& all) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(all)>, NoArray>)
            for (std::size_t i = 0; i < all.size(); ++i)
              elements.push_back({GgufConverter{}(all[i]), origin});
        },
        array);
    return elements;
  }

  std::string origin = {};
};

}  // namespace

TomlDocument TomlDocument::of_json(const Json& object) {
  if (!object.is_object()) object.refuse("an object");
  return TomlDocument(std::make_shared<TomlState>(TomlValue{foreign_members(object), object.file()},
                                                  object.file()));
}

TomlDocument TomlDocument::of_gguf(const GgufMetadata& metadata, std::string_view table,
                                   const std::string& file) {
  const std::string prefix = std::string(table) + ".";
  TomlMembers members;
  for (const auto& [key, value] : metadata.entries())
    if (key.starts_with(prefix))
      members.push_back(
          {key.substr(prefix.size()), {std::visit(GgufConverter{file}, value), file}});
  return TomlDocument(std::make_shared<TomlState>(TomlValue{std::move(members), file}, file));
}

}  // namespace heddle::io
