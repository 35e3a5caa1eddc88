#include "heddle/error.h"

#include <utility>

namespace heddle {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid argument";
    case ErrorCode::shape_mismatch: return "shape mismatch";
    case ErrorCode::dtype_mismatch: return "dtype mismatch";
    case ErrorCode::device_mismatch: return "device mismatch";
    case ErrorCode::out_of_range: return "out of range";
    case ErrorCode::out_of_memory: return "out of memory";
    case ErrorCode::autograd: return "autograd";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::io: return "input/output";
    case ErrorCode::failed: return "failed";
  }
  return "error";
}

Error::Error(ErrorCode code, std::string where, std::string problem, std::string expected,
             std::string got)
    : code_(code),
      where_(std::move(where)),
      problem_(std::move(problem)),
      expected_(std::move(expected)),
      got_(std::move(got)) {
  message_ = where_ + ": " + problem_;
  if (!expected_.empty()) message_ += "; expected " + expected_;
  if (!got_.empty()) message_ += "; got " + got_;
}

void fail(ErrorCode code, std::string_view where, std::string_view problem,
          std::string_view expected, std::string_view got) {
  throw Error(code, std::string(where), std::string(problem), std::string(expected),
              std::string(got));
}

}  // namespace heddle
