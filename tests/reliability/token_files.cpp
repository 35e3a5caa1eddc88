// Token files survive what happens to the programs that write and read them, and change no bit of a
// model.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "io/test_support.h"
#include "program.h"

namespace reliability {
namespace {

namespace fs = std::filesystem;
using heddle::io::slurp;
using heddle::io::TempDir;
using nlohmann::json;

constexpr const char* kTokens = R"(
[model]
kind = "decoder"
layers = 1
width = 8
[model.attention]
heads = 2
[data]
text = "text.txt"
tokenizer = "bpe:300"
context = 8
[train]
steps = 6
batch = 2
eval_every = 3
eval_batches = 4
schedule = "constant"
)";

class TokenFiles : public testing::Test {
 protected:
  void SetUp() override { dir_.file("recipe.toml", kTokens); }

  void write_text(std::size_t bytes) const {
    std::ofstream file(dir_.file("text.txt"));
    std::string text;
    for (std::size_t i = 0, done = 0; done < bytes; done += text.size(), text.clear()) {
      for (int j = 0; j < 10000; ++j) text += "word" + std::to_string(i++ * 7919 % 9973) + " ";
      file << text;
    }
  }

  std::vector<std::string> train(const std::string& out, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"train", dir_.file("recipe.toml"), "--out",
                                          dir_.file(out), "--json"};
    if (more.empty()) more = {"data.token_folder=" + dir_.file("tokens")};
    for (const std::string& one : more) arguments.insert(arguments.end(), {"--set", one});
    return arguments;
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_.file("tokens")))
      names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }

  std::string model(const std::string& run) const {
    return slurp(dir_.file(run) + "/model.safetensors");
  }

  TempDir dir_;
};

TEST_F(TokenFiles, WhatIsInterruptedLeavesNothingOrWholeFiles) {
  write_text(16u << 20);
  for (const int signal : {SIGINT, SIGKILL}) {
    SCOPED_TRACE(signal);
    fs::remove_all(dir_.file("tokens"));
    {
      Program program(train("killed"));
      while (!fs::exists(dir_.file("tokens/lock")))
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      program.send(signal);
      program.wait();
    }
    EXPECT_FALSE(fs::exists(dir_.file("killed")));
    for (const std::string& name : files())  // a file system may know no files without a name
      EXPECT_TRUE(name == "lock" || name.ends_with(".tokens") || name.starts_with(".heddle-"))
          << name;
  }
  const std::size_t before = files().size();
  EXPECT_LE(before, 3u);
  const Ending ending = run(train("after"));
  EXPECT_EQ(ending.status, 0) << ending.err;
}

TEST_F(TokenFiles, TwoProcessesWriteThemOnce) {
  write_text(8u << 20);
  Program first(train("first")), second(train("second"));
  EXPECT_EQ(first.wait().status, 0);
  EXPECT_EQ(second.wait().status, 0);
  EXPECT_EQ(files().size(), 3u);  // training, the end that is held out, the lock
  EXPECT_EQ(model("first"), model("second"));
}

TEST_F(TokenFiles, AModelIsTheSameWithThemAndWithout) {
  write_text(1u << 20);
  const std::string none = "data.token_folder=\"\"";
  for (const std::string tokenizer : {"bpe:300", "char", "byte"}) {
    SCOPED_TRACE(tokenizer);
    const std::string folder = "data.token_folder=" + dir_.file("tokens");
    const std::string kind = "data.tokenizer=" + tokenizer, name = tokenizer.substr(0, 3);
    ASSERT_EQ(run(train(name + "a", {kind, none})).status, 0);
    ASSERT_EQ(run(train(name + "b", {kind, folder})).status, 0);
    EXPECT_EQ(model(name + "a"), model(name + "b"));
    // A run takes them up and leaves them when it goes on.
    ASSERT_EQ(run(train(name + "c", {kind, none, "train.steps=2"})).status, 0);
    for (const auto& [steps, with] : {std::pair("4", folder), std::pair("6", none)}) {
      std::vector<std::string> more =
          train(name + "c", {kind, with, "train.steps=" + std::string(steps)});
      more.emplace_back("--resume");
      const Ending ending = run(more);
      ASSERT_EQ(ending.status, 0) << ending.err;
    }
    EXPECT_EQ(model(name + "a"), model(name + "c"));
  }
}

// A sanitizer's memory is not ours.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(TokenFiles, ALargeTextNeedsNoMemory) {
  write_text(80u << 20);
  const Ending ending =
      run(train("run", {"data.tokenizer=byte", "data.token_folder=" + dir_.file("tokens")}));
  ASSERT_EQ(ending.status, 0) << ending.err;
  const std::int64_t measured = json::parse(ending.out).at("process_peak_bytes");
  const json planned = json::parse(slurp(dir_.file("run") + "/plan.json"))["process_peak_bytes"];
  EXPECT_LE(measured, 50 << 20);
  EXPECT_LE(planned.at("data"), 100000);
  EXPECT_LE(planned.at("total"), measured + (16 << 20));
  EXPECT_NE(ending.err.find(dir_.file("tokens")), std::string::npos) << ending.err;
}
#endif

}  // namespace
}  // namespace reliability
