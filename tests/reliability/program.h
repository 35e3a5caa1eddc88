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

class Program {
 public:
  // Runs the program with these arguments. No file of it may grow beyond `file_limit` bytes: a full
  // disk.
  explicit Program(const std::vector<std::string>& arguments,
                   std::optional<std::uint64_t> file_limit = {});
  ~Program();  // kills it if it still runs
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void send(int signal) const;
  Ending wait();

  // The file to run, from the command line of the tests.
  static std::string path;

 private:
  pid_t pid_ = -1;
  std::string out_, err_;  // files
};

inline Ending run(const std::vector<std::string>& arguments) { return Program(arguments).wait(); }

}  // namespace reliability
