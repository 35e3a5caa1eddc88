// The log of a run: log.jsonl, and what other programs read of it (train.log): log.csv, and event
// files of TensorBoard.
//
// log.jsonl is the truth. The others are functions of it, line by line (and of the moment at which
// the run began, which the name of an event file tells), so that a run that goes on from a
// checkpoint makes them anew as far as its log goes, whatever a kill has left of them.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/files/file.h"
#include "recipe/train_config.h"
#include "run/run_directory.h"

namespace heddle::run {

using LogLine = nlohmann::ordered_json;

// One kind of copy: what its file begins with, and what a line becomes.
class LogCopy {
 public:
  explicit LogCopy(std::string path) : path_(std::move(path)) {}
  virtual ~LogCopy() = default;
  LogCopy(const LogCopy&) = delete;
  LogCopy& operator=(const LogCopy&) = delete;

  // The file is to be what these lines give. Without lines there is none.
  void begin(const std::vector<LogLine>& lines);
  void append(const LogLine& line);
  void flush();
  const std::string& path() const { return path_; }

 protected:
  virtual std::string head() const = 0;
  virtual std::string bytes_of(const LogLine& line) const = 0;

 private:
  std::string path_;
  std::unique_ptr<io::AppendFile> file_;
};

std::unique_ptr<LogCopy> make_csv_copy(const RunPaths& paths);
// Takes the event file that the run has, or begins one: `now` is in seconds since 1970.
std::unique_ptr<LogCopy> make_tensorboard_copy(const RunPaths& paths, std::int64_t now);

class LogFiles {
 public:
  // Everything after the first `bytes` of log.jsonl is cut off: it will be written again.
  LogFiles(const RunPaths& paths, const std::vector<recipe::LogFormat>& formats,
           std::uint64_t bytes);

  void append(const LogLine& line);
  void flush();  // returns when the disk has all of it
  std::uint64_t size() const { return jsonl_.size(); }

 private:
  io::AppendFile jsonl_;
  std::vector<std::unique_ptr<LogCopy>> copies_;
};

}  // namespace heddle::run
