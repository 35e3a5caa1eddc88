#include "recipe/reference.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "data/config.h"
#include "heddle/error.h"
#include "io/errors.h"
#include "io/toml/toml.h"
#include "language/language.h"
#include "model/parse/parse.h"
#include "recipe/inherit.h"
#include "recipe/recipe.h"
#include "recipe/train_config.h"

namespace heddle::recipe {

namespace {

using Facts = std::map<std::string, io::KeyFact>;

struct Asked {
  Facts facts;
  std::vector<std::string> known;
};

// Recipes that have, together, every key. The name tells where a default is another than elsewhere.
struct Specimen {
  const char* name;
  const char* toml;
};

constexpr const char* kSteps = "[train]\nsteps = 1000\nbatch = 1\n";

constexpr std::array kSpecimens = std::to_array<Specimen>({
    {"adamw", "model = { kind = \"decoder\", layers = 1, width = 8 }\n"},
    {"sgd",
     "model = { kind = \"decoder\", layers = 1, width = 8 }\n"
     "train.optimizer = \"sgd\"\ntrain.momentum = 0.9\n"},
    {"moe", "model = { kind = \"decoder\", layers = 1, width = 8, ffn = \"moe\" }\n"},
    {"sinusoidal",
     "model = { kind = \"decoder\", layers = 1, width = 8, attention.position = \"sinusoidal\" "
     "}\n"},
    {"t5", "model = { kind = \"decoder\", layers = 1, width = 8, attention.position = \"t5\" }\n"},
    {"llama3",
     "model = { kind = \"decoder\", layers = 1, width = 8, attention = { position = \"rope\", "
     "rope_scaling = { kind = \"llama3\", factor = 8, original_positions = 8192 } } }\n"},
    {"yarn",
     "model = { kind = \"decoder\", layers = 1, width = 8, attention = { position = \"rope\", "
     "rope_scaling = { kind = \"yarn\", factor = 8, original_positions = 8192 } } }\n"},
    {"factors",
     "model = { kind = \"decoder\", layers = 1, width = 8, attention = { position = \"rope\", "
     "rope_scaling = { kind = \"factors\", factors = [1.0] } } }\n"},
    {"encoder", "model = { kind = \"encoder\", task = \"tag\", layers = 1, width = 8 }\n"},
    {"encoder-decoder", "model = { kind = \"encoder-decoder\", layers = 1, width = 8 }\n"},
    {"vit", "model = { kind = \"vit\", layers = 1, width = 8, patch = 4 }\n"},
    {"birnn",
     "model = { kind = \"birnn\", task = \"tag\", layers = 1, width = 8, residual = true }\n"},
    {"rnn-seq2seq", "model = { kind = \"rnn-seq2seq\", layers = 1, width = 8 }\n"},
});

Asked asked_of(const Specimen& specimen) {
  io::TomlDocument document = io::TomlDocument::parse(specimen.toml, specimen.name);
  document.inherit(io::TomlDocument::parse(kSteps, specimen.name));
  const io::TomlTable root = document.root();
  (void)base_of(root);
  (void)keys_left_out(root);
  model::parse_model(root.table("model"));
  data::parse_data(root.table("data"));
  parse_train(root.table("train"));
  parse_compare(root.table("compare"));
  return {document.facts(), document.known()};
}

void add_default(KeyLine& line, const std::string& where, const std::string& value) {
  const auto same = [&value](const auto& one) { return one.second == value; };
  if (!value.empty() && std::ranges::none_of(line.defaults, same))
    line.defaults.emplace_back(where, value);
}

KeyLine line_of(const KeyMeaning& row, const std::vector<Asked>& all) {
  KeyLine line;
  line.key = row.key;
  line.meaning = row.meaning;
  line.unless_given = row.unless_given;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto found = all[i].facts.find(line.key);
    if (found == all[i].facts.end()) continue;
    const io::KeyFact& fact = found->second;
    if (line.type.empty()) line.type = fact.type;
    if (line.low.empty() && line.high.empty()) {
      line.low = fact.low;
      line.high = fact.high;
    }
    line.list = line.list || fact.list;
    line.required = line.required || fact.required;
    for (const std::string& choice : fact.choices)
      if (std::ranges::find(line.choices, choice) == line.choices.end())
        line.choices.push_back(choice);
    add_default(line, kSpecimens.at(i).name, fact.fallback);
  }
  return line;
}

std::vector<Asked> asked_of_all() {
  std::vector<Asked> all;
  all.reserve(kSpecimens.size());
  for (const Specimen& specimen : kSpecimens) all.push_back(asked_of(specimen));
  return all;
}

std::vector<KeyLine> make_lines() {
  const std::vector<Asked> asked = asked_of_all();
  std::vector<KeyLine> lines;
  for (const KeyMeaning& row : key_meanings()) lines.push_back(line_of(row, asked));
  return lines;
}

std::string code(const std::string& text) { return "`" + text + "`"; }

std::string range_text(const KeyLine& line) {
  if (!line.low.empty() && !line.high.empty()) return tr("{} to {}", line.low, line.high);
  if (!line.low.empty()) return tr("at least {}", line.low);
  return line.high.empty() ? "" : tr("at most {}", line.high);
}

std::string type_text(const KeyLine& line) {
  if (line.type == "string or list") return tr("a text or a list of texts");
  if (line.type == "boolean") return tr("true or false");
  if (line.type == "integer") return tr("integer");
  if (line.type == "number") return line.list ? tr("list of numbers") : tr("number");
  return line.list ? tr("list of texts") : tr("text");
}

std::string last_part(const std::string& key) { return key.substr(key.rfind('.') + 1); }

}  // namespace

std::string KeyLine::table() const {
  const std::size_t dot = key.rfind('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

std::string KeyLine::values_text() const {
  if (!choices.empty()) {
    std::string names;
    for (const std::string& choice : choices) names += (names.empty() ? "" : ", ") + code(choice);
    return list ? tr("list of {}", names) : names;
  }
  const std::string range = range_text(*this);
  return range.empty() ? type_text(*this) : tr("{}, {}", type_text(*this), range);
}

std::string KeyLine::default_text() const {
  if (unless_given != nullptr) return tr(unless_given);
  if (required) return tr("required");
  if (defaults.size() == 1) return code(defaults[0].second);
  std::string all;
  for (const auto& [where, value] : defaults)
    all += (all.empty() ? "" : "; ") + code(where) + ": " + code(value);
  return all;
}

const std::vector<KeyLine>& key_lines() {
  static const std::vector<KeyLine> lines = make_lines();
  return lines;
}

std::vector<std::string> known_keys() {
  std::set<std::string> all;
  for (const Asked& asked : asked_of_all()) all.insert(asked.known.begin(), asked.known.end());
  std::set<std::string> tables;
  for (const std::string& key : all)
    if (const std::size_t dot = key.rfind('.'); dot != std::string::npos)
      tables.insert(key.substr(0, dot));
  std::vector<std::string> keys;
  std::ranges::set_difference(all, tables, std::back_inserter(keys));
  return keys;
}

std::vector<KeyLine> keys_named(const std::string& word) {
  std::vector<KeyLine> found;
  std::vector<std::string> names;
  for (const KeyLine& line : key_lines()) {
    if (line.key == word || line.key.starts_with(word + ".") || last_part(line.key) == word)
      found.push_back(line);
    names.push_back(line.key);
    names.push_back(last_part(line.key));
  }
  if (!found.empty()) return found;
  const std::string near = io::nearest_name(word, names);
  fail(ErrorCode::invalid_argument, "keys", "recipes have no key or table " + io::shown(word),
       near.empty() ? "one that heddle keys lists" : near + ", or another that heddle keys lists");
}

std::string reference_tables(const std::vector<KeyLine>& lines) {
  std::string text;
  const KeyLine* before = nullptr;
  for (const KeyLine& line : lines) {
    if (before == nullptr || before->table() != line.table()) {
      text += before == nullptr ? "" : "\n";
      text +=
          "## " + (line.table().empty() ? tr("Above the first table") : "[" + line.table() + "]");
      text += "\n\n| " + tr("key") + " | " + tr("values") + " | " + tr("default") + " | " +
              tr("meaning") + " |\n|---|---|---|---|\n";
    }
    text += "| " + code(last_part(line.key)) + " | " + line.values_text() + " | " +
            line.default_text() + " | " + tr(line.meaning) + " |\n";
    before = &line;
  }
  return text;
}

std::string reference_chapter() {
  return "# " + tr("Reference of all keys") + "\n\n" +
         tr("Every key of a recipe, with what it may be, what holds when it is not there, and what "
            "it means. The program writes this page out of the code that reads recipes (`heddle "
            "keys --markdown FILE`), and shows any part of it: `heddle keys kv_heads`, `heddle "
            "keys "
            "model.moe`. How keys work together is told in [recipes.md](recipes.md).") +
         "\n\n" +
         tr("A range is the one that a single value has to keep to; what does not go together with "
            "other keys is refused with the reason. \"required\" holds for the kinds of model that "
            "have the key.") +
         "\n\n" + reference_tables(key_lines());
}

}  // namespace heddle::recipe
