// PyTorch as a separate process: it reports how long its products take, in turns with ours.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace heddle::bench {

// Starts `python` with the script torch_rival.py, which reads a request a line and answers with a
// line. Throws Error when Python, or PyTorch in it, does not start, or when the process ends early.
class TorchRival {
 public:
  TorchRival(const std::string& python, int threads);
  ~TorchRival();
  TorchRival(const TorchRival&) = delete;
  TorchRival& operator=(const TorchRival&) = delete;

  const std::string& version() const noexcept { return version_; }

  // Seconds of one product: "gemm M N K DTYPE PASS REPEATS" and the like; see the script.
  double seconds(const std::string& request);

 private:
  std::string answer();

  std::string python_;  // for errors
  pid_t process_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  std::string version_;
};

// The fastest of PyTorch's ways to do something, and the process that does it.
struct FastestRival {
  std::unique_ptr<TorchRival> process;
  const char* mode = "";
};

}  // namespace heddle::bench
