// The vocabulary, the added tokens and the merges of a tokenizer.json.
#include <algorithm>
#include <utility>

#include "io/errors.h"
#include "text/json/read_parts.h"

namespace heddle::text {

namespace {

using io::Json;

// Names are looked for at every place of a text, so their length is a factor of its time.
constexpr std::size_t kMaxNameBytes = 4096;

AddedToken read_added(const Json& token) {
  check_keys(token, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken added;
  added.id = static_cast<std::int32_t>(token.at("id").integer(0, kMaxVocabulary - 1));
  added.content = token.at("content").string();
  if (added.content.empty() || added.content.size() > kMaxNameBytes)
    token.at("content").refuse("a name of 1 to " + std::to_string(kMaxNameBytes) + " bytes");
  added.normalized = token.boolean_or("normalized", true);
  added.special = token.boolean_or("special", false);
  added.single_word = token.boolean_or("single_word", false);
  added.lstrip = token.boolean_or("lstrip", false);
  added.rstrip = token.boolean_or("rstrip", false);
  return added;
}

// Ids may leave holes, but a file cannot ask for memory that it has no tokens for.
void place_name(Tokens& tokens, const Json& where, std::int32_t id, const std::string& name,
                std::size_t most) {
  const auto place = static_cast<std::size_t>(id);
  if (place >= most)
    where.refuse("an id below " + std::to_string(most) + ", for this number of tokens");
  if (place >= tokens.names.size()) tokens.names.resize(place + 1);
  std::string& old = tokens.names[place];
  if (!old.empty()) where.refuse("an id that no other token has (" + io::shown(old) + " has it)");
  old = name;
}

void place_model_token(Tokens& tokens, const Json& json, const std::string& name, std::int32_t id,
                       std::size_t most) {
  if (name.size() > kMaxNameBytes)
    json.refuse("names of at most " + std::to_string(kMaxNameBytes) + " bytes");
  // A name that is empty can come from no text: the id stays a hole.
  if (!name.empty()) place_name(tokens, json, id, name, most);
  tokens.ids[name] = id;
}

// {"name": id}, or [["name", score]] whose ids are the places.
void read_model_tokens(const Json& vocabulary, std::size_t most, Tokens& tokens) {
  if (vocabulary.is_array()) {
    for (std::size_t i = 0; i < vocabulary.size(); ++i) {
      const Json token = vocabulary.at(i);
      if (token.size() != 2) token.refuse("a name and a score");
      place_model_token(tokens, token, token.at(std::size_t{0}).string(),
                        static_cast<std::int32_t>(i), most);
    }
    return;
  }
  for (const std::string& name : vocabulary.keys()) {
    const Json id = vocabulary.at(name);
    place_model_token(tokens, id, name,
                      static_cast<std::int32_t>(id.integer(0, kMaxVocabulary - 1)), most);
  }
}

void read_added_tokens(const Json& list, std::size_t most, Tokens& tokens) {
  NameIds seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json json = list.at(i);
    const AddedToken added = read_added(json);
    if (!seen.emplace(added.content, added.id).second)
      json.at("content").refuse("a name that no other added token has");
    const auto known = find_name(tokens.ids, added.content);
    if (known && *known != added.id)
      json.at("id").refuse("the id of " + io::shown(added.content) + " in model.vocab");
    if (!known) place_name(tokens, json.at("id"), added.id, added.content, most);
    tokens.added.push_back(added);
  }
}

std::pair<std::string, std::string> read_sides(const Json& merge) {
  if (merge.is_array()) {
    if (merge.size() != 2) merge.refuse("two names");
    return {merge.at(std::size_t{0}).string(), merge.at(std::size_t{1}).string()};
  }
  const std::string text = merge.string();
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos)
    merge.refuse("two names with a space between them");
  return {text.substr(0, space), text.substr(space + 1)};
}

std::int32_t merge_token(const NameIds& ids, const Json& merge, const std::string& name) {
  const auto id = find_name(ids, name);
  if (!id) merge.refuse("tokens of model.vocab (" + io::shown(name) + " is none)");
  return *id;
}

}  // namespace

Tokens read_tokens(const Json& document, const Json& model) {
  Tokens tokens;
  const Json vocabulary = model.at(model.has(kNamesKey) ? kNamesKey : "vocab");
  const std::size_t added = document.has("added_tokens") ? document.at("added_tokens").size() : 0;
  const std::size_t count = vocabulary.is_array() ? vocabulary.size() : vocabulary.keys().size();
  if (count + added == 0 || count + added > static_cast<std::size_t>(kMaxVocabulary))
    vocabulary.refuse("from 1 to " + std::to_string(kMaxVocabulary) + " tokens");
  constexpr std::size_t hole = 65'536;
  const std::size_t most = 2 * (count + added) + hole;
  tokens.names.reserve(count + added);
  read_model_tokens(vocabulary, most, tokens);
  if (added != 0) read_added_tokens(document.at("added_tokens"), most, tokens);
  if (tokens.names.empty()) vocabulary.refuse("a token with a name");
  tokens.is_added.resize(tokens.names.size());
  for (const AddedToken& token : tokens.added)
    tokens.is_added[static_cast<std::size_t>(token.id)] = true;
  tokens.has_holes = std::any_of(tokens.names.begin(), tokens.names.end(),
                                 [](const std::string& name) { return name.empty(); });
  return tokens;
}

std::vector<Merge> read_merges(const Json& list, const NameIds& ids, std::string_view prefix) {
  std::vector<Merge> merges;
  if (!list.is_array()) list.refuse("an array");
  merges.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json json = list.at(i);
    const auto [left, right] = read_sides(json);
    const std::string tail = right.substr(right.starts_with(prefix) ? prefix.size() : 0);
    merges.push_back({merge_token(ids, json, left), merge_token(ids, json, right),
                      merge_token(ids, json, left + tail)});
  }
  return merges;
}

}  // namespace heddle::text
