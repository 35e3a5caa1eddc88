#include "io/files/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "io/errors.h"
#include "io/files/descriptor.h"

namespace heddle::io {

namespace {

pid_t start(const std::vector<std::string>& command, int output) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));  // posix_spawn() does not write to it
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t process = 0;
  const int error =
      posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail_system(command[0], "cannot run", error);
  return process;
}

int status_of(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// True when the end was reached before `max_bytes`.
bool read_all(int from, std::size_t max_bytes, std::string& out) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::string piece(kPiece, '\0');
  while (out.size() <= max_bytes) {
    const ssize_t count = ::read(from, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    out.append(piece.data(), static_cast<std::size_t>(count));
  }
  return false;
}

}  // namespace

std::string run_program(const std::vector<std::string>& command, std::size_t max_bytes) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_system(command[0], "no pipe to it", errno);
  Descriptor input(ends[0]);
  pid_t process = 0;
  {
    const Descriptor output(ends[1]);
    process = start(command, ends[1]);
  }
  std::string text;
  const bool whole = read_all(ends[0], max_bytes, text);
  input = Descriptor();  // a program that still writes ends now
  const int status = status_of(process);
  if (!whole)
    fail_io(command[0], "writes too much", "at most " + std::to_string(max_bytes) + " bytes",
            "more");
  if (status != 0) fail_io(command[0], "failed", "exit status 0", std::to_string(status));
  return text;
}

bool has_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace heddle::io
