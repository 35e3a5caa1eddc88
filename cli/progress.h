// One live line on a terminal, plain lines when the output goes elsewhere.
#pragma once

#include <chrono>
#include <string>

namespace heddle::cli {

class ProgressLine {
 public:
  ProgressLine();  // on standard error

  // Shows the text in place of the last one. Not on a terminal: as a line of its own, the first
  // after a second, then at most one a second, and fewer the longer it takes: a log of an hour has
  // a hundred and not thousands.
  void show(const std::string& text);
  void show_last(const std::string& text);  // at once, and it stays
  // A line that stays, above the live one.
  void say(const std::string& line);
  void finish();  // the live line stays as it is; what comes next begins a new one

  bool live() const { return live_; }
  // The text in an ANSI style ("1;32") where colours are welcome: on a terminal without NO_COLOR.
  std::string styled(const std::string& text, const char* style) const;

 private:
  using Clock = std::chrono::steady_clock;

  void draw(const std::string& text);

  bool live_, colour_;
  std::string shown_;  // the live line, to draw it again below what say() says
  Clock::time_point began_ = Clock::now(), next_ = began_;
};

// "3 days 4 h", "1 h 03 min", "12 min 30 s", "42 s".
std::string duration(double seconds);
std::string megabytes(double bytes);  // "512 MB"
std::string count(double number);     // "950", "12.3k", "124M"

}  // namespace heddle::cli
