#include "program.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace reliability {

namespace {

std::string temporary_file() {
  std::string name = std::filesystem::temp_directory_path() / "heddle-reliability-XXXXXX";
  const int fd = mkstemp(name.data());
  if (fd < 0) throw std::runtime_error("no temporary file");
  close(fd);
  return name;
}

std::string take(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  unlink(path.c_str());
  return text.str();
}

void redirect(const std::string& path, int to) {
  const int fd = open(path.c_str(), O_WRONLY | O_TRUNC);
  if (fd < 0 || dup2(fd, to) < 0) _exit(126);
}

}  // namespace

std::string Program::path;

Program::Program(const std::vector<std::string>& arguments, Surroundings surroundings)
    : out_(temporary_file()), err_(temporary_file()) {
  std::vector<char*> argv = {path.data()};
  std::vector<std::string> copies = arguments;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::array<int, 2> ends = {-1, -1};
  if (surroundings.piped && pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  reader_ = ends[0];
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ > 0) {
    if (surroundings.piped) close(ends[1]);
    return;
  }
  redirect(out_, STDOUT_FILENO);
  redirect(err_, STDERR_FILENO);
  if (surroundings.piped) {
    close(ends[0]);
    if (dup2(ends[1], STDOUT_FILENO) < 0 || dup2(ends[1], STDERR_FILENO) < 0) _exit(126);
    close(ends[1]);
  }
  // The defaults of a shell, also where the tests run under nohup or without signals.
  for (const int signal : {SIGHUP, SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_DFL);
  if (surroundings.file_limit) {
    const rlimit limit{*surroundings.file_limit, *surroundings.file_limit};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (surroundings.memory_limit) {
    const rlimit limit{*surroundings.memory_limit, *surroundings.memory_limit};
    setrlimit(RLIMIT_AS, &limit);
  }
  execv(argv[0], argv.data());
  _exit(127);
}

Program::~Program() {
  if (reader_ >= 0) close(reader_);
  if (pid_ <= 0) return;
  send(SIGKILL);
  wait();
}

void Program::send(int signal) const { kill(pid_, signal); }

bool Program::read_until(const std::string& text) {
  std::string read_so_far;
  std::array<char, 256> piece{};
  while (read_so_far.find(text) == std::string::npos) {
    const ssize_t got = read(reader_, piece.data(), piece.size());
    if (got <= 0) return false;
    read_so_far.append(piece.data(), static_cast<std::size_t>(got));
  }
  close(std::exchange(reader_, -1));
  return true;
}

Ending Program::wait() {
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  Ending ending;
  ending.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  ending.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ending.out = take(out_);
  ending.err = take(err_);
  return ending;
}

}  // namespace reliability
