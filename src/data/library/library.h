// Data sets for the recipes that ship: what they are, where they come from, and the folder that
// keeps them. A path "data/kjv.txt" of a recipe is looked for in the working directory, next to the
// recipe, and then as kjv.txt in that folder.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::data {

struct KnownData {
  std::string_view name;   // "multi30k"
  std::string_view title;  // in one line
  std::string_view licence;
  std::vector<std::string_view> files;    // below the folder of data sets
  std::vector<std::string_view> sources;  // what each is called where it comes from
  std::string_view package;               // Debian's that brings it; empty: none does
  std::string_view where;                 // for people: who offers it
  std::string_view place = {};            // of the package's own files, which recipes read there
};

std::span<const KnownData> known_data();
// Throws Error naming the nearest.
const KnownData& known_data(const std::string& name);
// The data set that a path of a recipe belongs to; nullptr for files of one's own.
const KnownData* known_data_of(std::string_view path);

// $HEDDLE_DATA, or heddle/ in $XDG_DATA_HOME or ~/.local/share; empty where none is set.
std::string data_folder();

// Where a path of a recipe in `directory` leads, or a pattern (library/pattern.h); nothing when no
// such file is there.
std::optional<std::string> find_path(const std::string& directory, const std::string& path);

// Makes a data set from the contents of a Debian package, or of `from`: a folder or the beginning
// of a URL that its files are below, or one file when it has one. Files that are there already are
// kept. Returns the paths; `say` is called with progress messages.
struct GetOptions {
  std::string from = {};
  std::string to = {};  // absent: data_folder()
};
std::vector<std::string> get_data(const KnownData& data, const GetOptions& options,
                                  const std::function<void(const std::string&)>& say);

// The command that gets it, or who offers it: the end of an error about a file that is not there,
// which is English, or a line of a screen, which is not.
enum class Told : std::uint8_t { in_english, translated };
std::string how_to_get(const KnownData& data, Told told = Told::in_english);

// Sentences of CoNLL-U as "word TAB tag" lines (the universal tag), a blank line between them;
// words that only the analysis has (5.1) and ranges of contracted ones (5-6) are left out.
std::string tags_of_conllu(std::string_view conllu, std::string_view file);

}  // namespace heddle::data
