#include "recipe/begin_with.h"

#include <filesystem>
#include <system_error>

#include "heddle/error.h"
#include "io/files/file.h"
#include "model/parse/parse.h"
#include "pretrained/load.h"
#include "recipe/unedited.h"

namespace heddle::recipe {
namespace {

std::string recipe_of_run(const std::string& from) { return from + "/recipe.toml"; }

bool is_run(const std::string& from) { return io::file_exists(recipe_of_run(from)); }

void require_model(const std::string& from, const std::string& where) {
  std::error_code ignored;
  const bool there = std::filesystem::exists(from, ignored);
  if (there && (is_run(from) || pretrained::is_pretrained(from))) return;
  fail(ErrorCode::io, where,
       "key train.from: " +
           std::string(there ? "is no model to begin with" : "there is no such file or directory"),
       "the directory of a run, a directory with a config.json, or a .gguf file (a run that has "
       "begun goes on without it: heddle train RUN --resume)",
       from);
}

// A run keeps those of a model's files that a language model needs.
pretrained::Opened open_language_model(const std::string& from, const std::string& where) {
  pretrained::Opened opened = pretrained::open(from);
  if (opened.config.task != model::Task::language)
    fail(ErrorCode::unsupported, where, "key train.from: a model of others for this task",
         "a language model; others can be used, not trained further",
         "one for " + std::string(model::to_string(opened.config.task)));
  return opened;
}

}  // namespace

io::TomlDocument model_of(const std::string& from, const std::string& where) {
  require_model(from, where);
  if (is_run(from)) {
    io::TomlDocument document = read_unedited(recipe_of_run(from));
    for (const std::string& table : document.root().keys())
      if (table != "model") document.remove(table);
    return document;
  }
  io::TomlDocument document = io::TomlDocument::parse("", from);
  try {
    model::put_model(document, open_language_model(from, where).config);
  } catch (const Error& e) {
    if (e.where() != "[model]") throw;
    fail(e.code(), from, e.problem(), e.expected(), e.got());
  }
  return document;
}

std::shared_ptr<const data::Codec> codec_of(const std::string& from, const std::string& where) {
  require_model(from, where);
  return is_run(from) ? data::Codec::load(from)
                      : pretrained::codec_of(open_language_model(from, where));
}

}  // namespace heddle::recipe
