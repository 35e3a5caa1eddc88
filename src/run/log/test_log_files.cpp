// Log formats for other programs: CSV and TensorBoard's event files.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/test_support.h"
#include "io/files/checksums/crc32c.h"
#include "io/files/file.h"
#include "io/test_support.h"
#include "recipe/test_toys.h"
#include "run/log/log_files.h"
#include "run/log/tensorboard.h"
#include "train/trainer.h"

namespace heddle::run {

using namespace toys;
namespace {

using io::TempDir;

// RFC 3720, B.4, and the check value of the algorithm.
TEST(Crc32c, KnownVectors) {
  EXPECT_EQ(io::crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(io::crc32c(""), 0U);
  EXPECT_EQ(io::crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(io::crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  std::string up;
  for (char c = 0; c < 32; ++c) up += c;
  EXPECT_EQ(io::crc32c(up), 0x46DD794EU);
}

std::string hex(std::string_view bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

// Byte by byte: written by a second program, and read by TensorBoard.
TEST(Tensorboard, RecordsAreExactToTheByte) {
  EXPECT_EQ(hex(tf_record(tf_version_event(1000))),
            "1800000000000000a37f4b22"
            "090000000000408f401a0d627261696e2e4576656e743a32"
            "73ae6b56");
  const std::vector<TaggedScalar> one = {{"train/loss", 2.5F}};
  EXPECT_EQ(hex(tf_record(tf_scalar_event(1001.5, 300, one))),
            "2100000000000000017becf6"
            "0900000000004c8f4010ac022a130a110a0a747261696e2f6c6f73731500002040"
            "5bd093ea");
}

LogLine step_log_line(int step) {
  return {{"step", step},         {"loss", 2.5},           {"lr", 1e-5},
          {"tokens", 100 * step}, {"seconds", 0.5 * step}, {"tokens_per_s", 200.0},
          {"grad_norm", 1.25},    {"live_bytes", 4096}};
}
LogLine eval_log_line(int step) {
  return {{"step", step}, {"eval_loss", 3.0}, {"eval_tokens", 64}, {"seconds", 0.5 * step + 0.25}};
}

constexpr const char* kCsvHead =
    "step,loss,lr,tokens,seconds,tokens_per_s,grad_norm,live_bytes,eval_loss,eval_tokens,"
    "accuracy,sent_bytes,communication_seconds,communication_hidden\n";

TEST(LogFiles, CsvHasARowForEachLine) {
  const TempDir dir;
  LogFiles log({dir.path()}, {recipe::LogFormat::jsonl, recipe::LogFormat::csv}, 0);
  EXPECT_FALSE(io::file_exists(dir.file("log.csv")));  // before the first line there is nothing
  log.append(step_log_line(10));
  log.append(eval_log_line(10));
  LogLine labelled = eval_log_line(20);
  labelled["accuracy"] = 0.5;
  log.append(labelled);
  EXPECT_EQ(io::slurp(dir.file("log.csv")), std::string(kCsvHead) +
                                                "10,2.5,1e-05,1000,5.0,200.0,1.25,4096,,,,,,\n"
                                                "10,,,,5.25,,,,3.0,64,,,,\n"
                                                "20,,,,10.25,,,,3.0,64,0.5,,,\n");
  EXPECT_EQ(io::slurp(dir.file("log.jsonl")).size(), log.size());
}

std::string events_file(const std::string& directory) {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("events.out.tfevents.")) continue;
    EXPECT_EQ(found, "") << "two event files";
    found = entry.path().string();
  }
  return found;
}

TEST(LogFiles, EventsHaveTheTimeOfTheRunAndTagsForEachValue) {
  const TempDir dir;
  const auto copy = make_tensorboard_copy({dir.path()}, 1000);
  EXPECT_EQ(copy->path(), dir.file("events.out.tfevents.1000.heddle"));
  copy->append(step_log_line(3));
  copy->append(eval_log_line(3));
  const std::vector<TaggedScalar> step = {
      {"train/loss", 2.5F},        {"train/learning_rate", 1e-5F}, {"train/tokens", 300},
      {"train/tokens_per_s", 200}, {"train/grad_norm", 1.25F},     {"train/live_bytes", 4096}};
  const std::vector<TaggedScalar> eval = {{"validation/loss", 3}, {"validation/tokens", 64}};
  EXPECT_EQ(hex(io::slurp(copy->path())),
            hex(tf_record(tf_version_event(1000)) + tf_record(tf_scalar_event(1001.5, 3, step)) +
                tf_record(tf_scalar_event(1001.75, 3, eval))));
  // The run that goes on later takes the same file.
  EXPECT_EQ(make_tensorboard_copy({dir.path()}, 2000)->path(), copy->path());
}

// Cut where the checkpoint was, whatever is in the copies: they are those of an undisturbed run.
TEST(LogFiles, WhatLiesBehindTheCheckpointIsCutFromAllOfThem) {
  const std::vector<recipe::LogFormat> all = {recipe::LogFormat::jsonl, recipe::LogFormat::csv,
                                              recipe::LogFormat::tensorboard};
  for (const char* damage : {"none", "torn", "other", "missing"}) {
    SCOPED_TRACE(damage);
    const TempDir dir;
    const RunPaths paths{dir.path()};
    std::uint64_t kept = 0;
    {
      LogFiles log(paths, all, 0);
      log.append(step_log_line(10));
      log.append(eval_log_line(10));
      kept = log.size();
      log.append(step_log_line(20));
      log.append(step_log_line(30));
    }
    const std::string csv = dir.file("log.csv"), events = events_file(dir.path());
    for (const std::string& path : {csv, events}) {
      if (damage == std::string("torn")) std::filesystem::resize_file(path, 30);
      if (damage == std::string("other")) io::write_file_atomic(path, "something else\n");
      if (damage == std::string("missing") && path == csv) std::filesystem::remove(path);
    }
    {
      LogFiles log(paths, all, kept);
      log.append(step_log_line(20));
    }
    EXPECT_EQ(io::slurp(csv), std::string(kCsvHead) +
                                  "10,2.5,1e-05,1000,5.0,200.0,1.25,4096,,,,,,\n"
                                  "10,,,,5.25,,,,3.0,64,,,,\n"
                                  "20,2.5,1e-05,2000,10.0,200.0,1.25,4096,,,,,,\n");
    const TempDir whole;  // the same lines in one sitting
    const std::string name = std::filesystem::path(events).filename().string();
    whole.file(name, "");  // the same beginning
    {
      LogFiles log({whole.path()}, all, 0);
      EXPECT_FALSE(io::file_exists(whole.file(name)));
    }
    const std::int64_t began = std::stoll(name.substr(20));
    const auto copy = make_tensorboard_copy({whole.path()}, began);
    for (const LogLine& line : {step_log_line(10), eval_log_line(10), step_log_line(20)})
      copy->append(line);
    EXPECT_EQ(hex(io::slurp(events)), hex(io::slurp(copy->path())));
    {
      const LogFiles anew(paths, all, 0);
    }  // killed before its first checkpoint
    EXPECT_FALSE(io::file_exists(csv) || io::file_exists(events));
  }
}

// A run that is stopped and goes on leaves the copies that its log gives, each step once.
TEST(LogFiles, ACopyOfAResumedRunIsThatOfItsLog) {
  const TempDir dir;
  recipe::TrainConfig config = toy_training();
  config.log = {recipe::LogFormat::jsonl, recipe::LogFormat::csv, recipe::LogFormat::tensorboard};
  const ToyData data(true, true);
  const auto sitting = [&](std::int64_t last) {
    RunDirectory directory(dir.file("run"));
    const auto model = toy();
    std::int64_t at = 0;
    train::Hooks hooks;
    hooks.on_step = [&at](const train::StepReport& r) { at = r.step; };
    hooks.should_stop = [&at, last] { return at >= last; };
    train::Trainer trainer(*model, data, config, &directory, hooks);
    trainer.resume();
    trainer.run();
  };
  sitting(7);
  const std::string csv = dir.file("run/log.csv"), events = events_file(dir.file("run"));
  {  // lines that a killed process wrote after its checkpoint
    io::AppendFile(csv).append("999,,,,,,,,,,\n");
    io::AppendFile(events).append(tf_record("nonsense"));
  }
  sitting(config.steps + 1);
  std::string wanted = kCsvHead;
  std::istringstream text(io::slurp(dir.file("run/log.jsonl")));
  std::size_t records = 1;
  for (std::string line; std::getline(text, line); ++records) {
    const LogLine j = LogLine::parse(line);
    const auto cell = [&j](const char* key) { return j.contains(key) ? j[key].dump() : ""; };
    wanted += cell("step") + "," + cell("loss") + "," + cell("lr") + "," + cell("tokens") + "," +
              cell("seconds") + "," + cell("tokens_per_s") + "," + cell("grad_norm") + "," +
              cell("live_bytes") + "," + cell("eval_loss") + "," + cell("eval_tokens") + "," +
              cell("accuracy") + ",,,\n";  // one process talks to nobody
  }
  EXPECT_EQ(io::slurp(csv), wanted);
  const std::string bytes = io::slurp(events);
  std::size_t at = 0, found = 0;
  while (at + 16 <= bytes.size()) {
    ++found;
    at += 16 + static_cast<unsigned char>(bytes[at]) +
          256 * static_cast<unsigned char>(bytes[at + 1]);
  }
  EXPECT_EQ(at, bytes.size());
  EXPECT_EQ(found, records);
}

TEST(LogFiles, ALogThatIsNoneIsRefusedByItsLine) {
  const TempDir dir;
  const std::string good = step_log_line(10).dump() + "\n";
  for (const char* bad : {"what", "[1]", "{\"step\":1}", "{\"step\":\"x\",\"seconds\":1}",
                          "{\"step\":1,\"seconds\":1,\"loss\":null}"}) {
    const std::string text = good + bad + "\n";
    dir.file("log.jsonl", text);
    expect_says(
        [&] {
          LogFiles log({dir.path()}, {recipe::LogFormat::jsonl, recipe::LogFormat::csv},
                       text.size());
        },
        {"log.jsonl:2"});
  }
}

}  // namespace
}  // namespace heddle::run
