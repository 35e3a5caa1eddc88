#include "run/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <thread>

#include "heddle/error.h"
#include "io/errors.h"
#include "io/files/file.h"

namespace heddle::run {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";

constexpr std::string_view kCheckpoints = "checkpoints", kLock = "lock", kLog = "log.jsonl";

// Files in a directory before its run has a recipe, which makes it a run,
constexpr std::array<std::string_view, 5> kBefore = {"codec.json", "tokenizer.json",
                                                     "target_tokenizer.json", kCheckpoints, kLock};
// and the other files that are there before its first step.
constexpr std::array<std::string_view, 4> kBesides = {"recipe.toml", "plan.json", kLog,
                                                      "report.html"};

bool is_temporary(std::string_view name) {
  return name.starts_with(".heddle-") && name.ends_with(".tmp");
}

// The step of a checkpoint's file name; nothing for other files.
std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  const char* begin = name.data() + kPrefix.size();
  const char* end = name.data() + name.size() - kSuffix.size();
  std::int64_t step = 0;
  const auto result = std::from_chars(begin, end, step);
  if (begin >= end || result.ec != std::errc() || result.ptr != end || step < 0)
    return std::nullopt;
  return step;
}

void for_each_file(const std::string& directory, const auto& body) {
  std::error_code error;
  const fs::directory_iterator all(directory, error);
  if (error) io::fail_system(directory, "cannot list the directory", error.value());
  for (const fs::directory_entry& entry : all) body(entry);
}

// Only the holder of the lock writes here, so a temporary file belongs to a process that is gone.
void remove_leftovers(const std::string& directory) {
  std::vector<fs::path> leftovers;
  for_each_file(directory, [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    if (is_temporary(name)) leftovers.push_back(entry.path());
  });
  for (const fs::path& path : leftovers) {
    std::error_code error;
    fs::remove(path, error);
    if (error) io::fail_system(path.string(), "cannot remove", error.value());
  }
}

}  // namespace

std::string RunPaths::checkpoint(std::int64_t step) const {
  return checkpoints() + "/" + std::string(kPrefix) + std::to_string(step) + std::string(kSuffix);
}

io::Descriptor lock_directory(const std::string& directory, const std::string& occupied) {
  const std::string path = directory + "/lock";
  io::Descriptor lock = io::open_regular(path, O_RDWR | O_CREAT);
  // Who only looks whether it is taken (is_locked()) has it for an instant.
  constexpr int kTries = 10;
  int failed = ::flock(lock.get(), LOCK_EX | LOCK_NB);
  for (int i = 1; i < kTries && failed != 0 && errno == EWOULDBLOCK; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    failed = ::flock(lock.get(), LOCK_EX | LOCK_NB);
  }
  if (failed != 0) {
    if (errno == EWOULDBLOCK) io::fail_io(directory, occupied);
    io::fail_system(path, "cannot lock", errno);
  }
  return lock;
}

bool is_locked(const std::string& directory) {
  const std::string path = directory + "/" + std::string(kLock);
  if (!io::file_exists(path)) return false;
  const io::Descriptor lock = io::open_regular(path, O_RDONLY);
  return ::flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

RunDirectory::RunDirectory(const std::string& directory) : paths_{directory} {
  io::make_directories(directory);
  lock_ = lock_directory(directory, "another process is training this run");
  io::make_directories(paths_.checkpoints());  // after the lock: by it is_taken() knows it is ours
  remove_leftovers(directory);
  remove_leftovers(paths_.checkpoints());
}

std::vector<std::int64_t> checkpoint_steps(const RunPaths& paths) {
  std::vector<std::int64_t> steps;
  if (!io::directory_exists(paths.checkpoints())) return steps;
  for_each_file(paths.checkpoints(), [&](const fs::directory_entry& entry) {
    if (const auto step = step_of(entry.path().filename().string())) steps.push_back(*step);
  });
  std::ranges::sort(steps);
  return steps;
}

std::optional<std::int64_t> RunDirectory::newest_checkpoint() const {
  const auto steps = checkpoint_steps();
  if (steps.empty()) return std::nullopt;
  return steps.back();
}

void RunDirectory::keep_newest(std::int64_t count) const {
  const auto steps = checkpoint_steps();
  const auto kept = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i + kept < steps.size(); ++i) {
    std::error_code error;
    const std::string path = paths_.checkpoint(steps[i]);
    fs::remove(path, error);
    if (error) io::fail_system(path, "cannot remove", error.value());
  }
}

std::string RunDirectory::set_aside(std::int64_t step) const {
  const std::string path = paths_.checkpoint(step), aside = path + ".damaged";
  std::error_code error;
  fs::rename(path, aside, error);
  if (error) io::fail_system(path, "cannot rename", error.value());
  return aside;
}

void check_is_directory(const std::string& path) {
  if (io::directory_exists(path)) return;
  fail(ErrorCode::io, path.empty() ? "\"\"" : path,
       io::file_exists(path) ? "is a file" : "is not there", "the directory of a run");
}

bool is_run(const std::string& directory) { return io::file_exists(RunPaths{directory}.recipe()); }

// The recipe goes first: without it, this is not a run any more, whatever happens to the rest.
// Files that are missing, or directories that are not empty, stay as they are.
void RunDirectory::discard() const {
  begin_anew();
  const fs::path root(paths_.directory);
  std::error_code ignored;
  fs::remove(root / kCheckpoints, ignored);
  fs::remove(root / kLock, ignored);
  fs::remove(root, ignored);
}

void RunDirectory::begin_anew() const {
  const fs::path root(paths_.directory);
  std::error_code ignored;
  for (const std::string_view name : kBesides) fs::remove(root / name, ignored);
  for (const std::string_view name : kBefore)
    if (name != kLock && name != kCheckpoints) fs::remove(root / name, ignored);
}

bool is_taken(const std::string& directory) {
  std::error_code error;
  if (!fs::exists(fs::status(directory, error))) return false;
  if (!fs::is_directory(directory, error)) return true;
  if (fs::is_empty(directory, error)) return false;
  if (!io::file_exists(directory + "/" + std::string(kLock))) return true;
  bool taken = false;
  const auto is_in = [](const auto& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  for_each_file(directory, [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    if (name == kCheckpoints && entry.is_directory(error)) {
      for_each_file(entry.path().string(), [&](const fs::directory_entry& inside) {
        taken = taken || !is_temporary(inside.path().filename().string());
      });
      return;
    }
    const bool known = is_in(kBefore, name) || is_in(kBesides, name) || is_temporary(name);
    taken = taken || !known || !entry.is_regular_file(error) ||
            (name == kLog && entry.file_size(error) > 0);
  });
  return taken;
}

}  // namespace heddle::run
