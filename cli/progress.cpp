#include "progress.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace heddle::cli {

namespace {

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

ProgressLine::ProgressLine() : live_(isatty(STDERR_FILENO) != 0) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string(terminal) == "dumb";
  // What is over within a second needs no line about being under way in a log.
  if (!live_) next_ += std::chrono::seconds(1);
  colour_ = live_ && !dumb && (no_colour == nullptr || *no_colour == '\0');
}

// Overwrites the old line with spaces where it was longer; a line that wraps could not be taken
// back.
void ProgressLine::draw(const std::string& text) {
  const std::string cut = text.substr(0, terminal_width() - 1);
  fmt::print(stderr, "\r{:<{}}", cut, shown_.size());
  std::fflush(stderr);
  shown_ = cut;
}

void ProgressLine::show(const std::string& text) {
  const auto now = Clock::now();
  if (now < next_) return;
  const Clock::duration plain =
      std::max<Clock::duration>(std::chrono::seconds(1), (now - began_) / 20);
  next_ = now + (live_ ? std::chrono::milliseconds(100) : plain);
  if (live_)
    draw(text);
  else
    fmt::print(stderr, "{}\n", text);
}

void ProgressLine::show_last(const std::string& text) {
  if (live_)
    draw(text);
  else
    fmt::print(stderr, "{}\n", text);
  finish();
}

void ProgressLine::say(const std::string& line) {
  const std::string below = shown_;
  if (live_ && !shown_.empty()) draw("");
  fmt::print(stderr, "{}{}\n", live_ ? "\r" : "", line);
  shown_.clear();
  if (live_ && !below.empty()) draw(below);
}

void ProgressLine::finish() {
  if (live_ && !shown_.empty()) fmt::print(stderr, "\n");
  std::fflush(stderr);
  shown_.clear();
}

std::string ProgressLine::styled(const std::string& text, const char* style) const {
  return colour_ ? fmt::format("\033[{}m{}\033[0m", style, text) : text;
}

std::string duration(double seconds) {
  const auto whole = static_cast<long long>(std::llround(std::clamp(seconds, 0.0, 1e15)));
  if (whole >= 48 * 3600) return fmt::format("{} days {} h", whole / 86400, whole / 3600 % 24);
  if (whole >= 3600) return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} s", whole);
}

std::string megabytes(double bytes) { return fmt::format("{:.0f} MB", bytes / 1048576); }

std::string count(double number) {
  if (number >= 1e9) return fmt::format("{:.3g}G", number / 1e9);
  if (number >= 1e6) return fmt::format("{:.3g}M", number / 1e6);
  if (number >= 1e3) return fmt::format("{:.3g}k", number / 1e3);
  return fmt::format("{:.0f}", number);
}

}  // namespace heddle::cli
