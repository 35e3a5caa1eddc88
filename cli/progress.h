// One live line on a terminal, plain lines when the output goes elsewhere.
#pragma once

#include <chrono>
#include <string>

namespace heddle::cli {

// When a line that tells of progress is due. On a terminal ten times a second. Elsewhere the first
// after a second, then at most one a second, and fewer the longer it takes: a log of an hour has a
// hundred and not thousands.
class LineRhythm {
 public:
  using Clock = std::chrono::steady_clock;
  LineRhythm(bool live, Clock::time_point began)
      : live_(live), began_(began), next_(live ? began : began + std::chrono::seconds(1)) {}

  // Whether to show one now. If so, the next one is due later.
  bool due(Clock::time_point now);

 private:
  bool live_;
  Clock::time_point began_, next_;
};

class ProgressLine {
 public:
  ProgressLine();  // on standard error

  // Shows the text in place of the last one, when it is due. Not on a terminal: as a line of its
  // own.
  void show(const std::string& text);
  void show_last(const std::string& text);  // at once, and it stays
  // A line that stays, above the live one.
  void say(const std::string& line);
  // The live line stays, with what was shown last, due or not: "batch 218 of 218". What comes next
  // begins a new one.
  void finish();

  bool live() const { return live_; }
  // The text in an ANSI style ("1;32") where colours are welcome: on a terminal without NO_COLOR.
  std::string styled(const std::string& text, const char* style) const;

 private:
  void draw(const std::string& text);

  bool live_, colour_;
  std::string shown_;      // the live line, to draw it again below what say() says
  std::string held_back_;  // the newest that was not due
  LineRhythm rhythm_;
};

}  // namespace heddle::cli
