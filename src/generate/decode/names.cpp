#include "heddle/generation.h"

namespace heddle {

std::string_view to_string(Finish finish) {
  switch (finish) {
    case Finish::length: return "length";
    case Finish::end: return "end";
    case Finish::stop: return "stop";
    case Finish::cancelled: return "cancelled";
  }
  return "unknown";
}

std::string_view to_string(LengthNorm norm) { return norm == LengthNorm::mean ? "mean" : "gnmt"; }

std::string_view to_string(BeamKind kind) {
  return kind == BeamKind::narrowing ? "narrowing" : "full";
}

}  // namespace heddle
