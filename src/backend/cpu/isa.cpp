#include "backend/cpu/isa.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>

#include "backend/cpu/detect/detect.h"
#include "heddle/error.h"

namespace heddle::cpu {
namespace {

constexpr std::array<std::string_view, kIsaCount> kNames = {
    "generic", "neon", "neon_bf16", "avx2", "avx512", "avx512_bf16", "amx"};

std::string joined(const std::vector<Isa>& levels) {
  std::string text;
  for (const Isa level : levels) {
    if (!text.empty()) text += ", ";
    text += to_string(level);
  }
  return text;
}

Isa require_available(Isa isa, std::string_view where) {
  for (const Isa each : available_isas())
    if (each == isa) return isa;
  fail(ErrorCode::unsupported, where, "this machine lacks the instruction set",
       "one of " + joined(available_isas()), to_string(isa));
}

// Names of other architectures are known, so that a machine can be said to lack them.
Isa isa_named(std::string_view name, std::string_view where) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<Isa>(i);
  fail(ErrorCode::invalid_argument, where, "unknown instruction set",
       "one of " + joined(known_levels()), name);
}

Isa initial_isa() {
  const char* wanted = std::getenv("HEDDLE_ISA");
  if (wanted == nullptr || *wanted == '\0') return available_isas().back();
  return require_available(isa_named(wanted, "HEDDLE_ISA"), "HEDDLE_ISA");
}

constexpr int kUndecided = -1;
std::atomic<int> chosen{kUndecided};

}  // namespace

std::string_view to_string(Isa isa) {
  const auto i = static_cast<std::size_t>(isa);
  return i < kNames.size() ? kNames[i] : "unknown";
}

Isa isa_from_name(std::string_view name) { return isa_named(name, "isa"); }

const std::vector<Isa>& available_isas() {
  static const std::vector<Isa> found = detect_levels();
  return found;
}

Isa current_isa() {
  int value = chosen.load(std::memory_order_relaxed);
  if (value == kUndecided) {
    const int initial = static_cast<int>(initial_isa());
    // A set_isa() that came in between wins.
    if (chosen.compare_exchange_strong(value, initial)) value = initial;
  }
  return static_cast<Isa>(value);
}

void set_isa(Isa isa) { chosen.store(static_cast<int>(require_available(isa, "set_isa"))); }

}  // namespace heddle::cpu
