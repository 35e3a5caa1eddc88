// The program `heddle` as a process of its own: started, killed, waited for.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reliability {

struct Ending {
  int status = 0;   // exit status; -1 when a signal ended it
  int signal = 0;   // that signal
  std::string out;  // standard output
  std::string err;  // standard error
};

struct Surroundings {
  std::optional<std::uint64_t> file_limit = {};  // no file may grow beyond (ulimit -f): a full disk
  std::optional<std::uint64_t> memory_limit = {};  // of its address space (ulimit -v)
  bool piped = false;  // both outputs go into one pipe, as of `heddle ... 2>&1 | head`
};

class Program {
 public:
  // Runs the program with these arguments.
  explicit Program(const std::vector<std::string>& arguments, Surroundings surroundings = {});
  ~Program();  // kills it if it still runs
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void send(int signal) const;
  pid_t pid() const { return pid_; }
  Ending wait();

  // Where it is piped: reads until this text has come, and then no more. False where it never came.
  bool read_until(const std::string& text);

  // The file to run, from the command line of the tests.
  static std::string path;

 private:
  pid_t pid_ = -1;
  int reader_ = -1;        // of its pipe
  std::string out_, err_;  // files
};

inline Ending run(const std::vector<std::string>& arguments) { return Program(arguments).wait(); }

}  // namespace reliability
