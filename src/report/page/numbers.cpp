#include "report/page/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "language/language.h"

namespace heddle::report {

namespace {

std::string with_unit(double value, double base, const std::array<const char*, 5>& units) {
  std::size_t unit = 0;
  while (std::abs(value) >= base && unit + 1 < units.size()) {
    value /= base;
    ++unit;
  }
  const bool whole = unit == 0 || std::abs(value) >= 100;
  return whole ? fmt::format("{:.0f}{}", value, units[unit])
               : fmt::format("{:.{}f}{}", value, std::abs(value) >= 10 ? 1 : 2, units[unit]);
}

}  // namespace

std::string bytes_text(double bytes) {
  if (std::abs(bytes) < 1000) return tr("{:.0f} bytes", bytes);
  return with_unit(bytes, 1000, {"", " kB", " MB", " GB", " TB"});
}

std::string count_text(double count) {
  return with_unit(count, 1000, {"", " k", " M", " G", " T"});
}

std::string signed_text(double value, int digits) {
  const std::string text = fmt::format("{:+.{}f}", value, digits);
  return text.find_first_of("123456789") == std::string::npos ? text.substr(1) : text;
}

std::string duration_text(double seconds) {
  if (seconds < 9.95) return tr("{:.1f} s", std::max(seconds, 0.0));
  const auto whole = static_cast<std::int64_t>(std::llround(std::min(seconds, 1e15)));
  if (whole < 60) return tr("{} s", whole);
  if (whole < 3600) return tr("{} min {:02} s", whole / 60, whole % 60);
  if (whole < 48 * 3600) return tr("{} h {:02} min", whole / 3600, whole / 60 % 60);
  return tr("{} days {} h", whole / 86400, whole / 3600 % 24);
}

std::string purpose_text(Purpose purpose) {
  switch (purpose) {
    case Purpose::parameters: return tr("parameters");
    case Purpose::gradients: return tr("gradients");
    case Purpose::optimizer: return tr("optimizer");
    case Purpose::activations: return tr("activations");
    case Purpose::workspace: return tr("workspace");
    case Purpose::thread_buffers: return tr("buffers of threads");
  }
  return std::string(to_string(purpose));
}

}  // namespace heddle::report
