// Edges that the tests of each format leave between them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

#include "io/files/file.h"
#include "io/safetensors/safetensors.h"
#include "io/test_support.h"
#include "io/toml/toml.h"

namespace heddle::io {
namespace {

// The expected range is stated as it was given: with both ends, one of them, or none.
TEST(TomlEdges, RangesAreToldByTheirEnds) {
  const TomlDocument document = TomlDocument::parse("i = 5\nx = 0.5\ns = 'a'", "f");
  const TomlTable t = document.root();
  constexpr std::int64_t kLow = std::numeric_limits<std::int64_t>::min();
  constexpr double kLowest = std::numeric_limits<double>::lowest();
  expect_refusal([&] { (void)t.integer("i", {6}); }, {"expected an integer of at least 6; got 5"});
  expect_refusal([&] { (void)t.integer("i", {kLow, 4}); },
                 {"expected an integer of at most 4; got 5"});
  expect_refusal([&] { (void)t.integer("s"); }, {"expected an integer; got the string"});
  expect_refusal([&] { (void)t.number("x", {0.75}); },
                 {"expected a number of at least 0.75; got 0.5"});
  expect_refusal([&] { (void)t.number("x", {kLowest, 0.25}); },
                 {"expected a number of at most 0.25; got 0.5"});
  expect_refusal([&] { (void)t.number("i", {0, 4}); }, {"expected a number from 0 to 4; got 5"});
  expect_refusal([&] { (void)t.number("s"); }, {"expected a number; got the string"});
  EXPECT_EQ(t.integer("i", {5, 5}), 5);  // the ends belong to it
  EXPECT_EQ(t.number("x", {0.5, 0.5}), 0.5);
  EXPECT_EQ(t.number("i"), 5.0);
}

// A string of many lines may begin with quotes of its own, and end with them.
TEST(TomlEdges, QuotesInsideOfStringsHideNothing) {
  const std::string dots(100, '.');
  for (const char quote : {'"', '\''}) {
    const std::string three(3, quote), five(5, quote);
    const TomlDocument document = TomlDocument::parse(
        "a = " + five + dots + five + "\nb = " + three + quote + dots + three + "\nc = 1", "f");
    const std::string two(2, quote);
    EXPECT_EQ(document.root().string("a"), two + dots + two);
    EXPECT_EQ(document.root().string("b"), quote + dots);
    EXPECT_EQ(document.root().integer("c"), 1);
  }
}

// Members come in the order of the file: by line, then by column.
TEST(TomlEdges, MembersKeepTheirOrder) {
  const std::string text = "        z = 1\n    y = 2\na = 3\n[t]\nk = { d = 1, c = 2 }\n";
  EXPECT_EQ(TomlDocument::parse(text, "f").text(), "z = 1\ny = 2\na = 3\n\n[t.k]\nd = 1\nc = 2\n");
}

// Letters of both cases, digits, _ and - need no quotes; all else does.
TEST(TomlEdges, KeysAreQuotedWhereTheyMustBe) {
  const std::string text = "az = 1\nAZ = 2\n09 = 3\n_- = 4\n\"a b\" = 5\n\"a.b\" = 6\n\"é\" = 7\n";
  EXPECT_EQ(TomlDocument::parse(text, "f").text(), text);
}

TEST(TomlEdges, ABadPathIsShownAsItWasGiven) {
  TomlDocument document = TomlDocument::parse("a = 1", "f");
  for (const std::string path : {"model..layers", ".a", "a.", "b c", "a:b"})
    expect_refusal([&] { document.apply(path + "=3"); }, {"got \"" + path + "\""});
  for (const std::string path : {"b.C-9_z.k", "Z", "a0"}) document.apply(path + "=3");
  EXPECT_EQ(document.text(), "a = 1\nZ = 3\na0 = 3\n\n[b.C-9_z]\nk = 3\n");
}

// A killed process may have left a file with the next name, if its process number comes again.
TEST(AtomicFileEdges, LeftoversOfTheSameNameArePassedOver) {
  const TempDir dir;
  int next = 0;
  {
    const AtomicFile unfinished(dir.file("x"));
    const std::string name =
        std::filesystem::directory_iterator(dir.path())->path().filename().string();
    next = std::stoi(name.substr(name.rfind('-') + 1)) + 1;
  }
  for (int i = next; i < next + 3; ++i)
    dir.file(".heddle-" + std::to_string(::getpid()) + "-" + std::to_string(i) + ".tmp", "old");
  write_file_atomic(dir.file("x"), "new");
  EXPECT_EQ(slurp(dir.file("x")), "new");
  EXPECT_EQ(dir.entries(), 4u);
  EXPECT_EQ(slurp(dir.file(".heddle-" + std::to_string(::getpid()) + "-" + std::to_string(next) +
                           ".tmp")),
            "old");
}

TEST(SafetensorsEdges, AFileThatShrankSaysWhereAndHowMuch) {
  const TempDir dir;
  const std::string path = dir.file("m");
  write_safetensors(path, {{"first", Tensor::zeros({10})}, {"x", Tensor::zeros({100})}});
  const auto size = std::filesystem::file_size(path);
  const SafetensorsFile file(path);
  std::filesystem::resize_file(path, size - 30);
  expect_refusal([&] { (void)file.load("x"); },
                 {"400 bytes at offset " + std::to_string(size - 400), "got 370"});
}

}  // namespace
}  // namespace heddle::io
