#include "bench/rival.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <system_error>

#include "bench/torch_rival_script.h"
#include "heddle/error.h"

namespace heddle::bench {

namespace {

[[noreturn]] void refuse(const std::string& python, const std::string& problem,
                         const std::string& got) {
  fail(ErrorCode::io, "torch: " + python, problem, "a Python with PyTorch", got);
}

// A pipe that other processes we might start do not inherit by accident.
std::array<int, 2> make_pipe(const std::string& python) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    refuse(python, "no pipe could be made", "an error of the system");
  return ends;
}

}  // namespace

TorchRival::TorchRival(const std::string& python, int threads) : python_(python) {
  // A rival that dies must not take us along.
  signal(SIGPIPE, SIG_IGN);
  const auto in = make_pipe(python);
  const auto out = make_pipe(python);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::string program = python;
  std::string flag = "-c";
  std::string script = kTorchRivalScript;
  std::string count = std::to_string(threads);
  std::array<char*, 5> arguments = {program.data(), flag.data(), script.data(), count.data(),
                                    nullptr};
  const int status =
      posix_spawnp(&process_, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  to_ = fdopen(in[1], "w");
  from_ = fdopen(out[0], "r");
  if (status != 0) {
    process_ = -1;
    refuse(python, "could not be started", std::generic_category().message(status));
  }
  const std::string hello = answer();
  if (!hello.starts_with("ready ")) refuse(python, "did not say it is ready", hello);
  version_ = hello.substr(6);
}

TorchRival::~TorchRival() {
  if (to_ != nullptr) fclose(to_);  // the script ends when its input does
  if (from_ != nullptr) fclose(from_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

std::string TorchRival::answer() {
  std::string line;
  for (int c = std::fgetc(from_); c != '\n'; c = std::fgetc(from_)) {
    if (c == EOF) refuse(python_, "the process ended", line.empty() ? "no answer" : line);
    line += static_cast<char>(c);
  }
  return line;
}

double TorchRival::seconds(const std::string& request) {
  std::fputs((request + "\n").c_str(), to_);
  std::fflush(to_);
  const std::string line = answer();
  char* end = nullptr;
  const double value = std::strtod(line.c_str(), &end);
  if (end == line.c_str() || !(value > 0)) refuse(python_, "did not answer with a time", line);
  return value;
}

}  // namespace heddle::bench
