#include "heddle/generation.h"

namespace heddle {

std::string_view to_string(Finish finish) {
  switch (finish) {
    case Finish::length: return "length";
    case Finish::end: return "end";
    case Finish::stop: return "stop";
  }
  return "unknown";
}

std::string_view to_string(LengthNorm norm) { return norm == LengthNorm::mean ? "mean" : "gnmt"; }

}  // namespace heddle
