#include "recipe/unedited.h"

#include "heddle/error.h"
#include "io/files/checksums/seal.h"
#include "io/files/file.h"
#include "recipe/not_a_recipe.h"
#include "recipe/recipe.h"
#include "recipe/shipped/shipped.h"

namespace heddle::recipe {

namespace {

constexpr const char* kWhatToDo =
    "; put it back (what may change, heddle train --resume --set changes), or delete the first "
    "line of the file to use it as it is";

[[noreturn]] void refuse_edited(const std::string& path, const io::TomlDocument& document,
                                const std::string& before) {
  const auto all = before.empty() ? std::vector<Difference>()
                                  : differences(io::TomlDocument::parse(before, path).values(),
                                                document.values());
  if (!all.empty()) {
    const Difference& d = all.front();
    const io::KeyPlaces places = document.places();
    fail(ErrorCode::io, places.has(d.key) ? places.of(d.key) : path,
         "key " + d.key + " was edited after the run began", "the run's " + d.was() + kWhatToDo,
         d.is());
  }
  fail(ErrorCode::io, path,
       "was edited by hand, or damaged where it can still be read, after Heddle wrote it",
       std::string("the recipe it was written as") + kWhatToDo);
}

// A sealed recipe is never edited by hand; one that is not TOML any more is damaged.
io::TomlDocument parse_file(const std::string& text, const std::string& path) {
  try {
    return io::TomlDocument::parse(text, path);
  } catch (const Error& e) {
    if (!io::has_toml_seal(text)) throw;
    fail(e.code(), e.where(), "is damaged: " + e.problem(),
         e.expected().empty() ? "the recipe that the run wrote; heddle train RECIPE --out RUN "
                                "--resume, with the recipe it began with, writes it again"
                              : e.expected(),
         e.got());
  }
}

}  // namespace

io::TomlDocument read_unedited(const std::string& path, const KeptText& kept) {
  if (const auto shipped = shipped_text(path))
    return io::TomlDocument::parse(std::string(*shipped), path);
  refuse_what_is_no_recipe(path);
  const std::string text = io::read_file(path, io::kMaxToml);
  const io::TomlDocument document = parse_file(text, path);
  if (io::seal_of_toml(text, document.text()) == io::Seal::broken)
    refuse_edited(path, document, kept ? kept(path) : "");
  return document;
}

}  // namespace heddle::recipe
