// The files of a run:
//
//   recipe.toml          what was asked for, with all overrides
//   codec.json, tokenizer.json, ...   written by data::Codec
//   model.safetensors    the weights for use: of the best evaluation, or the latest ones
//   log.jsonl            what happened; log.csv and events.out.tfevents.* where train.log says so
//   report.html          the same as curves, renewed while it goes on
//   checkpoints/step-N.safetensors    where it can go on; .damaged is added to a damaged one's name
//   lock                 held by the process that trains
//
// Files are replaced whole (temporary file, fsync, rename), so that a kill at any instant leaves a
// run that can be loaded and resumed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/files/descriptor.h"

namespace heddle::run {

struct RunPaths {
  std::string directory;

  std::string recipe() const { return directory + "/recipe.toml"; }
  std::string weights() const { return directory + "/model.safetensors"; }
  std::string log() const { return directory + "/log.jsonl"; }
  std::string report() const { return directory + "/report.html"; }
  std::string checkpoints() const { return directory + "/checkpoints"; }
  std::string checkpoint(std::int64_t step) const;
};

// Steps that there are checkpoints of, ascending.
std::vector<std::int64_t> checkpoint_steps(const RunPaths& paths);

// Takes directory/lock, which the system releases with the process, however that ends. Error when
// another process has it: `occupied` says what that one is doing.
io::Descriptor lock_directory(const std::string& directory, const std::string& occupied);

// Whether a process has the lock right now. Looks without disturbing one that is about to take it.
bool is_locked(const std::string& directory);

// For writing: one process at a time.
class RunDirectory {
 public:
  // Creates the directory if it is missing and takes its lock; Error when another process holds it.
  // Half-written files of a killed process are removed.
  explicit RunDirectory(const std::string& directory);

  const RunPaths& paths() const { return paths_; }

  std::vector<std::int64_t> checkpoint_steps() const { return run::checkpoint_steps(paths_); }
  std::optional<std::int64_t> newest_checkpoint() const;
  void keep_newest(std::int64_t count) const;  // removes older checkpoints
  // Takes a damaged checkpoint out of the row, so that it never counts as one that is kept. Its new
  // path.
  std::string set_aside(std::int64_t step) const;
  // Removes a run without steps: the files that one begins with, and the directory if that is all.
  void discard() const;
  // Removes the same files and keeps the directory and its lock, for the run that begins here now.
  void begin_anew() const;

 private:
  RunPaths paths_;
  io::Descriptor lock_;
};

// Error where there is no directory; it may be the path of something else.
void check_is_directory(const std::string& path);
// Whether there is a run: its recipe is the last file that is written when one begins.
bool is_run(const std::string& directory);
// Whether there is anything at all at this path, apart from an empty directory and from what a
// process leaves that ended before it had anything to lose: the lock, files that the next one
// writes anew, a log without a line.
bool is_taken(const std::string& directory);

}  // namespace heddle::run
