// The one exception type of Heddle, and the helpers that throw it.
//
// Library code never aborts, exits or prints: whatever is wrong with an argument, a file or a
// machine is reported by an Error that names the thing, the place, what was expected and what was
// found.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

namespace heddle {

enum class ErrorCode : std::uint8_t {
  invalid_argument,  // an op or function was called with an argument it does not accept
  shape_mismatch,    // shapes that should fit together do not
  dtype_mismatch,    // an element type the op does not accept, or two that differ
  device_mismatch,   // tensors on different devices, or an op the device cannot run
  out_of_range,      // an index or size outside the valid range
  out_of_memory,     // an allocation that the system refused
  autograd,          // misuse of the tape: second backward, in-place clash, missing gradient
  unsupported,       // something this machine or this build cannot do
  io,                // files: missing, unreadable, malformed
  failed,            // it ran and came out wrong: a loss that is not finite, a check that differs
};

std::string_view to_string(ErrorCode code);

// `where` names the op, file or key; `what` the argument or the complaint.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string where, std::string problem, std::string expected,
        std::string got);

  const char* what() const noexcept override { return message_.c_str(); }

  ErrorCode code() const noexcept { return code_; }
  const std::string& where() const noexcept { return where_; }
  const std::string& problem() const noexcept { return problem_; }
  const std::string& expected() const noexcept { return expected_; }
  const std::string& got() const noexcept { return got_; }

 private:
  ErrorCode code_;
  std::string where_, problem_, expected_, got_, message_;
};

[[noreturn]] void fail(ErrorCode code, std::string_view where, std::string_view problem,
                       std::string_view expected = {}, std::string_view got = {});

}  // namespace heddle
