// Fine-tuning of a model that others trained: what the run takes from its files, to the bit, and
// that it needs them no longer once it has saved something.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/test_support.h"
#include "io/test_support.h"
#include "pretrained/test_tiny_llama.h"
#include "run/load_run.h"
#include "run/recipe_file.h"
#include "train/job.h"

namespace heddle::train {
namespace {

using io::slurp;

constexpr const char* kChat = R"({"messages": [{"role": "user", "content": "ab"},
 {"role": "assistant", "content": "ba"}]})";

class FineTune : public testing::Test {
 protected:
  FineTune() {
    model_ = pretrained::write_tiny_llama(llama_.path());
    std::string text, lines, one_line = kChat;
    std::erase(one_line, '\n');
    for (int i = 0; i < 40; ++i) text += "a text of line " + std::to_string(i) + "\n";
    for (int i = 0; i < 9; ++i) lines += one_line + "\n";
    dir_.file("text.txt", text);
    dir_.file("chat.jsonl", lines);
  }

  std::string recipe(const std::string& data, const std::string& model = "") {
    return dir_.file("r.toml", model + "[data]\n" + data +
                                   "[train]\nsteps = 4\nbatch = 3\nsave_every = 2\nlog_every = 1\n"
                                   "learning_rate = 0.01\nfrom = \"" +
                                   llama_.path() + "\"\n");
  }
  std::string text(std::int64_t context = 12) {
    return recipe("text = \"" + dir_.file("text.txt") +
                  "\"\nvalidation_share = 0.2\ncontext = " + std::to_string(context) + "\n");
  }
  std::string chat() { return recipe("chat = \"" + dir_.file("chat.jsonl") + "\"\n"); }
  std::string out(const std::string& name) const { return dir_.file("runs/" + name); }
  Job begin(const std::string& path, const std::string& name,
            const std::vector<std::string>& set = {}) {
    return Job::begin(run::load_recipe(path, set), out(name));
  }
  void expect_weights_of_the_files(const Job& job) {
    const auto& want = model_->parameters().all();
    const auto& got = job.model().parameters().all();
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(got[i].tensor.to_vector<float>(), want[i].tensor.to_vector<float>())
          << want[i].name;
  }

  io::TempDir llama_, dir_;
  std::unique_ptr<model::Model> model_;
};

TEST_F(FineTune, TakesModelTokensAndWeightsFromTheFiles) {
  const Job job = begin(text(), "a");
  expect_weights_of_the_files(job);
  EXPECT_TRUE(job.adopted().empty()) << job.adopted().front();
  EXPECT_EQ(job.recipe().model.sizes.vocabulary, 259);  // rows without a token stay
  EXPECT_EQ(job.recipe().model.sizes.context, 64);      // windows are shorter
  EXPECT_EQ(job.data().training_batch(0, 1, 1).tokens.size(1), 12);
  EXPECT_NE(job.recipe().toml.find("kv_heads = 2"), std::string::npos) << job.recipe().toml;
}

TEST_F(FineTune, TheRunIsCompleteWithoutTheFiles) {
  begin(chat(), "a").run({});
  std::filesystem::remove_all(llama_.path());
  const run::LoadedRun run = run::load_model(out("a"));
  EXPECT_EQ(run.ends, (std::vector<std::int32_t>{7, 9}));
  ASSERT_EQ(run.templates.size(), 1u);
  EXPECT_EQ(run.templates[0].name, "default");
  EXPECT_EQ(run.codec->source().specials().end, run.codec->source().find("</s>"));
  EXPECT_EQ(run.model->config().sizes.vocabulary, 259);
  EXPECT_EQ(run.codec->source().encode("</s>", run.codec->specials()).size(), 4u);
}

// Stopped after two of four steps, with the files gone.
TEST_F(FineTune, ResumesToTheBitWithoutTheFiles) {
  for (const std::string name : {"text", "chat"}) {
    const std::string path = name == "text" ? text() : chat();
    begin(path, name + "-whole").run({});
    Hooks hooks;
    std::int64_t step = 0;
    hooks.on_step = [&step](const StepReport& r) { step = r.step; };
    hooks.should_stop = [&step] { return step == 2; };
    const run::RunPaths whole{out(name + "-whole")}, stopped{out(name + "-stopped")};
    EXPECT_EQ(begin(path, name + "-stopped").run(hooks).ending, Ending::stopped);
    const std::string away = llama_.path() + "-away";
    std::filesystem::rename(llama_.path(), away);
    Job::resume(run::load_recipe(stopped.recipe()), stopped.directory).run({});
    expect_says([&] { run::load_recipe(path); }, {"train.from", llama_.path(), "--resume"});
    std::filesystem::rename(away, llama_.path());
    EXPECT_TRUE(slurp(stopped.weights()) == slurp(whole.weights()));
  }
}

TEST_F(FineTune, WhatIsDifferentIsSaidOrRefused) {
  const Job wider = begin(text(), "a", {"model.attention.look_back=5", "model.dropout=0.1"});
  expect_weights_of_the_files(wider);
  ASSERT_EQ(wider.adopted().size(), 2u);
  EXPECT_EQ(wider.adopted()[0], "model.attention.look_back was absent and is 5");
  expect_says([&] { begin(text(), "b", {"model.width=32"}); },
              {"model.safetensors", "tensor embed.weight"});
  expect_says([&] { begin(text(), "b", {"train.from=nowhere"}); }, {"train.from", "nowhere"});
  // A longer context needs no weights where positions are turned, and other tokens are taken by
  // their texts.
  EXPECT_EQ(begin(text(90), "c").recipe().model.sizes.context, 90);
  const Job other = begin(text(), "d", {"data.tokenizer=char"});
  EXPECT_LT(other.recipe().model.sizes.vocabulary, 40);
  EXPECT_FALSE(other.adopted().empty());
}

// The run's own [model] and tokens, as of any other run to begin with.
TEST_F(FineTune, GoesOnFromARun) {
  begin(text(), "a").run({});
  const std::string from = "train.from=" + out("a");
  const Job job = begin(chat(), "b", {from});
  const run::LoadedRun before = run::load_model(out("a"));
  const auto &want = before.model->parameters().all(), &got = job.model().parameters().all();
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(got[i].tensor.to_vector<float>(), want[i].tensor.to_vector<float>()) << want[i].name;
  EXPECT_TRUE(job.adopted().empty());
}

}  // namespace
}  // namespace heddle::train
