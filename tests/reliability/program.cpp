#include "program.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

Program::Program(const std::vector<std::string>& arguments, std::optional<std::uint64_t> file_limit)
    : out_(temporary_file()), err_(temporary_file()) {
  std::vector<char*> argv = {path.data()};
  std::vector<std::string> copies = arguments;
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ > 0) return;
  redirect(out_, STDOUT_FILENO);
  redirect(err_, STDERR_FILENO);
  std::signal(SIGHUP, SIG_DFL);  // also where the tests run under nohup
  if (file_limit) {
    // Writing fails instead of raising a signal, as on a disk without space.
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{*file_limit, *file_limit};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  execv(argv[0], argv.data());
  _exit(127);
}

Program::~Program() {
  if (pid_ <= 0) return;
  send(SIGKILL);
  wait();
}

void Program::send(int signal) const { kill(pid_, signal); }

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
