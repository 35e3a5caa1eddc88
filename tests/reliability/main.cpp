// Whether a training run survives what happens to programs: killed at any moment, interrupted, a
// full disk. The result must be, byte for byte, that of an undisturbed run.
//
//   reliability_tests PROGRAM        HEDDLE_KILLS=200 for more kills than the 50 of `make test`
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "base/sanitizers.h"
#include "io/safetensors/safetensors.h"
#include "io/test_support.h"
#include "program.h"
#include "run/load_run.h"
#include "run/run_directory.h"
#include "run/state.h"
#include "train/checkpoint.h"

namespace reliability {
namespace {

namespace fs = std::filesystem;
using heddle::io::slurp;
using heddle::io::TempDir;
using heddle::run::RunPaths;
using nlohmann::json;
using std::chrono::duration;
using std::chrono::steady_clock;

// Saves and evaluates so often that a random moment is likely to be in the middle of a write, and
// in another rhythm than the log, so that its sums cross checkpoints.
constexpr const char* kRecipe = R"(
[model]
kind = "decoder"
layers = 1
width = 16
dropout = 0.1
[model.attention]
heads = 2
position = "rope"
[data]
text = "text.txt"
tokenizer = "char"
context = 16
[train]
steps = 120
batch = 4
schedule = "constant"
log_every = 5
eval_every = 4
eval_batches = 2
save_every = 3
)";

class Reliability : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    shared_ = new TempDir;
    std::string text;
    for (int i = 0; i < 400; ++i)
      text += std::to_string(i * i) + " is the square of " + std::to_string(i) + "\n";
    shared_->file("text.txt", text);
    shared_->file("recipe.toml", kRecipe);
    const auto start = steady_clock::now();
    const Ending ending = run({"train", recipe(), "--out", whole().directory, "--json"});
    seconds_ = duration<double>(steady_clock::now() - start).count();
    ASSERT_EQ(ending.status, 0) << ending.err;
    ASSERT_EQ(json::parse(ending.out)["step"], 120);
  }
  static void TearDownTestSuite() {
    delete shared_;
    shared_ = nullptr;
  }

  static std::string recipe() { return shared_->file("recipe.toml"); }
  static RunPaths whole() { return {shared_->file("whole")}; }
  static RunPaths fresh() {
    static int number = 0;
    return {shared_->file("run-" + std::to_string(number++))};
  }
  static std::vector<std::string> train(const RunPaths& run) {
    std::vector<std::string> arguments = {"train", recipe(), "--out", run.directory, "--json"};
    if (fs::exists(run.directory)) arguments.emplace_back("--resume");
    return arguments;
  }
  static double seconds() { return seconds_; }
  static void wait_for_a_step(const RunPaths& run) {
    while (!fs::exists(run.log()) || slurp(run.log()).empty())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  // Of this step or a later one: where the machine is busy, it may be gone before it is seen.
  static void wait_for_checkpoint(const RunPaths& run, std::int64_t step) {
    for (std::vector<std::int64_t> steps; steps.empty() || steps.back() < step;
         steps = heddle::run::checkpoint_steps(run))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  static std::vector<json> timeless_log(const RunPaths& run) {
    std::vector<json> lines;
    std::istringstream text(slurp(run.log()));
    for (std::string line; std::getline(text, line);) {
      json j = json::parse(line);
      j.erase("seconds");
      j.erase("tokens_per_s");
      lines.push_back(j);
    }
    return lines;
  }

  static void expect_as_if_undisturbed(const RunPaths& run) {
    EXPECT_TRUE(slurp(run.weights()) == slurp(whole().weights()));
    EXPECT_EQ(timeless_log(run), timeless_log(whole()));
    // The checkpoints too, but for the seconds in them.
    const heddle::io::SafetensorsFile a(run.checkpoint(120)), b(whole().checkpoint(120));
    ASSERT_EQ(a.entries().size(), b.entries().size());
    for (const auto& entry : a.entries())
      EXPECT_EQ(a.load(entry.name).to_vector<float>(), b.load(entry.name).to_vector<float>())
          << entry.name;
  }

  // Whatever is there must be whole.
  static void expect_loadable(const RunPaths& run) {
    if (fs::exists(run.weights())) {
      EXPECT_NO_THROW(heddle::run::load_run(run.directory));
    }
    if (!fs::exists(run.checkpoints())) return;
    for (const auto& file : fs::directory_iterator(run.checkpoints()))
      if (file.path().extension() == ".safetensors") {
        EXPECT_NO_THROW(heddle::io::SafetensorsFile{file.path().string()}) << file.path();
      }
  }

 private:
  static TempDir* shared_;
  static double seconds_;
};

TempDir* Reliability::shared_ = nullptr;
double Reliability::seconds_ = 0;

int kills_wanted() {
  const char* text = std::getenv("HEDDLE_KILLS");
  return text == nullptr ? 50 : std::atoi(text);
}

TEST_F(Reliability, KilledAtAnyMoment) {
  std::mt19937 random(20240607);
  // Short lives, so that a run is killed several times before it is done.
  std::uniform_real_distribution<double> moment(0, 0.6 * seconds());
  int kills = 0, runs = 0;
  while (kills < kills_wanted()) {
    const RunPaths paths = fresh();
    ++runs;
    for (bool done = false; !done;) {
      Program program(train(paths));
      if (kills < kills_wanted()) {
        std::this_thread::sleep_for(duration<double>(moment(random)));
        program.send(SIGKILL);
      }
      const Ending ending = program.wait();
      done = ending.status == 0;
      if (!done) {
        ASSERT_EQ(ending.signal, SIGKILL) << ending.err;
        ++kills;
      }
      expect_loadable(paths);
    }
    expect_as_if_undisturbed(paths);
  }
  std::cout << kills << " kills in " << runs << " runs\n";
}

TEST_F(Reliability, InterruptedItSaysHowToGoOn) {
  const RunPaths paths = fresh();
  {
    Program program(train(paths));
    wait_for_a_step(paths);
    program.send(SIGINT);
    const Ending ending = program.wait();
    EXPECT_EQ(ending.status, 130) << ending.err;
    EXPECT_NE(ending.err.find("heddle train " + paths.directory + " --resume"), std::string::npos)
        << ending.err;
    EXPECT_EQ(json::parse(ending.out)["ending"], "stopped");
  }
  expect_loadable(paths);
  // As it said: the directory stands for its recipe.
  EXPECT_EQ(run({"train", paths.directory, "--resume"}).status, 0);
  expect_as_if_undisturbed(paths);
  // A run that is done stays as it is.
  EXPECT_EQ(run({"train", paths.directory, "--resume"}).status, 0);
  expect_as_if_undisturbed(paths);
}

// The shell and the terminal both say so.
TEST_F(Reliability, AClosedTerminalIsAnInterruption) {
  const RunPaths paths = fresh();
  {
    Program program(train(paths));
    wait_for_a_step(paths);
    program.send(SIGHUP);
    program.send(SIGHUP);
    const Ending ending = program.wait();
    EXPECT_EQ(ending.status, 129) << ending.err;
    EXPECT_EQ(json::parse(ending.out)["ending"], "stopped");
  }
  EXPECT_EQ(run(train(paths)).status, 0);
  expect_as_if_undisturbed(paths);
}

// Which signals a process has a handler for, as the system shows it.
bool handles(pid_t pid, int signal) {
  std::istringstream lines(slurp("/proc/" + std::to_string(pid) + "/status"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("SigCgt:"))
      return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  return false;
}

// Its text is so long that it is surely reading when the signal comes.
TEST_F(Reliability, InterruptedBeforeTheFirstStepItLeavesNothing) {
  const RunPaths words = fresh();
  std::string text;
  for (int i = 0; i < 1000000; ++i) text += "word" + std::to_string(i * 7919LL % 1000003) + " ";
  std::ofstream(words.directory + ".txt") << text;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const RunPaths paths = fresh();
    std::vector<std::string> arguments = train(paths);
    arguments.insert(arguments.end(), {"--set", "data.text=" + words.directory + ".txt", "--set",
                                       "data.tokenizer=bpe:20000"});
    Program program(arguments);
    while (!handles(program.pid(), signal)) std::this_thread::yield();
    program.send(signal);
    const Ending ending = program.wait();
    EXPECT_EQ(ending.status, 128 + signal) << ending.err;
    EXPECT_NE(ending.err.find("interrupted before the first step"), std::string::npos)
        << ending.err;
    EXPECT_FALSE(fs::exists(paths.directory));
  }
}

// `heddle train 2>&1 | head`: the reader is gone after some evaluations.
TEST_F(Reliability, AReaderThatIsGoneIsAnInterruption) {
  const RunPaths paths = fresh();
  {
    Program program(train(paths), {.piped = true});
    ASSERT_TRUE(program.read_until("step 8: validation loss"));
    const Ending ending = program.wait();
    EXPECT_EQ(ending.signal, 0);
    EXPECT_EQ(ending.status, 128 + SIGPIPE);
  }
  // Stopped on the way, with a checkpoint of its last step: nothing of it comes again.
  const auto steps = heddle::run::checkpoint_steps(paths);
  ASSERT_FALSE(steps.empty());
  EXPECT_GE(steps.back(), 8);
  EXPECT_LT(steps.back(), 120);
  EXPECT_EQ(fs::file_size(paths.log()), heddle::run::newest_state(paths)->log_bytes);
  EXPECT_EQ(run(train(paths)).status, 0);
  expect_as_if_undisturbed(paths);
}

// The same where a file may not grow any more (ulimit -f): the system's signal is no end.
TEST_F(Reliability, AFullDiskLeavesTheLastCheckpoint) {
  const auto whole_checkpoint = fs::file_size(whole().checkpoint(120));
  // Room for the weights but not for a checkpoint; room for less than the log.
  for (const std::uint64_t limit : {std::uint64_t{whole_checkpoint} - 100, std::uint64_t{300}}) {
    const RunPaths paths = fresh();
    Program first(train(paths));
    wait_for_checkpoint(paths, 6);
    first.send(SIGKILL);
    first.wait();
    const Ending full = Program(train(paths), {.file_limit = limit}).wait();
    EXPECT_NE(full.status, 0);
    EXPECT_EQ(full.signal, 0);
    EXPECT_NE(full.err.find(paths.directory), std::string::npos) << full.err;
    EXPECT_NE(full.err.find("File too large"), std::string::npos) << full.err;
    expect_loadable(paths);
    EXPECT_EQ(run(train(paths)).status, 0);
    expect_as_if_undisturbed(paths);
  }
}

// Not permitted even for root: a file where the directory was.
TEST_F(Reliability, ADirectoryThatCannotBeWrittenIsNamedAndNothingIsLost) {
  const RunPaths paths = fresh();
  const fs::path checkpoints = paths.checkpoints(), aside = paths.directory + "-checkpoints";
  Program first(train(paths));
  wait_for_checkpoint(paths, 6);
  first.send(SIGSTOP);
  ASSERT_FALSE(fs::exists(paths.checkpoint(120)));
  fs::rename(checkpoints, aside);
  std::ofstream(checkpoints.string()) << "in the way";
  first.send(SIGCONT);
  const Ending ending = first.wait();
  EXPECT_EQ(ending.status, 1) << ending.err;
  EXPECT_NE(ending.err.find(checkpoints.string()), std::string::npos) << ending.err;
  EXPECT_NE(ending.err.find("Not a directory"), std::string::npos) << ending.err;
  EXPECT_NE(ending.err.find("--resume"), std::string::npos) << ending.err;
  EXPECT_EQ(run(train(paths)).status, 2);  // as long as it is in the way
  fs::remove(checkpoints);
  fs::rename(aside, checkpoints);
  expect_loadable(paths);
  EXPECT_EQ(run(train(paths)).status, 0);
  expect_as_if_undisturbed(paths);
}

TEST_F(Reliability, RefusesWhatWouldNotBeTheSameRun) {
  const auto refused = [](const std::vector<std::string>& arguments,
                          const std::vector<std::string>& parts) {
    const Ending ending = run(arguments);
    EXPECT_EQ(ending.status, 2) << ending.err;
    EXPECT_EQ(ending.out, "");
    for (const std::string& part : parts)
      EXPECT_NE(ending.err.find(part), std::string::npos) << "no " << part << " in " << ending.err;
  };
  const std::string there = whole().directory;
  const auto with = [&](const std::vector<const char*>& more) {
    std::vector<std::string> arguments = {"train", recipe(), "--out", there};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  refused(with({}), {"is there already", "--resume"});
  refused(with({"--resume", "--set", "model.width=32"}), {"model.width", "16", "32"});
  refused(with({"--resume", "--set", "train.steps=60"}), {"train.steps", "120 or more", "60"});
  refused(with({"--resume", "--set", "train.seed=2"}), {"train.seed"});
  // The directory's own recipe is no way around it.
  const std::string original = slurp(whole().recipe());
  for (const auto& [old, now] : std::vector<std::pair<std::string, std::string>>{
           {"position = \"rope\"", "position = \"alibi\""}, {"width = 16", "width = 32"}}) {
    std::string edited = original;
    edited.replace(edited.find(old), old.size(), now);
    std::ofstream(whole().recipe()) << edited;
    refused({"train", there, "--resume"},
            {whole().recipe() + ":", old.substr(0, old.find(' ')), "the run's", "edited"});
    std::ofstream(whole().recipe()) << edited.substr(edited.find('\n') + 1);
    refused({"train", there, "--resume"}, {whole().recipe() + ":", "the run to go on with"});
  }
  std::ofstream(whole().recipe()) << original;
  refused(with({"--set", "train.stepz=60"}), {"stepz", "steps"});
  refused({"train", recipe(), "--out", fresh().directory, "--resume"}, {"is not there"});
  refused({"train", recipe(), "--out", recipe() + "/run"}, {recipe()});
  expect_as_if_undisturbed(whole());
}

// More steps are fine where the schedule does not go by their number.
TEST_F(Reliability, GrowsToTheRunThatAskedForMoreSteps) {
  const RunPaths grown = fresh();
  ASSERT_EQ(run({"train", recipe(), "--out", grown.directory, "--set", "train.steps=60", "--set",
                 "train.warmup=12"})
                .status,
            0);
  ASSERT_EQ(
      run({"train", recipe(), "--out", grown.directory, "--set", "train.warmup=12", "--resume"})
          .status,
      0);
  expect_as_if_undisturbed(grown);
}

// Nothing of it is worth anything, so the same command begins anew, with what it says now.
TEST_F(Reliability, ARunThatDiedBeforeItSavedAnythingBlocksNoSecondTry) {
  const RunPaths paths = fresh();
  const std::vector<std::string> words = {"train", recipe(), "--out", paths.directory, "--json"};
  std::vector<std::string> silent = words;
  for (const char* set :
       {"train.steps=1000000", "train.log_every=1000000", "train.eval_every=1000000",
        "train.save_every=1000000", "data.tokenizer=byte"}) {
    silent.emplace_back("--set");
    silent.emplace_back(set);
  }
  Program first(silent);
  while (!fs::exists(paths.log())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const Ending meanwhile = run(words);
  EXPECT_EQ(meanwhile.status, 2);
  EXPECT_NE(meanwhile.err.find("another process"), std::string::npos) << meanwhile.err;
  first.send(SIGKILL);
  first.wait();
  ASSERT_TRUE(fs::exists(paths.recipe()));
  const Ending second = run(words);
  EXPECT_EQ(second.status, 0) << second.err;
  expect_as_if_undisturbed(paths);
}

#if !HEDDLE_SANITIZED_MEMORY
// ulimit -v, for the programs that are started while it lives.
class AddressLimit {
 public:
  explicit AddressLimit(rlim_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit narrow{bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_AS, &narrow), 0);
  }
  ~AddressLimit() { setrlimit(RLIMIT_AS, &before_); }
  AddressLimit(const AddressLimit&) = delete;
  AddressLimit& operator=(const AddressLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_F(Reliability, ASmallRunNeedsLittleMemory) {
  const RunPaths paths = fresh();
  {
    const AddressLimit limit(rlim_t{400000} << 10);
    const Ending ending = run(train(paths));
    EXPECT_EQ(ending.status, 0) << ending.err;
  }
  expect_as_if_undisturbed(paths);
}

// Refused before it begins, or in the middle of its first step: neither leaves anything.
TEST_F(Reliability, ARunThatMemoryIsRefusedLeavesNothingBehind) {
  const RunPaths paths = fresh();
  const std::vector<std::string> words = {"train", recipe(), "--out", paths.directory, "--json"};
  for (const char* width : {"model.width=1024", "model.width=896"}) {
    std::vector<std::string> large = words;
    for (const char* set : {width, "train.batch=64"}) {
      large.emplace_back("--set");
      large.emplace_back(set);
    }
    const AddressLimit limit(rlim_t{400000} << 10);
    const Ending ending = run(large);
    EXPECT_NE(ending.status, 0);
    EXPECT_NE(ending.err.find("memory"), std::string::npos) << ending.err;
    EXPECT_FALSE(fs::exists(paths.directory)) << ending.err;
  }
  EXPECT_EQ(run(words).status, 0);
  expect_as_if_undisturbed(paths);
}
#endif

// Whoever kills it has the page as of its last renewal, and can have it made anew.
TEST_F(Reliability, TheReportIsThereWhileTheRunGoes) {
  const RunPaths paths = fresh();
  {
    Program program({"train", recipe(), "--out", paths.directory, "--set", "train.steps=1000000"});
    while (!fs::exists(paths.report())) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    program.send(SIGKILL);
    EXPECT_EQ(program.wait().signal, SIGKILL);
  }
  const auto has = [&](const char* text) {
    return slurp(paths.report()).find(text) != std::string::npos;
  };
  EXPECT_TRUE(has("running, step") && slurp(paths.report()).ends_with("</html>\n"));
  EXPECT_EQ(run({"report", paths.directory}).status, 0);
  EXPECT_TRUE(has("stopped at step") && !has("running, step"));
  const Ending watched = run({"watch", paths.directory});
  EXPECT_EQ(watched.status, 0) << watched.err;
  EXPECT_NE(watched.out.find("heddle train " + paths.directory + " --resume"), std::string::npos)
      << watched.out;
}

TEST_F(Reliability, AWatchEndsWithItsRunAndDoesItNoHarm) {
  const RunPaths paths = fresh();
  Program program(train(paths));
  wait_for_a_step(paths);
  {
    Program impatient({"watch", paths.directory});
    impatient.send(SIGINT);
    impatient.wait();
  }
  const Ending watched = run({"watch", paths.directory});
  EXPECT_EQ(watched.status, 0) << watched.err;
  EXPECT_NE(watched.out.find("finished after 120 steps"), std::string::npos) << watched.out;
  EXPECT_EQ(program.wait().status, 0);
  expect_as_if_undisturbed(paths);
}

TEST_F(Reliability, OneProcessTrainsARun) {
  const RunPaths paths = fresh();
  Program first(train(paths));
  wait_for_checkpoint(paths, 3);
  first.send(SIGSTOP);
  const Ending second = run(train(paths));
  first.send(SIGCONT);
  EXPECT_EQ(second.status, 2);
  EXPECT_NE(second.err.find("another process"), std::string::npos) << second.err;
  EXPECT_EQ(first.wait().status, 0);
  expect_as_if_undisturbed(paths);
}

}  // namespace
}  // namespace reliability

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::cerr << "usage: reliability_tests PROGRAM\n";
    return 2;
  }
  reliability::Program::path = argv[1];
  return RUN_ALL_TESTS();
}
