// A first recipe for data of one's own, as commented text: what `heddle init` writes.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace heddle::recipe {

// Kinds of training data, in everyday words.
enum class StarterData { text, pairs, tags, labelled, images };
enum class StarterSize { tiny, small, medium };

struct Starter {
  StarterData data = StarterData::text;
  std::string path = "input.txt";  // of the data
  StarterSize size = StarterSize::small;
};

std::string_view to_string(StarterData data);
std::string_view to_string(StarterSize size);
// The meaning of each, for a question: "a text that the model learns to go on with".
std::string_view explain(StarterData data);
std::string_view explain(StarterSize size);

// By name; throws Error listing them.
StarterData starter_data(std::string_view name);
StarterSize starter_size(std::string_view name);

// Every key that is worth changing, followed by its meaning. `file` is the name the text will have:
// the first lines say how to use it.
std::string starter_recipe(const Starter& starter, const std::string& file);

// A recipe based on another: the line that says so, and the keys of that one commented out by "# ",
// to be changed. `base` is its name or path, `toml` its text.
std::string derived_recipe(const std::string& base, const std::string& toml,
                           const std::string& file);

}  // namespace heddle::recipe
