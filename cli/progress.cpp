#include "progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "language/layout.h"
#include "tell.h"

namespace heddle::cli {

namespace {

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

bool LineRhythm::due(Clock::time_point now) {
  if (now < next_) return false;
  const Clock::duration plain =
      std::max<Clock::duration>(std::chrono::seconds(1), (now - began_) / 20);
  next_ = now + (live_ ? std::chrono::milliseconds(100) : plain);
  return true;
}

ProgressLine::ProgressLine()
    : live_(isatty(STDERR_FILENO) != 0), rhythm_(live_, LineRhythm::Clock::now()) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal != nullptr && std::string(terminal) == "dumb";
  colour_ = live_ && !dumb && (no_colour == nullptr || *no_colour == '\0');
}

// Overwrites the old line with spaces where it was longer; a line that wraps could not be taken
// back.
void ProgressLine::draw(const std::string& text) {
  const std::string cut(cut_to(text, terminal_width() - 1));
  tell("\r{}", padded(cut, columns_of(shown_)));
  std::fflush(stderr);
  shown_ = cut;
}

void ProgressLine::show(const std::string& text) {
  if (!rhythm_.due(LineRhythm::Clock::now())) {
    held_back_ = text;
    return;
  }
  held_back_.clear();
  if (live_)
    draw(text);
  else
    tell("{}\n", text);
}

void ProgressLine::show_last(const std::string& text) {
  held_back_.clear();
  if (live_)
    draw(text);
  else
    tell("{}\n", text);
  finish();
}

void ProgressLine::say(const std::string& line) {
  const std::string below = shown_;
  if (live_ && !shown_.empty()) draw("");
  tell("{}{}\n", live_ ? "\r" : "", line);
  shown_.clear();
  if (live_ && !below.empty()) draw(below);
}

void ProgressLine::finish() {
  if (live_ && !shown_.empty()) {
    if (!held_back_.empty()) draw(held_back_);
    tell("\n");
  }
  std::fflush(stderr);
  shown_.clear();
  held_back_.clear();
}

std::string ProgressLine::styled(const std::string& text, const char* style) const {
  return colour_ ? fmt::format("\033[{}m{}\033[0m", style, text) : text;
}

}  // namespace heddle::cli
