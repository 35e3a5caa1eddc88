#include "io/toml/key_places.h"

#include <utility>

namespace heddle::io {

KeyPlaces::KeyPlaces(std::string file, std::map<std::string, std::string> places)
    : file_(std::move(file)), places_(std::move(places)) {}

std::string KeyPlaces::of(const std::string& key) const {
  std::string path = key;
  while (true) {
    if (const auto found = places_.find(path); found != places_.end()) return found->second;
    const std::size_t dot = path.rfind('.');
    if (dot == std::string::npos) return file_;
    path.resize(dot);
  }
}

Error KeyPlaces::placed(const KeyError& error) const {
  std::string others;
  for (const std::string& key : error.keys())
    if (&key != error.keys().data() && has(key))
      others += (others.empty() ? " (" : ", ") + key + ": " + of(key);
  if (!others.empty()) others += ")";
  return {error.code(), of(error.keys().front()), error.problem(), error.expected(),
          error.got() + others};
}

}  // namespace heddle::io
