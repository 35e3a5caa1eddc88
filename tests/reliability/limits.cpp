// Paths that are not files, or files larger than the memory: refused at once and by name, by every
// command that would have read them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "io/test_support.h"
#include "program.h"

namespace reliability {
namespace {

namespace fs = std::filesystem;
using heddle::io::gzipped;
using heddle::io::TempDir;

constexpr const char* kSmall = R"(
[model]
kind = "decoder"
layers = 1
width = 8
[model.attention]
heads = 2
[data]
text = "text.txt"
tokenizer = "char"
context = 8
[train]
steps = 6
batch = 2
save_every = 3
)";

class Limits : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 300; ++i) text += std::to_string(i * i) + " and ";
    dir_.file("text.txt", text);
    dir_.file("recipe.toml", kSmall);
    const Ending ending = run({"train", dir_.file("recipe.toml"), "--out", dir_.file("run")});
    ASSERT_EQ(ending.status, 0) << ending.err;
  }

  void expect_refused(const std::vector<std::string>& arguments, const std::string& part) {
    const Ending ending = run(arguments);
    EXPECT_EQ(ending.signal, 0);
    EXPECT_EQ(ending.status, 2) << ending.err;
    EXPECT_NE(ending.err.find(part), std::string::npos) << "no " << part << " in " << ending.err;
  }

  TempDir dir_;
};

// A pipe without a writer keeps whoever opens it waiting for ever.
TEST_F(Limits, APipeInARunsDirectoryIsRefused) {
  const std::string resume = dir_.file("run");
  for (const std::string name : {"recipe.toml", "codec.json", "tokenizer.json", "model.safetensors",
                                 "log.jsonl", "lock", "checkpoints/step-6.safetensors"}) {
    SCOPED_TRACE(name);
    const std::string path = dir_.file("run/" + name), aside = dir_.file("aside");
    fs::rename(path, aside);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    const bool of_use = name != "log.jsonl" && name != "lock" && !name.starts_with("checkpoints");
    if (of_use)
      expect_refused({"generate", resume, "--prompt", "1", "--tokens", "1"}, path + ": is a pipe");
    if (name == "checkpoints/step-6.safetensors") {
      // As a damaged one: passed over, and the run goes on from the one before.
      const Ending ending = run({"train", resume, "--resume"});
      EXPECT_EQ(ending.status, 0) << ending.err;
      EXPECT_NE(ending.err.find("is a pipe"), std::string::npos) << ending.err;
      // It has written another in its place, which the log belongs to: the old one knows the length
      // of a log whose times had other digits.
      EXPECT_TRUE(fs::is_regular_file(path));
      continue;
    }
    if (name != "model.safetensors")
      expect_refused({"train", resume, "--resume"}, path + ": is a pipe");
    fs::remove(path);
    fs::rename(aside, path);
  }
  fs::remove(dir_.file("run/plan.json"));
  const Ending ending = run({"train", resume, "--resume"});
  EXPECT_EQ(ending.status, 0) << ending.err;
}

TEST_F(Limits, PipesAndDevicesAreNoData) {
  const std::string pipe = dir_.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& [path, kind] : std::vector<std::pair<std::string, std::string>>{
           {pipe, "is a pipe"}, {"/dev/zero", "is a device"}}) {
    expect_refused({"data", dir_.file("recipe.toml"), "--set", "data.text=" + path},
                   path + ": " + kind);
    expect_refused({"train", path, "--out", dir_.file("new")}, path + ": " + kind);
    expect_refused({"tokenizer", "train", "--spec", "bpe:300", "--out", dir_.file("t.json"), path},
                   path + ": " + kind);
    expect_refused({"tokenize", path}, path + ": " + kind);
  }
  EXPECT_FALSE(fs::exists(dir_.file("new")));
}

// 700 members of a megabyte each: 700 kB of gzip.
TEST_F(Limits, WhatDoesNotFitIntoMemoryIsRefusedByName) {
  std::string bomb;
  const std::string member = gzipped(std::string(std::size_t{1} << 20, 'x'));
  for (int i = 0; i < 700; ++i) bomb += member;
  const std::string path = dir_.file("bomb.gz", bomb);
  const Ending ending = Program({"data", dir_.file("recipe.toml"), "--set", "data.text=" + path},
                                {.memory_limit = std::uint64_t{2} << 30})
                            .wait();
  EXPECT_EQ(ending.status, 2) << ending.err;
  EXPECT_NE(ending.err.find(path + ": is too large once unpacked"), std::string::npos)
      << ending.err;
  EXPECT_NE(ending.err.find("at most 536870912 bytes, a quarter of the memory"), std::string::npos)
      << ending.err;
}

// Whatever it was doing when memory ran out: no signal, no exception's name, and the command is
// told.
TEST_F(Limits, WithLittleMemoryACommandSaysWhatItWasDoing) {
  int failed = 0, done = 0;
  const std::vector<std::string> generate = {"generate", dir_.file("run"), "--prompt",
                                             "1",        "--tokens",       "3"};
  // With less than the program's own pages the system ends it before its first line.
  const std::uint64_t begin = fs::file_size(Program::path) >> 20;
  for (std::uint64_t megabytes = begin; megabytes <= 400 && done < 2; megabytes += 2) {
    const Ending ending = Program(generate, {.memory_limit = megabytes << 20}).wait();
    if (ending.status == 127) continue;  // of the loader: not even the libraries fit in
    SCOPED_TRACE(std::to_string(megabytes) + " MB: " + ending.err);
    EXPECT_EQ(ending.signal, 0);
    if (ending.status == 0) {
      ++done;
      continue;
    }
    ++failed;
    EXPECT_EQ(ending.status, 1);
    EXPECT_EQ(ending.err.find("bad_alloc"), std::string::npos);
    EXPECT_NE(ending.err.find("heddle: generate: "), std::string::npos);
    EXPECT_NE(ending.err.find("memory"), std::string::npos);
  }
  EXPECT_GT(failed, 0);
  EXPECT_EQ(done, 2);
}

}  // namespace
}  // namespace reliability
