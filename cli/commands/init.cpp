// heddle init: a first recipe for one's own data.
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "command.h"
#include "data/library/library.h"
#include "heddle/error.h"
#include "io/files/file.h"
#include "io/shell_word.h"
#include "language/language.h"
#include "recipe/inherit.h"
#include "recipe/shipped/starter.h"

namespace heddle::cli::init_command {

namespace {

using recipe::StarterData;
using recipe::StarterSize;

struct Arguments {
  std::string file = "recipe.toml", data, path, size, base;
  bool force = false;
};

std::string answer(const std::string& question, const std::string& fallback) {
  std::cerr << question << " [" << fallback << "]: " << std::flush;
  std::string line;
  if (!std::getline(std::cin, line))
    fail(ErrorCode::invalid_argument, "init", "the questions were not answered",
         "answers, or --data, --path and --size");
  return line.empty() ? fallback : line;
}

template <class Value>
void explain(std::initializer_list<Value> all) {
  for (const Value value : all)
    std::cerr << "  " << recipe::to_string(value) << ": " << tr(recipe::explain(value)) << "\n";
}

// The place of the data until somebody names another.
std::string usual_path(StarterData data) {
  switch (data) {
    case StarterData::text: break;
    case StarterData::pairs: return "pairs.tsv";
    case StarterData::tags: return "tags.tsv";
    case StarterData::labelled: return "labelled.tsv";
    case StarterData::images: return "images";
  }
  return "input.txt";
}

// Looked for as training will.
bool is_there(const std::string& path, const std::string& recipe) {
  const std::string folder = std::filesystem::path(recipe).parent_path().string();
  return data::find_path(folder.empty() ? "." : folder, path).has_value();
}

// A path that was typed in is refused where nothing is: a slip is mended at once and not in the
// recipe.
void check_path(const std::string& path, const std::string& recipe) {
  if (is_there(path, recipe)) return;
  const data::KnownData* known = data::known_data_of(path);
  fail(ErrorCode::invalid_argument, "--path", "there is no such file or folder",
       known != nullptr ? "the data (" + data::how_to_get(*known) + ")"
                        : "one that is there, from the working directory; without --path the "
                          "recipe names a place that you can fill later",
       path);
}

// Asks until something is there, or until Enter takes the usual place, which may be filled later.
std::string ask_path(StarterData data, const std::string& recipe) {
  for (;;) {
    std::string path =
        answer(data == StarterData::images ? tr("folder") : tr("file"), usual_path(data));
    if (path == usual_path(data) || is_there(path, recipe)) return path;
    std::cerr << tr("{} is not here; the path is from the working directory.", path) << "\n";
  }
}

// Questions that the options leave open are asked, where somebody is there to answer.
recipe::Starter starter(const Arguments& a) {
  const bool ask =
      isatty(STDIN_FILENO) != 0 && (a.data.empty() || a.path.empty() || a.size.empty());
  recipe::Starter s;
  std::string data = a.data, path = a.path, size = a.size;
  if (ask && data.empty()) {
    std::cerr << tr("What is there to learn from?") << "\n";
    explain({StarterData::text, StarterData::pairs, StarterData::tags, StarterData::labelled,
             StarterData::images});
    data = answer(tr("data"), "text");
  }
  if (!data.empty()) s.data = recipe::starter_data(data);
  if (!path.empty()) check_path(path, a.file);
  if (ask && path.empty()) path = ask_path(s.data, a.file);
  s.path = path.empty() ? usual_path(s.data) : path;
  if (ask && size.empty()) {
    std::cerr << tr("How large?") << "\n";
    explain({StarterSize::tiny, StarterSize::small, StarterSize::medium});
    size = answer(tr("size"), "small");
  }
  if (!size.empty()) s.size = recipe::starter_size(size);
  return s;
}

std::string text_of(const Arguments& a) {
  const std::string file = io::shell_word(a.file);
  if (a.base.empty()) {
    const recipe::Starter s = starter(a);
    if (!is_there(s.path, a.file))
      std::cerr << tr("{} is not here yet: put your data there, or write its place into {}.",
                      s.path, a.file)
                << "\n";
    return recipe::starter_recipe(s, file);
  }
  const auto base = recipe::read_with_bases(recipe::find_base(a.file, a.base, "--base"));
  return recipe::derived_recipe(a.base, base.text(), file);
}

void run(const Arguments& a) {
  if (!a.force && std::filesystem::exists(a.file))
    fail(ErrorCode::invalid_argument, a.file, "is there already",
         "another name, or --force to write over it");
  io::write_file_atomic(a.file, text_of(a));
  std::cout << a.file << "\n";
  std::cerr << tr("next: heddle data {0}, then heddle train {0}", io::shell_word(a.file)) << "\n";
}

}  // namespace

void add(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("init", "writes a commented recipe for your data: three questions");
  command->footer(
      "Examples: heddle init\n"
      "          heddle init my.toml --data text --path input.txt --size tiny\n"
      "          heddle init my.toml --base char-gpt");
  auto a = std::make_shared<Arguments>();
  command->add_option("FILE", a->file, "the recipe to write")->capture_default_str();
  command->add_option("--data", a->data, "what there is to learn from; absent: asked, or text")
      ->check(CLI::IsMember({"text", "pairs", "tags", "labelled", "images"}));
  command
      ->add_option(
          "--path", a->path,
          "where it is; absent: asked, or input.txt, pairs.tsv, tags.tsv, labelled.tsv, images")
      ->type_name("PATH");
  command->add_option("--size", a->size, "of the model; absent: asked, or small")
      ->check(CLI::IsMember({"tiny", "small", "medium"}));
  CLI::Option* base =
      command
          ->add_option("--base", a->base,
                       "write one that says what differs from this recipe: a name (char-gpt), or a "
                       "path from FILE's folder")
          ->type_name("RECIPE");
  for (const char* name : {"--data", "--path", "--size"}) base->excludes(command->get_option(name));
  command->add_flag("--force", a->force, "write over a file that is there");
  command->callback([a] { run(*a); });
}

}  // namespace heddle::cli::init_command
